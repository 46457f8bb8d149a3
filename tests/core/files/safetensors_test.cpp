#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats::readers {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string real = FIXTURES "/formats/types.safetensors";

std::string length_text(std::uint64_t length) {
  std::string bytes;
  for (int k = 0; k < 8; ++k) bytes += static_cast<char>(length >> 8 * k & 0xff);
  return bytes;
}

std::string file_of(const std::string& header, std::size_t n_bytes) {
  return length_text(header.size()) + header + std::string(n_bytes, '\0');
}

std::string error_of_file(const std::string& bytes) {
  const support::TemporaryDirectory directory;
  return support::error_of([&] { open_tensors(written(directory, "m.safetensors", bytes)); });
}

TEST(SafetensorsFile, OfEveryTypeReadsBackExactly) {
  const auto known = known_tensors(FIXTURES "/formats/safetensors.json");
  const TensorFile file = open_tensors(real);
  ASSERT_EQ(file.tensors().size(), 13u);
  for (const TensorInfo& info : file.tensors())
    EXPECT_EQ(difference(file.read(info.name), known.at(info.name)), "") << info.name;
}

TEST(SafetensorsFile, HasEveryNumberOfEightBits) {
  const auto known = known_tensors(FIXTURES "/formats/fp8.json");
  const TensorFile file = open_tensors(FIXTURES "/formats/fp8.safetensors");
  ASSERT_EQ(file.tensors().size(), 2u);
  for (const TensorInfo& info : file.tensors())
    EXPECT_EQ(difference(file.read(info.name), known.at(info.name)), "") << info.name;
}

TEST(SafetensorsFile, GivesThePartAtLeadingIndices) {
  const auto known = known_tensors(FIXTURES "/formats/safetensors.json");
  const std::size_t at[] = {1, 2};
  EXPECT_EQ(difference(open_tensors(real).read("heads", at), part_of(known.at("heads"), at)), "");
}

TEST(SafetensorsFile, OfFiftyGigabytesOpensWithoutBeingRead) {
  const support::TemporaryDirectory directory;
  constexpr std::uint64_t n = 50'000'000'000;
  const std::string header =
      R"({"big":{"dtype":"U8","shape":[5000,10000000],"data_offsets":[0,50000000000]}})";
  const auto path = written(directory, "m.safetensors", length_text(header.size()) + header);
  std::error_code cannot;
  std::filesystem::resize_file(path, 8 + header.size() + n, cannot);  // a hole: it takes no room
  if (cannot) GTEST_SKIP() << "this file system has no room for a hole of 50 GB";
  const TensorFile file = open_tensors(path);
  const std::size_t last[] = {4999};
  EXPECT_EQ(file.read("big", last).numbers, std::vector<double>(10'000'000, 0.0));
  EXPECT_THAT(support::error_of([&] { file.read("big"); }),
              HasSubstr("numbers at once, got [5000, 10000000]"));
}

TEST(SafetensorsFile, CutAnywhereIsRefusedInOneLine) {
  const std::string whole = support::bytes_of(real);
  for (std::size_t length = 0; length < whole.size(); length += 3) {
    const std::string error = error_of_file(whole.substr(0, length));
    ASSERT_THAT(error, HasSubstr("m.safetensors: expected")) << length;
    ASSERT_EQ(error.find('\n'), error.npos);
  }
}

TEST(SafetensorsFile, WithAHeaderThatLiesIsRefused) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const auto two = [&](const std::string& b, std::size_t n) {
    return error_of_file(file_of("{" + a + "," + b + "}", n));
  };
  EXPECT_EQ(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]})", 12), "no error");
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 12),
              HasSubstr("b: expected its bytes to begin at 8, where those before it end, got 4"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]})", 16),
              HasSubstr("b: expected its bytes to begin at 8, where no other tensor is, got 12"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,8]})", 12),
              HasSubstr("b.data_offsets: expected two offsets [begin, end], the first not the larger"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[3],"data_offsets":[8,16]})", 16),
              HasSubstr("b.data_offsets: expected 12 bytes for float32 [3], got 8"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[4294967297,4294967295],"data_offsets":[8,12]})", 12),
              HasSubstr("expected more than 2^62 bytes"));
  EXPECT_THAT(two(R"("b":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[8,12]})", 12),
              HasSubstr("b.dtype: expected one of \"F64\""));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1.5],"data_offsets":[8,12]})", 12),
              HasSubstr("b.shape[0]: expected"));
  std::string ones = "1";
  for (int k = 1; k < 32; ++k) ones += ",1";
  EXPECT_EQ(two(R"("b":{"dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[8,12]})", 12), "no error");
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1,)" + ones + R"(],"data_offsets":[8,12]})", 12),
              HasSubstr("b.shape: expected at most 32 dimensions, got 33"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[-1],"data_offsets":[8,12]})", 12),
              HasSubstr("b.shape[0]: expected"));
  EXPECT_THAT(two(a, 8), HasSubstr("expected the key \"a\" once, got it twice"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]})", 13),
              HasSubstr("expected 12 bytes of tensors after the header, got 13"));
  EXPECT_THAT(two(R"("b":7)", 8), HasSubstr("b: expected"));
}

TEST(SafetensorsFile, WithAHeaderBeyondItsEndIsRefused) {
  EXPECT_THAT(error_of_file(length_text(10'000'000'000) + "{\"a\":" + std::string(87, ' ')),
              HasSubstr("expected a header of at most 92 bytes, it claims 10000000000"));
  EXPECT_THAT(error_of_file(length_text(~std::uint64_t{0}) + "{}"),
              HasSubstr("it claims 18446744073709551615"));
}

}  // namespace
}  // namespace core::formats::readers
