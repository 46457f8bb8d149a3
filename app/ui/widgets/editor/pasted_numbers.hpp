#pragma once

#include <armadillo>
#include <string_view>

#include "core/files/tensor.hpp"

namespace app::widgets {

/// The matrix in a clipboard's text: a block of a spreadsheet, a table, or what PyTorch or NumPy printed.
///
/// Names of rows and columns are left out. Throws core::Error that names line and column, both from 1, of
/// what is no finite number, and of rows of unequal length.
arma::mat pasted_numbers(std::string_view text);

/// The same for any number of dimensions and any numbers, as a tensor.
core::formats::Tensor pasted_tensor(std::string_view text);

}  // namespace app::widgets
