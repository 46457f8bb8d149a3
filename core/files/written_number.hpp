#pragma once

#include <optional>
#include <string_view>

namespace core::formats::readers {

/// The number that a field stands for, as people and programs write it: blanks around it, a leading plus or
/// the sign −, nan, inf and infinity in any case; nothing for anything else and for numbers beyond float64.
std::optional<double> written_number(std::string_view field, bool decimal_comma = false);

/// Whether it would be a number if float64 could hold as large ones.
bool is_written_beyond_float64(std::string_view field, bool decimal_comma = false);

/// Half a unit of the last digit that a decimal shows: 0.00005 for "0.1234"; 0 for whole numbers and words.
double last_digit_half(std::string_view field);

}  // namespace core::formats::readers
