// What the built programs ask of the system's loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>
#include <optional>

#include "tests/support/temporary_directory.hpp"

namespace cli {
namespace {

template <class Record>
Record record_at(const std::string& bytes, std::size_t at) {
  Record record;
  std::memcpy(&record, bytes.substr(at, sizeof record).data(), sizeof record);
  return record;
}

/// The tags of the dynamic section of a program. Source: System V ABI, Dynamic Linking.
std::vector<long> dynamic_tags(const std::string& bytes) {
  std::vector<long> tags;
  const auto header = record_at<ElfW(Ehdr)>(bytes, 0);
  for (std::size_t k = 0; k < header.e_phnum; ++k) {
    const auto part = record_at<ElfW(Phdr)>(bytes, header.e_phoff + k * header.e_phentsize);
    for (std::size_t at = 0; part.p_type == PT_DYNAMIC && at < part.p_filesz; at += sizeof(ElfW(Dyn)))
      tags.push_back(static_cast<long>(record_at<ElfW(Dyn)>(bytes, part.p_offset + at).d_tag));
  }
  return tags;
}

TEST(Binary, NamesNoFolderToLoadLibrariesFrom) {
  using testing::Contains, testing::Not;
  for (const char* program : {PROGRAM, "/proc/self/exe"}) {
    const std::vector<long> tags = dynamic_tags(support::bytes_of(program));
    ASSERT_THAT(tags, Contains(DT_NEEDED)) << program;
    EXPECT_THAT(tags, Not(Contains(DT_RPATH))) << program;
    EXPECT_THAT(tags, Not(Contains(DT_RUNPATH))) << program;
  }
}

/// Whether the dynamic section has a tag with these bits, or the tag alone when there are none.
bool has_flag(const std::string& bytes, long tag, std::uint64_t bits) {
  const auto header = record_at<ElfW(Ehdr)>(bytes, 0);
  for (std::size_t k = 0; k < header.e_phnum; ++k) {
    const auto part = record_at<ElfW(Phdr)>(bytes, header.e_phoff + k * header.e_phentsize);
    for (std::size_t at = 0; part.p_type == PT_DYNAMIC && at < part.p_filesz; at += sizeof(ElfW(Dyn)))
      if (const auto entry = record_at<ElfW(Dyn)>(bytes, part.p_offset + at);
          entry.d_tag == tag && (entry.d_un.d_val & bits) == bits)
        return true;
  }
  return false;
}

/// The flags of a part of the program, or nothing when it has none such.
std::optional<unsigned> flags_of_part(const std::string& bytes, unsigned type) {
  const auto header = record_at<ElfW(Ehdr)>(bytes, 0);
  for (std::size_t k = 0; k < header.e_phnum; ++k)
    if (const auto part = record_at<ElfW(Phdr)>(bytes, header.e_phoff + k * header.e_phentsize);
        part.p_type == type)
      return part.p_flags;
  return std::nullopt;
}

TEST(Binary, IsHardened) {
  const std::string bytes = support::bytes_of(PROGRAM);
  EXPECT_EQ(record_at<ElfW(Ehdr)>(bytes, 0).e_type, ET_DYN) << "its place in memory is random";
  EXPECT_TRUE(has_flag(bytes, DT_FLAGS_1, DF_1_PIE));
  EXPECT_TRUE(has_flag(bytes, DT_FLAGS, DF_BIND_NOW)) << "every function is bound at the start";
  EXPECT_TRUE(has_flag(bytes, DT_FLAGS_1, DF_1_NOW));
  EXPECT_TRUE(flags_of_part(bytes, PT_GNU_RELRO)) << "and their addresses are read-only then";
  EXPECT_EQ(flags_of_part(bytes, PT_GNU_STACK).value_or(PF_X) & PF_X, 0u) << "no data is run";
  EXPECT_NE(bytes.find("__glibcxx_assert_fail"), bytes.npos) << "indices of containers are checked";
  EXPECT_NE(bytes.find("Mat::operator(): index out of bounds"), bytes.npos) << "and those of matrices";
#ifdef NDEBUG
  EXPECT_NE(bytes.find("__stack_chk_fail"), bytes.npos);
  EXPECT_NE(bytes.find("_chk@GLIBC"), bytes.npos) << "lengths are checked that the compiler knows";
#endif
}

}  // namespace
}  // namespace cli
