// What the built programs ask of the system's loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>

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

}  // namespace
}  // namespace cli
