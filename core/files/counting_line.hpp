#pragma once

#include <string>

#include "core/files/tensor_file.hpp"

/// Tables whose first line is 0, 1, 2 … or 1, 2, 3 …: names of columns, or numbers like the others.
namespace core::formats {

/// Whether a file is a table of which that is to be asked. Throws core::Error as TensorFile::read() does.
bool has_counting_line(const TensorFile& file, const core::Token& progress);

/// The file with such first lines as names of columns, which are no numbers of the tensors any more.
///
/// Throws core::Error when it has none.
TensorFile with_first_line_as_names(const TensorFile& file, const core::Token& progress);

/// "the first line of attn, 0, 1 …" where a tensor of such a file has one, else "".
std::string counting_line_words(const TensorFile& file, const Tensor& tensor);

}  // namespace core::formats
