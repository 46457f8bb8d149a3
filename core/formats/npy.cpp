#include "core/formats/npy.hpp"

#include <bit>
#include <cstdint>

namespace core::formats {
namespace {

constexpr std::size_t alignment = 64;  // of the first number, so that the file can be mapped into memory

template <class Unsigned>
void append_little_endian(std::string& bytes, Unsigned value) {
  for (std::size_t k = 0; k < sizeof value; ++k) bytes += static_cast<char>(value >> (8 * k) & 0xff);
}

}  // namespace

std::string npy_bytes(const arma::mat& matrix) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(matrix.n_rows) +
                       ", " + std::to_string(matrix.n_cols) + "), }";
  constexpr std::size_t before_header = 10;
  while ((before_header + header.size() + 1) % alignment != 0) header += ' ';
  header += '\n';

  std::string bytes("\x93NUMPY\x01\x00", 8);
  append_little_endian(bytes, static_cast<std::uint16_t>(header.size()));
  bytes += header;
  bytes.reserve(bytes.size() + matrix.n_elem * sizeof(double));
  for (std::size_t i = 0; i < matrix.n_rows; ++i)
    for (std::size_t j = 0; j < matrix.n_cols; ++j)
      append_little_endian(bytes, std::bit_cast<std::uint64_t>(matrix(i, j)));
  return bytes;
}

}  // namespace core::formats
