#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/files/tensor.hpp"

namespace core::formats {

// Tables whose first line is 0, 1, 2 … or 1, 2, 3 …: names of columns, or numbers like the others.

/// Returns whether a file is a table with such a first line. Throws core::Error as TensorFile::read() does.
bool has_index_header(const TensorFile& file, const core::StopToken& progress);

/// Returns the file with such first lines as names of columns instead of numbers.
///
/// Throws core::Error when it has none.
TensorFile with_index_header_as_names(const TensorFile& file, const core::StopToken& progress);

/// Returns "the first line of attn, 0, 1 …" if a tensor of such a file has one, else "".
std::string index_header_words(const TensorFile& file, const Tensor& tensor);

}  // namespace core::formats

namespace core::formats::readers {

/// Returns the number in a field, which may have spaces around it, a leading plus or the sign −; nan, inf and
/// infinity in any case; nothing for anything else and for numbers beyond float64.
std::optional<double> parse_number_field(std::string_view field, bool decimal_comma = false);

/// Returns half a unit of a decimal's last digit: 0.00005 for "0.1234"; 0 for whole numbers and words.
double half_last_digit(std::string_view field);

/// Reads a tensor as printed by PyTorch or NumPy, or written as JSON: nested brackets, with or without
/// commas, after "Parameter containing:" and "name = ", in tensor(…, dtype=…, device=…, grad_fn=…) or
/// array(…).
///
/// nan, inf, True and False are numbers; dtype= is kept, and without it fractions are PyTorch's float32 or
/// NumPy's float64. Throws core::Error, "PLACEline 2, column 5: expected …", for anything that is not a
/// number, lists of unequal length and output abbreviated with "...".
Tensor parse_printed(std::string_view text, const std::string& place);

/// Reads copied text: a printed tensor, or else a table.
Tensor parse_numbers(std::string_view text, const std::string& place, bool decimal_comma = false);

/// Opens a text file of numbers, printed or as a table.
TensorFile open_text(const std::filesystem::path& path, const StopToken& progress);

/// Format of a table of numbers; missing values are detected.
struct TableRules {
  std::optional<char> separator;   ///< a space means any number of spaces and tabs
  std::optional<bool> header;      ///< whether the first line names the columns
  std::optional<bool> row_labels;  ///< whether the first column names the rows
  bool decimal_comma = false;      ///< "0,5" is a half; then a comma is a separator only if it is given
};

/// Reads a table of numbers, such as a CSV file or a block copied from a spreadsheet: [rows, columns].
///
/// Fields may be quoted, lines end with LF or CR LF. Detects the separator (the first of tab, semicolon,
/// comma, space that splits the first lines into equally many fields), a header (its first field is empty, or
/// none of its fields is a number) and row labels (the first field of the header is empty or missing, or that
/// of the first row is not a number). place begins every message: "FILE: line 3, column 2: expected a number,
/// got …". Throws core::Error for anything that is not a number, rows of unequal length and unclosed quotes.
/// Source: RFC 4180.
Tensor parse_table(std::string_view text, const std::string& place, const TableRules& rules = {});

/// Opens a table file; .tsv is separated by tabs.
TensorFile open_table(const std::filesystem::path& path, const StopToken& progress);

}  // namespace core::formats::readers
