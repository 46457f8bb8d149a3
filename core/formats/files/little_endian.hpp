#pragma once

#include <cstddef>
#include <string>

namespace core::formats {

/// Appends an unsigned number, the lowest byte first, on any machine.
template <class Unsigned>
void append_little_endian(std::string& bytes, Unsigned value) {
  for (std::size_t k = 0; k < sizeof value; ++k) bytes += static_cast<char>(value >> (8 * k) & 0xff);
}

}  // namespace core::formats
