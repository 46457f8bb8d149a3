#include "app/session/memory.hpp"

#include <gtest/gtest.h>

#include "core/editing/presets.hpp"
#include "core/system/process.hpp"

namespace {

using core::system::parse_mem_available;

TEST(AvailableMemory, IsReadFromWhatLinuxSays) {
  EXPECT_EQ(core::system::parse_mem_available(
                "MemTotal:       24689212 kB\nMemFree:  1 kB\nMemAvailable:   22334456 kB\nBuffers: 2 kB\n"),
            std::uint64_t{22334456} * 1024);
  EXPECT_EQ(core::system::parse_mem_available("MemAvailable: 1 kB"), std::uint64_t{1024});
}

TEST(AvailableMemory, IsNothingWhereTheTextDoesNotSay) {
  for (const char* text : {"", "MemTotal: 5 kB\n", "MemAvailable:", "MemAvailable: kB\n",
                           "MemAvailable: 12 pages\n", "MemAvailable: 99999999999999999999999 kB\n"})
    EXPECT_EQ(core::system::parse_mem_available(text), std::nullopt) << text;
}

TEST(FreeMemory, IsSomeAndNotAllThereCouldBe) {
  EXPECT_GT(core::system::available_memory(), std::uint64_t{1} << 20);
  EXPECT_LT(core::system::available_memory(), std::uint64_t{1} << 50);
}

TEST(MemoryNeed, IsSaidSoThatItCanBeToldFromWhatIsFree) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  EXPECT_EQ((app::MemoryNeed{2048 * mebibyte, 512 * mebibyte, "2 tokens"}.words()),
            "2 tokens need 2.0 GiB of memory; 0.5 GiB are free");
  EXPECT_EQ((app::MemoryNeed{210 * mebibyte, 190 * mebibyte, "2 tokens"}.words()),
            "2 tokens need 210 MiB of memory; 190 MiB are free");
}

TEST(MemoryNeed, IsTooMuchWhenLessIsFree) {
  const auto model = core::editing::default_preset().make();
  const auto bytes = app::memory_need(model, 0).bytes;
  EXPECT_GT(bytes, 0u);
  EXPECT_FALSE(app::memory_need(model, bytes).is_too_much());
  EXPECT_TRUE(app::memory_need(model, bytes - 1).is_too_much());
}

}  // namespace
