#pragma once

#include <string>
#include <string_view>

#include "core/files/tensor.hpp"

/// Tensors as programs print them.
namespace core::formats::readers {

/// Returns whether a text begins like a printed tensor, and not like a table.
bool looks_printed(std::string_view text);

/// Reads a tensor as printed by PyTorch, NumPy, TensorFlow, JAX or MLX, or written as JSON: nested brackets,
/// with or without commas, after "Parameter containing:" and "name = ", in tensor(…, dtype=…, device=…,
/// grad_fn=…) or array(…); Mathematica's braces; or rows without brackets, as MATLAB, Julia, R and PyTorch
/// before 0.4 print them, with a common factor, in blocks of columns, and matrix after matrix, which become
/// the first axis.
///
/// nan, inf, True and False are numbers; dtype= is kept, and without it fractions are PyTorch's float32 or
/// NumPy's float64. Throws core::Error, "PLACEline 2, column 5: expected …", for anything that is not a
/// number, lists of unequal length and output abbreviated with "...".
Tensor parse_printed(std::string_view text, const std::string& place);

}  // namespace core::formats::readers
