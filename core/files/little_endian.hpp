#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace core::formats {

/// Appends an unsigned number in little-endian order, on any machine.
template <class Unsigned>
void append_little_endian(std::string& bytes, Unsigned value) {
  for (std::size_t k = 0; k < sizeof value; ++k) bytes += static_cast<char>(value >> (8 * k) & 0xff);
}

/// Returns the number in up to eight little-endian bytes.
inline std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t k = bytes.size(); k-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[k]);
  return number;
}

}  // namespace core::formats
