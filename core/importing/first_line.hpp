#pragma once

#include <optional>

#include "core/formats/tensors/tensor_file.hpp"
#include "core/importing/account.hpp"

/// Tables whose first line is 0, 1, 2 … or 1, 2, 3 …: names of columns, or numbers like the others.
namespace core::importing {

/// Whether a file is a table of which that is to be asked. Throws core::Error as TensorFile::read() does.
bool has_counting_line(const formats::TensorFile& file, const core::Token& progress);

/// The file with such first lines as names of columns, which are no numbers of the tensors any more.
///
/// Throws core::Error when it has none.
formats::TensorFile with_first_line_as_names(const formats::TensorFile& file, const core::Token& progress);

/// Says of such a table, when nobody has said what its first line is, that it was taken for numbers.
void note_counting_line(const formats::TensorFile& file, const formats::Tensor& tensor,
                        const std::optional<bool>& said, Account& account);

}  // namespace core::importing
