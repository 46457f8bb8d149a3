#pragma once

#include <cstdint>
#include <optional>
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

/// The bytes of such a text; nothing where it is none.
inline std::optional<std::string> bytes_of_hexadecimal(std::string_view digits) {
  std::string bytes;
  if (digits.size() % 2 != 0) return std::nullopt;
  for (std::size_t k = 0; k < digits.size(); k += 2) {
    const std::size_t high = hexadecimal_digits.find(digits[k]), low = hexadecimal_digits.find(digits[k + 1]);
    if (high == hexadecimal_digits.npos || low == hexadecimal_digits.npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

}  // namespace core::text
