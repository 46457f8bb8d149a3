#pragma once

#include <cstddef>
#include <string>

#include "core/files/tensor.hpp"

namespace core::formats {

/// Turns count numbers of a dtype, which lie one after the other at bytes, into float64, without rounding.
///
/// Gives the index of the first 64-bit integer that float64 cannot hold, or count.
std::size_t decode_numbers(const char* bytes, Dtype dtype, bool big_endian, std::size_t count,
                           double* numbers);

/// A NumPy text of UTF-32 as UTF-8, without the zeros that fill it up; what is no character becomes U+FFFD.
std::string decode_utf32(const char* bytes, std::size_t n_bytes, bool big_endian);

}  // namespace core::formats
