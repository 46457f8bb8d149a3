#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/files/tensor_file.hpp"

namespace core::formats::readers {

/// How a table of numbers is written; what is not said is found out.
struct TableRules {
  std::optional<char> separator;   ///< a blank stands for any number of blanks and tabs
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

/// The whole of a text file of tensors, which may be large, but not so large as to fill the memory.
std::string read_text_file(const std::filesystem::path& path, const Token& progress);

/// A file that holds one tensor which has been read already.
TensorFile file_of(const std::filesystem::path& path, const char* format, Tensor tensor);

}  // namespace core::formats::readers
