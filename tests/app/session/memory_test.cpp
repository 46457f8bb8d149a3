#include "app/session/memory.hpp"

#include <gtest/gtest.h>

#include "core/editing/presets.hpp"

namespace {

using app::available_bytes;

TEST(AvailableMemory, IsReadFromWhatLinuxSays) {
  EXPECT_EQ(available_bytes(
                "MemTotal:       24689212 kB\nMemFree:  1 kB\nMemAvailable:   22334456 kB\nBuffers: 2 kB\n"),
            std::uint64_t{22334456} * 1024);
  EXPECT_EQ(available_bytes("MemAvailable: 1 kB"), std::uint64_t{1024});
}

TEST(AvailableMemory, IsNothingWhereTheTextDoesNotSay) {
  for (const char* text : {"", "MemTotal: 5 kB\n", "MemAvailable:", "MemAvailable: kB\n",
                           "MemAvailable: 12 pages\n", "MemAvailable: 99999999999999999999999 kB\n"})
    EXPECT_EQ(available_bytes(text), std::nullopt) << text;
}

TEST(MemoryOfAGroup, IsWhatItsLimitLeavesBesideWhatMustStay) {
  const char* stat = "anon 600\nfile 250\nactive_file 50\ninactive_file 200\n";
  EXPECT_EQ(app::bytes_left_in_group("1000\n", "900\n", stat), 300u);
  EXPECT_EQ(app::bytes_left_in_group("1000\n", "900\n", ""), 100u);
  EXPECT_EQ(app::bytes_left_in_group("1000\n", "1100\n", ""), 0u);
  EXPECT_EQ(app::bytes_left_in_group("1000\n", "100\n", stat), 1000u);
  EXPECT_EQ(app::bytes_left_in_group("max\n", "900\n", stat), std::nullopt);
  EXPECT_EQ(app::bytes_left_in_group("", "", ""), std::nullopt);
}

TEST(FreeMemory, IsSomeAndNotAllThereCouldBe) {
  EXPECT_GT(app::free_memory(), std::uint64_t{1} << 20);
  EXPECT_LT(app::free_memory(), std::uint64_t{1} << 50);
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

TEST(MemoryNeed, SaysWhatForAndHowMuch) {
  EXPECT_EQ(
      (app::MemoryNeed{std::uint64_t{38} << 30, std::uint64_t{3} << 29, "16384 tokens in one head"}.words()),
      "16384 tokens in one head need 38.0 GiB of memory; 1.5 GiB are free");
}

}  // namespace
