#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace core::text {

/// The shortest decimal that reads back to the same double: "0.1", "-0", "1e+23", "-inf", "inf", "nan".
std::string number_text(double number);

/// The same for people: a number that float32 holds exactly is told by float32's own shortest decimal where
/// that is shorter: "0.15 (float32)", which is 0.15000000596046448.
std::string told_number(double number);

/// Appends number_text(number) without a string of its own; what long files are written with.
void append_number(std::string& text, double number);

/// The number that the whole of the text stands for, or nothing.
///
/// Decimals as number_text writes them, in any locale; no blanks, no leading plus, no hexadecimal; nothing
/// for numbers beyond the range of float64, 0 for those that are too small for it.
std::optional<double> parse_number(std::string_view text);

/// Whether the whole of a text is such a decimal, of a number too large for float64.
bool is_beyond_float64(std::string_view text);

/// The whole number from 0 to 2^64 - 1 that the whole of the text stands for, in digits alone, or nothing.
std::optional<std::uint64_t> parse_whole_number(std::string_view text);

/// The same of what the text begins with, which is taken off it; else the text stays.
std::optional<std::uint64_t> take_whole_number(std::string_view& text);

}  // namespace core::text
