#include "core/files/table.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/file.hpp"
#include "core/files/json.hpp"
#include "core/files/records.hpp"
#include "core/files/written_number.hpp"

namespace core::formats::readers {
namespace {

constexpr std::size_t largest_text = std::size_t{512} << 20;

bool is_number(const std::string& field, const TableRules& rules) {
  return written_number(field, rules.decimal_comma) || is_written_beyond_float64(field, rules.decimal_comma);
}

/// What stands where a number is missing.
bool is_missing(const std::string& field) {
  constexpr std::array<std::string_view, 9> words{"na",  "n/a",     "#n/a", "null", "none",
                                                  "nil", "missing", "-",    "?"};
  return std::ranges::find(words, text::lower(field)) != words.end();
}

/// No number, though it stands for one or begins as one does: "NA", "1e-05f", "1.0.0".
bool is_spoilt_number(const std::string& field, const TableRules& rules) {
  const std::size_t begin = field.find_first_not_of("+-.");
  const bool begins = begin != field.npos && begin < 3 && text::is_digit(field[begin]);
  return (begins || is_missing(field)) && !is_number(field, rules);
}

bool looks_like_header(const Record& record, const TableRules& rules) {
  if (rules.header) return *rules.header;
  if (record.fields.front().empty() && record.fields.size() > 1) return true;
  return std::ranges::none_of(record.fields,
                              [&](const std::string& f) { return f.empty() || is_number(f, rules); });
}

/// Whether the line of names has one too few, or an empty one, for the numbers of each row.
bool says_labels(const Record* header, const Record& row) {
  return header && (header->fields.front().empty() || header->fields.size() + 1 == row.fields.size());
}

bool looks_labelled(const Record* header, const Record& row, const TableRules& rules) {
  if (rules.row_labels) return *rules.row_labels;
  if (row.fields.size() < 2) return false;
  if (says_labels(header, row)) return true;
  return !row.fields.front().empty() && !is_number(row.fields.front(), rules);
}

[[noreturn]] void fail(const std::string& place, std::size_t line, const std::string& what) {
  throw Error(place + "line " + std::to_string(line) + what);
}
[[noreturn]] void fail_number(const std::string& place, std::size_t line, const std::string& field) {
  fail(place, line, ", column 1: expected a number, got " + quoted_briefly(field));
}

/// Makes sure that a name can be shown and saved: tokens are UTF-8.
void check_name(const std::string& name, const std::string& place, std::size_t line, std::size_t column) {
  if (!text::is_utf8(name))
    fail(place, line,
         ", column " + std::to_string(column) + ": expected a name in UTF-8, got " + quoted_briefly(name));
}

/// A name as it was before "'" was put before what a spreadsheet would take for a formula; see csv_text.
std::string name_of(const std::string& field) {
  const std::size_t begin = field.find_first_not_of('\'');
  const bool is_marked = begin != field.npos && begin > 0 &&
                         std::string_view("=+-@\t\r").find(field[begin]) != std::string_view::npos;
  return field.substr(is_marked ? 1 : 0);
}

/// Appends the numbers of a row; first is the index of the first one among its fields.
void read_row(const Record& row, std::size_t first, const TableRules& rules, const std::string& place,
              Tensor& tensor) {
  for (std::size_t k = first; k < row.fields.size(); ++k) {
    const std::string& field = row.fields[k];
    const auto number = written_number(field, rules.decimal_comma);
    if (!number && is_written_beyond_float64(field, rules.decimal_comma))
      fail(place, row.line,
           ", column " + std::to_string(k + 1) + ": expected a number within float64, got " +
               quoted_briefly(field));
    if (!number) {
      const bool comma = !rules.decimal_comma && written_number(field, true).has_value();
      fail(place, row.line,
           ", column " + std::to_string(k + 1) + ": expected a number, got " + quoted_briefly(field) +
               (comma ? " (a decimal comma must be asked for)" : ""));
    }
    tensor.numbers.push_back(*number);
    tensor.printed_to = std::max(tensor.printed_to, last_digit_half(field));
  }
}

}  // namespace

Tensor parse_table(std::string_view text, const std::string& place, const TableRules& rules) {
  Records records(text, rules.separator.value_or(separator_of(text, !rules.decimal_comma)), place);
  auto first = records.next();
  if (!first) throw Error(place + "expected numbers, got nothing");
  Tensor tensor;
  std::optional<Record> header;
  if (looks_like_header(*first, rules)) header = std::exchange(first, records.next());
  if (header && !rules.header && std::ranges::all_of(header->fields, is_missing))
    fail_number(place, header->line, header->fields.front());
  if (!first) throw Error(place + "expected numbers, got only a line of names");
  const bool labelled = looks_labelled(header ? &*header : nullptr, *first, rules);
  const std::size_t n_fields = first->fields.size(), n_columns = n_fields - labelled;
  std::size_t n_rows = 0;
  const std::size_t first_line = first->line;
  const std::string first_field = first->fields.front();
  // One field alone, which may as well be a number gone wrong, says that its column is of names.
  const bool is_doubtful = labelled && !rules.row_labels &&
                           !says_labels(header ? &*header : nullptr, *first) &&
                           is_spoilt_number(first_field, rules);
  for (std::optional<Record> row = std::move(first); row; row = records.next(), ++n_rows) {
    if (is_doubtful && is_number(row->fields.front(), rules)) fail_number(place, first_line, first_field);
    if (labelled) {
      check_name(row->fields.front(), place, row->line, 1);
      tensor.row_labels.push_back(name_of(row->fields.front()));
    }
    read_row(*row, labelled, rules, place, tensor);
    if (row->fields.size() != n_fields)
      fail(place, row->line,
           ": expected " + std::to_string(n_fields) + " fields as in line " + std::to_string(first_line) +
               ", got " + std::to_string(row->fields.size()));
  }
  tensor.shape = {n_rows, n_columns};
  if (!header) return tensor;
  for (std::size_t k = 0; k < header->fields.size(); ++k)
    check_name(header->fields[k], place, header->line, k + 1);
  for (const std::string& field : header->fields) tensor.column_labels.push_back(name_of(field));
  if (tensor.column_labels.size() == n_columns + 1 && labelled)
    tensor.column_labels.erase(tensor.column_labels.begin());
  if (tensor.column_labels.size() != n_columns)
    fail(place, header->line,
         ": expected " + std::to_string(n_columns) + " names of columns, got " +
             std::to_string(tensor.column_labels.size()));
  return tensor;
}

std::string read_text_file(const std::filesystem::path& path, const Token& progress) {
  progress.add(0);
  std::string text = read_file(path, largest_text);
  progress.add(text.size());
  return text;
}

TensorFile file_of(const std::filesystem::path& path, const char* format, Tensor tensor) {
  TensorInfo info = tensor;
  std::vector<TensorFile::Entry> entries;
  entries.push_back({std::move(info), [whole = std::make_shared<const Tensor>(std::move(tensor))](
                                          std::span<const std::size_t> leading, const Token&) {
                       return part_of(*whole, leading);
                     }});
  return {path, format, std::move(entries)};
}

TensorFile open_table(const std::filesystem::path& path, const Token& progress) {
  TableRules rules;
  if (path.extension() == ".tsv") rules.separator = '\t';
  Tensor tensor = parse_table(read_text_file(path, progress), path.string() + ": ", rules);
  tensor.name = path.stem().string();
  return file_of(path, "table", std::move(tensor));
}

}  // namespace core::formats::readers
