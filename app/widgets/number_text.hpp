#pragma once

#include <armadillo>
#include <cstddef>
#include <optional>
#include <string>

namespace app::widgets {

/// A number with so many decimals: U+2212 for minus, "0" for an exact zero, "−∞", "∞", "NaN".
std::string number_text(double number, int decimals);

/// The decimals that a block of a matrix is shown with: the most, up to 4, with which each number is at most
/// `letters` wide, less the zeros that all of them end in; −1 when not even whole numbers fit.
///
/// The block's ends are exclusive; infinities and NaN do not count.
int shared_decimals(const arma::mat& numbers, std::size_t first_row, std::size_t end_row, std::size_t first_column,
                    std::size_t end_column, int letters);

/// The largest |v| of the finite numbers, or 0.
double largest_magnitude(const arma::mat& numbers);

/// The number that a person typed, or nothing when it is none or not finite; "−", "+", blanks around and a comma are understood.
std::optional<double> read_number(std::string text);

}  // namespace app::widgets
