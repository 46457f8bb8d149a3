#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace core::text {

constexpr std::string_view hexadecimal_digits = "0123456789abcdef";

/// The last digits of a number, as many as asked for.
inline std::string hexadecimal(std::uint64_t number, int n_digits) {
  std::string text;
  for (int shift = 4 * (n_digits - 1); shift >= 0; shift -= 4)
    text += hexadecimal_digits[number >> shift & 15];
  return text;
}

/// Two digits for each byte.
inline std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += hexadecimal(static_cast<unsigned char>(c), 2);
  return text;
}

}  // namespace core::text
