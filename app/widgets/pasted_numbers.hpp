#pragma once

#include <armadillo>
#include <string_view>

namespace app::widgets {

/// The block of numbers in a clipboard's text: rows are lines, columns are cut by tabs, commas, semicolons or
/// blanks.
///
/// Throws core::Error that names line and column, both from 1, of what is no finite number, and of rows of
/// unequal length.
arma::mat pasted_numbers(std::string_view text);

}  // namespace app::widgets
