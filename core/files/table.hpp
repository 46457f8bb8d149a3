#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/files/tensor.hpp"

namespace core::formats {

// Tables whose first line is 0, 1, 2 … or 1, 2, 3 …: names of columns, or numbers like the others.

/// Whether a file is a table of which that is to be asked. Throws core::Error as TensorFile::read() does.
bool has_index_header(const TensorFile& file, const core::Token& progress);

/// The file with such first lines as names of columns, which are no numbers of the tensors any more.
///
/// Throws core::Error when it has none.
TensorFile with_index_header_as_names(const TensorFile& file, const core::Token& progress);

/// "the first line of attn, 0, 1 …" where a tensor of such a file has one, else "".
std::string index_header_words(const TensorFile& file, const Tensor& tensor);

}  // namespace core::formats

namespace core::formats::readers {

/// The number in a field, as people and programs write it: blanks around it, a leading plus or
/// the sign −, nan, inf and infinity in any case; nothing for anything else and for numbers beyond float64.
std::optional<double> written_number(std::string_view field, bool decimal_comma = false);

/// Half a unit of the last digit that a decimal shows: 0.00005 for "0.1234"; 0 for whole numbers and words.
double last_digit_half(std::string_view field);

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

/// How a table of numbers is written; what is not said is found out.
struct TableRules {
  std::optional<char> separator;   ///< a blank means any number of blanks and tabs
  std::optional<bool> header;      ///< whether the first line names the columns
  std::optional<bool> row_labels;  ///< whether the first column names the rows
  bool decimal_comma = false;      ///< "0,5" is a half; then a comma separates nothing unless that is said
};

/// Reads a table of numbers, such as a CSV file or a block copied from a spreadsheet: [rows, columns].
///
/// Fields may be quoted, lines end with LF or CR LF. Found out are the separator (the first of tab,
/// semicolon, comma, blank that cuts the lines into equally many fields), a header (its first field is empty,
/// or none of its fields is a number) and row labels (the first field of the header is empty or missing, or
/// that of the first row is no number). place begins every message: "FILE: line 3, column 2: expected a
/// number, got …". Throws core::Error for what is no number, rows of unequal length and quotes that do not
/// close. Source: RFC 4180.
Tensor parse_table(std::string_view text, const std::string& place, const TableRules& rules = {});

/// Opens a table file; .tsv is separated by tabs.
TensorFile open_table(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
