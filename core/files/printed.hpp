#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/files/tensor_file.hpp"

namespace core::formats::readers {

/// Whether a text begins as PyTorch, NumPy or JSON write a list of numbers.
bool looks_printed(std::string_view begin);

/// Reads a tensor as PyTorch and NumPy print it, or JSON writes it: nested brackets of any depth, with commas
/// or without; tensor(…, dtype=…, device=…, grad_fn=…), array(…), "Parameter containing:" and "name = "
/// before it.
///
/// nan, inf, True and False are numbers; dtype= is kept, and without it PyTorch's float32 and NumPy's float64
/// are meant. Throws core::Error, "PLACEline 2, column 5: expected …", for what is no number, lists of
/// unequal length and what was printed with "...".
Tensor parse_printed(std::string_view text, const std::string& place);

/// Reads what people copy: a printed tensor, or else a table.
Tensor parse_numbers(std::string_view text, const std::string& place, bool decimal_comma = false);

/// Opens a text file of numbers, printed or as a table.
TensorFile open_text(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
