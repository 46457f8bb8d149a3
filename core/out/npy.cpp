#include "core/out/npy.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/base/code_points.hpp"
#include "core/base/words.hpp"
#include "core/files/little_endian.hpp"

namespace core::formats {
namespace {

constexpr std::size_t alignment = 64;  // of the first number, so that the file can be mapped into memory

}  // namespace

std::string npy_header(const std::vector<std::size_t>& shape, const std::string& type) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + text::tuple_text(shape) + ", }";
  constexpr std::size_t before_header = 10;
  while ((before_header + header.size() + 1) % alignment != 0) header += ' ';
  header += '\n';

  std::string bytes("\x93NUMPY\x01\x00", 8);
  append_little_endian(bytes, static_cast<std::uint16_t>(header.size()));
  return bytes + header;
}

void append_rows(std::string& bytes, const arma::mat& matrix) {
  for (std::size_t i = 0; i < matrix.n_rows; ++i)
    for (std::size_t j = 0; j < matrix.n_cols; ++j)
      append_little_endian(bytes, std::bit_cast<std::uint64_t>(matrix(i, j)));
}

std::string npy_words(const std::vector<std::string>& words, const std::vector<std::size_t>& shape) {
  std::vector<std::u32string> all;
  std::size_t longest = 1;
  for (const std::string& word : words)
    longest = std::max(longest, all.emplace_back(text::repaired_characters(word)).size());
  std::string bytes = npy_header(shape, "<U" + std::to_string(longest));
  for (std::u32string& word : all) {
    word.resize(longest);  // with zeros, which NumPy does not count
    for (const char32_t c : word) append_little_endian(bytes, static_cast<std::uint32_t>(c));
  }
  return bytes;
}

std::string npy_bytes(const arma::mat& matrix) {
  std::string bytes = npy_header({matrix.n_rows, matrix.n_cols});
  bytes.reserve(bytes.size() + matrix.n_elem * sizeof(double));
  append_rows(bytes, matrix);
  return bytes;
}

}  // namespace core::formats
