#include "core/out/zip_writer.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/base/token.hpp"
#include "core/files/zip.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

ZipContent file(const std::string& name, const std::string& content) {
  return {name, [content] { return content; }};
}

std::string noise(std::size_t count) {
  std::mt19937 random(1);
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(ZipBytes, HoldEveryFile) {
  const std::string zeros(100000, '\0'), random = noise(100000);
  const std::string bytes = zip_bytes({file("zeros", zeros), file("noise", random), file("empty", "")});
  EXPECT_LT(bytes.size(), 102000u);
  const support::TemporaryDirectory directory;
  support::put_bytes(directory / "a.zip", bytes);
  const readers::ZipArchive archive(directory / "a.zip");
  ASSERT_EQ(archive.members().size(), 3u);
  core::Token progress;
  EXPECT_EQ(archive.bytes(archive.members()[0], 0, zeros.size(), progress), zeros);
  EXPECT_EQ(archive.bytes(archive.members()[1], 0, random.size(), progress), random);
  EXPECT_EQ(archive.bytes(archive.members()[2], 0, 0, progress), "");
}

TEST(ZipBytes, AreTheSameForTheSameFiles) {
  const auto bytes = [] { return zip_bytes({file("a", "content"), file("b", std::string(5000, 'b'))}); };
  const std::string first = bytes();
  EXPECT_EQ(bytes(), first);
  EXPECT_EQ(first.substr(10, 4), std::string("\0\0\x21\0", 4))
      << "midnight of 1 January 1980, after APPNOTE 4.4.6";
}

TEST(ZipBytes, GivesOnWhatMakingAContentThrows) {
  EXPECT_THROW(zip_bytes({file("a", "1"), {"b", []() -> std::string { throw core::Stopped(); }}}),
               core::Stopped);
  EXPECT_EQ(support::error_of([] {
              zip_bytes({file("a", "1"), file("a", "2")});
            }),
            "the archive cannot be made: File already exists");
}

}  // namespace
}  // namespace core::formats
