#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"

namespace core::formats {

/// The first line and the first column of a table where they are 0, 1, 2 … or 1, 2, 3 …: names of the columns
/// and rows, or numbers like the others.
struct TableIndex {
  bool line = false, column = false;
  bool any() const { return line || column; }
  friend bool operator==(TableIndex, TableIndex) = default;
};

/// The user's choice which of them are names; nothing where it is not known.
struct IndexChoice {
  std::optional<bool> line = {}, column = {};
  TableIndex names() const { return {line == true, column == true}; }
  friend bool operator==(const IndexChoice&, const IndexChoice&) = default;
};

/// Returns which of them a table has. Throws core::Error as TensorFile::read() does.
TableIndex find_index(const TensorFile& file, const core::StopToken& progress);

/// Returns the file with these first lines and columns as names instead of numbers.
///
/// Throws core::Error when it has none such.
TensorFile with_index_as_names(const TensorFile& file, TableIndex names, const core::StopToken& progress);

/// Returns "the first line of attn, 0, 1 …, is a row of numbers and no names of columns (--first-line says
/// which)" for each first line and column of a tensor of such a file of which nothing is said.
std::vector<std::string> index_assumptions(const TensorFile& file, const Tensor& tensor,
                                           const IndexChoice& choice);

}  // namespace core::formats

namespace core::formats::readers {

/// Returns UTF-16 text that begins with a byte order mark, as spreadsheets and PowerShell write it, in UTF-8;
/// any other text as it is.
std::string utf8_text(std::string bytes);

/// Returns the number in a field, which may have spaces around it, a leading plus or the sign −; nan, inf and
/// infinity in any case; nothing for anything else and for numbers beyond float64.
std::optional<double> parse_number_field(std::string_view field, bool decimal_comma = false);

/// Returns half a unit of a decimal's last digit: 0.00005 for "0.1234"; 0 for whole numbers and words.
double half_last_digit(std::string_view field);

/// Reads copied text: a printed tensor, or else a table.
Tensor parse_numbers(std::string_view text, const std::string& place, bool decimal_comma = false);

/// Opens a text file of numbers, printed or as a table.
TensorFile open_text(const std::filesystem::path& path, const StopToken& progress, DecimalMark mark);

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
TensorFile open_table(const std::filesystem::path& path, const StopToken& progress, DecimalMark mark);

}  // namespace core::formats::readers
