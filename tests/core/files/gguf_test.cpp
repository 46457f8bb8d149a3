#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "core/files/gguf.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

using support::bytes_of;
using support::error_of;
using support::put_bytes;

const std::string gguf_files = FIXTURES "/transformer/";

/// Every block type against the numbers of the package gguf, bit for bit.
TEST(Gguf, BlocksStandForTheNumbersOfThePackage) {
  const TensorFile packed = open_tensors(gguf_files + "blocks.gguf");
  const TensorFile plain = open_tensors(gguf_files + "blocks.npz");
  EXPECT_EQ(packed.format(), std::string("gguf"));
  EXPECT_EQ(packed.tensors().size(), 11u);
  for (const TensorInfo& info : packed.tensors()) {
    EXPECT_EQ(info.shape, (TensorShape{3, 512})) << info.name;
    EXPECT_EQ(packed.read(info.name).numbers, plain.read(info.name).numbers) << info.name;
    const std::array leading{std::size_t{1}};
    EXPECT_EQ(packed.read(info.name, leading).numbers, plain.read(info.name, leading).numbers) << info.name;
    EXPECT_NE(error_of([&] { packed.read(info.name, std::array{std::size_t{3}}); }), "no error");
  }
}

TEST(Gguf, MetadataHasTypes) {
  const std::string path = gguf_files + "llama.gguf";
  const GgufMetadata metadata = gguf_metadata(path);
  EXPECT_EQ(metadata.required_text("general.architecture"), "llama");
  EXPECT_EQ(metadata.required_whole("llama.block_count"), 2u);
  EXPECT_EQ(metadata.texts("tokenizer.ggml.tokens").size(), 380u);
  EXPECT_EQ(metadata.number("llama.none"), std::nullopt);
  EXPECT_EQ(error_of([&] { metadata.text("llama.block_count"); }),
            path + ": llama.block_count: expected a text");
  EXPECT_EQ(error_of([&] { metadata.required_whole("llama.none"); }),
            path + ": llama.none: expected a whole number, there is none");
}

/// A GGUF file with some bytes overwritten.
struct Damaged {
  explicit Damaged(const std::string& name) : bytes(bytes_of(gguf_files + name)) {}
  void put(std::size_t at, std::uint64_t number, std::size_t n_bytes) {
    for (std::size_t k = 0; k < n_bytes; ++k) bytes[at + k] = static_cast<char>(number >> 8 * k);
  }
  std::size_t after(const std::string& text) const { return bytes.find(text) + text.size(); }
  std::string error() const {
    put_bytes(dir / "m.gguf", bytes);
    const std::string place = (dir / "m.gguf").string() + ": ",
                      error = error_of([&] { open_tensors(dir / "m.gguf"); });
    return error.starts_with(place) ? error.substr(place.size()) : error;
  }
  std::string bytes;
  support::TemporaryDirectory dir;
};

TEST(Gguf, HeadersThatLieAreRefusedInOneLine) {
  const auto with = [](const auto& change) {
    Damaged file("blocks.gguf");
    change(file);
    return file.error();
  };
  const std::size_t size = bytes_of(gguf_files + "blocks.gguf").size();
  EXPECT_EQ(with([](Damaged& f) { f.put(4, 9, 4); }), "expected GGUF of version 2 or 3, got 9");
  EXPECT_EQ(
      with([](Damaged& f) { f.put(8, ~0ull, 8); }),
      "expected at most " + std::to_string((size - 16) / 24) + " tensors, it claims 18446744073709551615");
  EXPECT_EQ(with([](Damaged& f) { f.put(16, 1ull << 40, 8); }),
            "expected at most " + std::to_string((size - 24) / 13) + " keys, it claims 1099511627776");
  EXPECT_EQ(with([&](Damaged& f) { f.put(24, 1ull << 60, 8); }),
            "expected a text of at most " + std::to_string(size - 32) +
                " bytes at byte 24, it claims 1152921504606846976");
  EXPECT_EQ(with([](Damaged& f) { f.put(f.after("Q4_0") + 4, 500, 8); }),
            "Q4_0: expected rows of a multiple of 32 numbers, got [3, 500]");
  EXPECT_EQ(with([](Damaged& f) { f.put(f.after("Q6_K") + 12, 1ull << 61, 8); }),
            "Q6_K: expected rows of a multiple of 256 numbers, got [2305843009213693952, 512]");
  EXPECT_EQ(
      with([](Damaged& f) { f.put(f.after("Q6_K") + 20, 11, 4); }),
      "Q6_K: expected F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K, got type 11 of GGUF");
  EXPECT_EQ(with([](Damaged& f) { f.bytes[f.bytes.find("Q4_1") + 3] = '0'; }),
            "Q4_0: expected once, got twice");
  EXPECT_NE(
      with([](Damaged& f) { f.put(f.after("Q6_K") + 24, 1ull << 62, 8); }).find("of the data, which are"),
      std::string::npos);
}

TEST(Gguf, TruncatedFilesAreRefused) {
  Damaged file("blocks.gguf");
  const std::string whole = file.bytes;
  for (const std::size_t length : {0u, 3u, 10u, 23u, 30u, 100u, 300u, 2000u}) {
    file.bytes = whole.substr(0, length);
    EXPECT_NE(file.error(), "no error") << length;
  }
  file.bytes.resize(0);
  for (std::size_t at = 24; at < 600; at += 7) {  // one changed byte of the header
    file.bytes = whole;
    file.bytes[at] = static_cast<char>(file.bytes[at] ^ 0x80);
    EXPECT_EQ(file.error().find('\n'), std::string::npos) << at;
  }
}

TEST(Gguf, NumbersOf64BitsStayWhatTheyAre) {
  const std::vector<double> numbers{0.1, 1e300, -5e-324};
  std::string bytes = "GGUF";
  const auto put = [&](std::uint64_t number, std::size_t n_bytes) {
    for (std::size_t k = 0; k < n_bytes; ++k) bytes += static_cast<char>(number >> 8 * k);
  };
  put(3, 4), put(1, 8), put(0, 8);              // version, tensors, keys
  put(1, 8), bytes += "w";                      // its name
  put(1, 4), put(3, 8), put(28, 4), put(0, 8);  // one dimension of 3, type F64, offset
  bytes.resize((bytes.size() + 31) / 32 * 32);
  for (const double number : numbers) put(std::bit_cast<std::uint64_t>(number), 8);
  const support::TemporaryDirectory dir;
  put_bytes(dir / "m.gguf", bytes);
  const TensorFile file = open_tensors(dir / "m.gguf");
  EXPECT_EQ(file.info("w").dtype, Dtype::f64);
  EXPECT_EQ(file.read("w").dtype, Dtype::f64);
  EXPECT_EQ(file.read("w").numbers, numbers);
  EXPECT_EQ(file.read("w", std::array{std::size_t{1}}).numbers, std::vector<double>{1e300});
}

}  // namespace
}  // namespace core::formats
