#include "core/files/table.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/files/printed.hpp"
#include "core/system/file.hpp"

namespace core::formats::readers {

namespace {

constexpr std::string_view surrounding_spaces = " \t\r";

/// A number's text without its sign, and the sign.
struct SignAndText {
  std::string text;
  bool negative = false;
};

std::optional<SignAndText> split_sign(std::string_view field, bool decimal_comma) {
  field = text::trimmed(field, surrounding_spaces);
  bool negative = false;
  for (const std::string_view sign : {"+", "-", "−"}) {
    if (!field.starts_with(sign)) continue;
    negative = sign != "+";
    field.remove_prefix(sign.size());
    break;
  }
  if (field.empty() || field.front() == '-' || field.front() == '+') return std::nullopt;
  std::string text = text::lower(field);
  if (text == "infinity") text = "inf";
  if (decimal_comma)
    if (const std::size_t comma = text.find(','); comma != text.npos) text[comma] = '.';
  return SignAndText{std::move(text), negative};
}

/// Returns whether a field is a number beyond float64.
bool is_written_beyond_float64(std::string_view field, bool decimal_comma) {
  const auto decimal = split_sign(field, decimal_comma);
  return decimal && text::is_beyond_float64(decimal->text);
}

}  // namespace

std::string utf8_text(std::string bytes) {
  const bool is_little_endian = bytes.starts_with("\xFF\xFE");
  if (!is_little_endian && !bytes.starts_with("\xFE\xFF")) return bytes;
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(bytes[at]),
               second = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<char32_t>(is_little_endian ? first | second << 8 : first << 8 | second);
  };
  const auto is_surrogate = [](char32_t c, char32_t begin) { return c >= begin && c < begin + 0x400; };
  std::string text;
  for (std::size_t at = 2; at + 1 < bytes.size(); at += 2) {
    char32_t c = unit(at);
    const bool is_pair =
        is_surrogate(c, 0xD800) && at + 3 < bytes.size() && is_surrogate(unit(at + 2), 0xDC00);
    if (is_pair) c = 0x10000 + ((c - 0xD800) << 10) + (unit(at += 2) - 0xDC00);
    text::append_character(text, c);
  }
  return text;
}

std::optional<double> parse_number_field(std::string_view field, bool decimal_comma) {
  const auto decimal = split_sign(field, decimal_comma);
  const auto number = decimal ? text::parse_number(decimal->text) : std::nullopt;
  if (!number) return std::nullopt;
  return decimal->negative ? -*number : *number;
}

double half_last_digit(std::string_view field) {
  field = text::trimmed(field, surrounding_spaces);
  const std::size_t point = field.find_first_of(".,");
  const std::size_t exponent_at = std::min(field.find_first_of("eE"), field.size());
  if (point == field.npos || point > exponent_at) return 0;
  std::string_view digits = field.substr(std::min(exponent_at + 1, field.size()));
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const double exponent = text::parse_number(digits).value_or(0);  // may exceed every integer type
  return 0.5 * std::pow(10.0, exponent - static_cast<double>(exponent_at - point - 1));
}

namespace {

constexpr std::size_t max_fields = 1 << 20;  // in memory a field takes many times its bytes

/// A record of a table: its fields without their quotes, and its first line, counted from 1.
struct Record {
  std::vector<std::string> fields;
  std::size_t line = 1;
};

/// Splitter of a text into records; skips empty lines.
class RecordReader {
 public:
  /// place begins every message. A space as separator means any number of spaces and tabs.
  RecordReader(std::string_view text, char separator, std::string place)
      : rest_(text::without_byte_order_mark(text)), separator_(separator), place_(std::move(place)) {}

  /// Returns the next record, or nothing at the end. Throws core::Error for an unclosed quote or text after
  /// one.
  std::optional<Record> next() {
    for (;;) {  // skip empty lines
      const std::string_view before = rest_;
      skip_spaces();
      if (rest_.empty()) return std::nullopt;
      if (!ends_line()) {
        if (separator_ != ' ') rest_ = before;
        break;
      }
      end_line();
    }
    Record record;
    record.line = line_;
    for (;;) {
      if (record.fields.size() == max_fields)
        throw Error(
            fmt::format("{}line {}: expected at most {} fields, got more", place_, line_, max_fields));
      record.fields.push_back(field());
      if (separator_ == ' ') skip_spaces();
      if (ends_line()) break;
      if (separator_ != ' ') {
        rest_.remove_prefix(1);  // only the separator can follow a field
      }
    }
    end_line();
    return record;
  }

 private:
  bool ends_line() const { return rest_.empty() || rest_.front() == '\n' || rest_.starts_with("\r\n"); }
  bool is_separator(char c) const { return c == separator_ || (separator_ == ' ' && c == '\t'); }

  void skip_spaces() {
    const auto end = std::ranges::find_if_not(
        rest_, [&](char c) { return c == ' ' || (c == '\t' && separator_ != '\t'); });
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.begin()));
  }

  void end_line() {
    rest_.remove_prefix(std::min<std::size_t>(rest_.starts_with("\r\n") ? 2 : 1, rest_.size()));
    ++line_;
  }

  std::string field() {
    if (rest_.starts_with('"')) return quoted();
    std::size_t length = 0;
    while (length < rest_.size() && rest_[length] != '\n' && !rest_.substr(length).starts_with("\r\n") &&
           !is_separator(rest_[length]))
      ++length;
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return std::string(text);
  }

  std::string quoted() {
    const std::size_t first_line = line_;
    std::string text;
    rest_.remove_prefix(1);
    for (;;) {
      const std::size_t end = rest_.find('"');
      if (end == rest_.npos)
        throw Error(
            fmt::format("{}line {}: expected a closing quote, got the end of the text", place_, first_line));
      text += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (!rest_.starts_with('"')) break;
      text += '"';
      rest_.remove_prefix(1);
    }
    line_ += static_cast<std::size_t>(std::ranges::count(text, '\n'));
    if (!ends_line() && !is_separator(rest_.front()))
      throw Error(fmt::format("{}line {}: expected a separator after a closing quote", place_, line_));
    return text;
  }

  std::string_view rest_;
  char separator_;
  std::string place_;
  std::size_t line_ = 1;
};

enum class SeparatorFit { absent, uneven, even };

/// Returns whether a separator occurs in the first lines and splits them into equally many fields; a header
/// may have one less.
SeparatorFit separator_fit(std::string_view text, char separator) {
  constexpr int looked_at = 20;
  std::size_t first = 0, n_fields = 0;
  bool occurs = false;
  try {
    RecordReader records(text, separator, "");
    for (int k = 0; k < looked_at; ++k) {
      const auto record = records.next();
      if (!record) break;
      const std::size_t n = record->fields.size();
      occurs = occurs || n > 1;
      if (k == 0) first = n;
      if (k == 1) n_fields = n;
      if (k == 1 ? n != first && n != first + 1 : k > 1 && n != n_fields)
        return occurs ? SeparatorFit::uneven : SeparatorFit::absent;
    }
  } catch (const Error&) {
    return SeparatorFit::uneven;  // with this separator quotes do not match
  }
  return occurs ? SeparatorFit::even : SeparatorFit::absent;
}

/// Returns the first of tab, semicolon, comma (if allowed) and space that splits the first lines into equally
/// many fields, or else the first that occurs.
char detect_separator(std::string_view text, bool comma) {
  std::vector<char> candidates{'\t', ';'};
  if (comma) candidates.push_back(',');
  candidates.push_back(' ');
  for (const SeparatorFit wanted : {SeparatorFit::even, SeparatorFit::uneven})
    for (const char c : candidates)
      if (separator_fit(text, c) == wanted) return c;
  return ',';
}

constexpr std::size_t max_text_file_bytes = std::size_t{512} << 20;

/// Returns whether a field is a number, with either decimal mark: no name.
bool is_number(const std::string& field) {
  return std::ranges::any_of(std::array{false, true}, [&](bool decimal_comma) {
    return parse_number_field(field, decimal_comma) || is_written_beyond_float64(field, decimal_comma);
  });
}

/// Returns whether a field marks a missing number.
bool is_missing(const std::string& field) {
  constexpr std::array<std::string_view, 9> words{"na",  "n/a",     "#n/a", "null", "none",
                                                  "nil", "missing", "-",    "?"};
  return std::ranges::find(words, text::lower(field)) != words.end();
}

/// Returns whether a field marks a missing number or is a malformed one: "NA", "1e-05f", "1.0.0".
bool is_malformed_number(const std::string& field) {
  const std::size_t begin = field.find_first_not_of("+-.");
  const bool begins = begin != field.npos && begin < 3 && text::is_digit(field[begin]);
  return (begins || is_missing(field)) && !is_number(field);
}

bool looks_like_header(const Record& record, const TableRules& rules) {
  if (rules.header) return *rules.header;
  if (record.fields.front().empty() && record.fields.size() > 1) return true;
  return std::ranges::none_of(record.fields, [&](const std::string& f) { return f.empty() || is_number(f); });
}

/// Returns whether the header has one field less than the row, or an empty first one.
bool implies_labels(const Record* header, const Record& row) {
  return header && (header->fields.front().empty() || header->fields.size() + 1 == row.fields.size());
}

bool looks_labeled(const Record* header, const Record& row, const TableRules& rules) {
  if (rules.row_labels) return *rules.row_labels;
  if (row.fields.size() < 2) return false;
  if (implies_labels(header, row)) return true;
  return !row.fields.front().empty() && !is_number(row.fields.front());
}

[[noreturn]] void fail(const std::string& place, std::size_t line, const std::string& what) {
  throw Error(fmt::format("{}line {}{}", place, line, what));
}
[[noreturn]] void fail(const std::string& place, std::size_t line, std::size_t column,
                       const std::string& expected, const std::string& field) {
  fail(place, line, fmt::format(", column {}: expected {}, got {}", column, expected, quoted_briefly(field)));
}

/// Throws core::Error unless a name is UTF-8, so that it can be shown and saved as a token.
void check_name(const std::string& name, const std::string& place, std::size_t line, std::size_t column) {
  if (!text::is_utf8(name)) fail(place, line, column, "a name in UTF-8", name);
}

/// Returns a name without the "'" that csv_text() adds before a spreadsheet formula.
std::string name_of(const std::string& field) {
  const std::size_t begin = field.find_first_not_of('\'');
  const bool is_marked = begin != field.npos && begin > 0 &&
                         std::string_view("=+-@\t\r").find(field[begin]) != std::string_view::npos;
  return field.substr(is_marked ? 1 : 0);
}

/// Appends the numbers of a row; first is the index of the first number's field.
void read_row(const Record& row, std::size_t first, const TableRules& rules, const std::string& place,
              Tensor& tensor) {
  for (std::size_t k = first; k < row.fields.size(); ++k) {
    const std::string& field = row.fields[k];
    const auto number = parse_number_field(field, rules.decimal_comma);
    if (!number && is_written_beyond_float64(field, rules.decimal_comma))
      fail(place, row.line, k + 1, "a number within float64", field);
    if (!number && !rules.decimal_comma && parse_number_field(field, true))
      fail(place, row.line,
           fmt::format(", column {}: expected a number with a decimal point, got {}; for decimal commas give "
                       "--decimal-comma, or choose them in the dialog",
                       k + 1, quoted_briefly(field)));
    if (!number) fail(place, row.line, k + 1, "a number", field);
    tensor.numbers.push_back(*number);
    tensor.printed_precision = std::max(tensor.printed_precision, half_last_digit(field));
  }
}

/// Reads a whole text file of tensors, up to a size that cannot fill the memory.
std::string read_text_file(const std::filesystem::path& path, const StopToken& progress) {
  progress.add(0);
  std::string text = utf8_text(system::read_file(path, max_text_file_bytes));
  progress.add(text.size());
  return text;
}

/// Returns a file with one tensor, named like the file.
TensorFile file_of(const std::filesystem::path& path, const char* format, Tensor tensor) {
  tensor.name = path.stem().string();
  return {path, format, {make_entry(std::move(tensor))}};
}

}  // namespace

Tensor parse_table(std::string_view text, const std::string& place, const TableRules& rules) {
  RecordReader records(text, rules.separator.value_or(detect_separator(text, !rules.decimal_comma)), place);
  auto first = records.next();
  if (!first) throw Error(place + "expected numbers, got nothing");
  Tensor tensor;
  std::optional<Record> header;
  if (looks_like_header(*first, rules)) header = std::exchange(first, records.next());
  if (header && !rules.header && std::ranges::all_of(header->fields, is_missing))
    fail(place, header->line, 1, "a number", header->fields.front());
  if (!first) throw Error(place + "expected numbers, got only a line of names");
  const bool labeled = looks_labeled(header ? &*header : nullptr, *first, rules);
  const std::size_t n_fields = first->fields.size(), n_columns = n_fields - labeled;
  std::size_t n_rows = 0;
  const std::size_t first_line = first->line;
  const std::string first_field = first->fields.front();
  // Only this field suggests that its column holds names, and it may be a malformed number.
  const bool is_doubtful = labeled && !rules.row_labels &&
                           !implies_labels(header ? &*header : nullptr, *first) &&
                           is_malformed_number(first_field);
  for (std::optional<Record> row = std::move(first); row; row = records.next(), ++n_rows) {
    if (is_doubtful && is_number(row->fields.front())) fail(place, first_line, 1, "a number", first_field);
    if (labeled) {
      check_name(row->fields.front(), place, row->line, 1);
      tensor.row_labels.push_back(name_of(row->fields.front()));
    }
    read_row(*row, labeled, rules, place, tensor);
    if (row->fields.size() != n_fields)
      fail(place, row->line,
           fmt::format(": expected {} fields as in line {}, got {}", n_fields, first_line,
                       row->fields.size()));
  }
  tensor.shape = {n_rows, n_columns};
  if (!header) return tensor;
  for (std::size_t k = 0; k < header->fields.size(); ++k)
    check_name(header->fields[k], place, header->line, k + 1);
  for (const std::string& field : header->fields) tensor.column_labels.push_back(name_of(field));
  if (tensor.column_labels.size() == n_columns + 1 && labeled)
    tensor.column_labels.erase(tensor.column_labels.begin());
  if (tensor.column_labels.size() != n_columns)
    fail(place, header->line,
         fmt::format(": expected {} names of columns, got {}", n_columns, tensor.column_labels.size()));
  return tensor;
}

Tensor parse_numbers(std::string_view text, const std::string& place, bool decimal_comma) {
  if (looks_printed(text)) return parse_printed(text, place);
  TableRules rules;
  rules.decimal_comma = decimal_comma;
  return parse_table(text, place, rules);
}

TensorFile open_text(const std::filesystem::path& path, const StopToken& progress, DecimalMark mark) {
  return file_of(
      path, "text",
      parse_numbers(read_text_file(path, progress), path.string() + ": ", mark == DecimalMark::comma));
}

TensorFile open_table(const std::filesystem::path& path, const StopToken& progress, DecimalMark mark) {
  TableRules rules;
  rules.decimal_comma = mark == DecimalMark::comma;
  if (path.extension() == ".tsv") rules.separator = '\t';
  return file_of(path, "table", parse_table(read_text_file(path, progress), path.string() + ": ", rules));
}

}  // namespace core::formats::readers

namespace core::formats {

namespace {

bool is_of_tables(const TensorFile& file) {
  const std::string_view format = file.format();
  return format == "table" || format == "folder";
}

/// Returns whether n numbers, each a step after the last, are 0, 1, 2 … or 1, 2, 3 …
bool counts(const Tensor& tensor, std::size_t n, std::size_t step) {
  const double first = tensor.numbers.front();
  if (first != 0 && (first != 1 || n == 2)) return false;  // 1, 2 may be any numbers
  for (std::size_t k = 0; k < n; ++k)
    if (tensor.numbers[k * step] != first + static_cast<double>(k)) return false;
  return true;
}

bool can_have_index(const TensorInfo& info) {
  return info.dtype != Dtype::text && info.shape.size() == 2 && info.shape[0] > 1 && info.shape[1] > 1;
}

TableIndex index_of(const Tensor& tensor) {
  if (!can_have_index(tensor)) return {};
  const std::size_t n_rows = tensor.shape[0], n_columns = tensor.shape[1];
  return {tensor.column_labels.empty() && counts(tensor, n_columns, 1),
          tensor.row_labels.empty() && n_rows > 2 && counts(tensor, n_rows, n_columns)};
}

/// Returns which tensors of a table or folder have such a first line or column, by their names.
std::map<std::string, TableIndex> indices_of(const TensorFile& file, const core::StopToken& progress) {
  std::map<std::string, TableIndex> found;
  if (!is_of_tables(file)) return found;
  for (const TensorInfo& info : file.tensors())
    if (can_have_index(info))
      if (const TableIndex index = index_of(file.read(info.name, {}, progress)); index.any())
        found.emplace(info.name, index);
  return found;
}

Tensor with_names(const Tensor& tensor, TableIndex names) {
  Tensor named = tensor;
  const std::size_t n_columns = tensor.shape[1];
  named.numbers.clear();
  for (std::size_t k = 0; k < tensor.numbers.size(); ++k) {
    const bool is_in_line = names.line && k < n_columns, is_in_column = names.column && k % n_columns == 0;
    const std::string text = is_in_line || is_in_column ? text::number_text(tensor.numbers[k]) : "";
    if (is_in_line && !is_in_column) named.column_labels.push_back(text);
    if (is_in_column && !is_in_line) named.row_labels.push_back(text);
    if (!is_in_line && !is_in_column) named.numbers.push_back(tensor.numbers[k]);
  }
  if (names.line && !tensor.row_labels.empty()) named.row_labels.erase(named.row_labels.begin());
  if (names.column && !tensor.column_labels.empty()) named.column_labels.erase(named.column_labels.begin());
  named.shape = {tensor.shape[0] - names.line, n_columns - names.column};
  return named;
}

}  // namespace

TableIndex find_index(const TensorFile& file, const core::StopToken& progress) {
  TableIndex any;
  if (std::string_view(file.format()) != "table") return any;
  for (const auto& [name, index] : indices_of(file, progress))
    any.line = any.line || index.line, any.column = any.column || index.column;
  return any;
}

TensorFile with_index_as_names(const TensorFile& file, TableIndex names, const core::StopToken& progress) {
  const auto found = indices_of(file, progress);
  TableIndex used;
  std::vector<TensorEntry> entries;
  for (const TensorInfo& info : file.tensors()) {
    const auto index = found.find(info.name);
    const TableIndex here = index == found.end() ? TableIndex()
                                                 : TableIndex{names.line && index->second.line,
                                                              names.column && index->second.column};
    used.line = used.line || here.line, used.column = used.column || here.column;
    if (here.any())
      entries.push_back(make_entry(with_names(file.read(info.name, {}, progress), here)));
    else
      entries.push_back(
          {info, [file, name = info.name](std::span<const std::size_t> leading, const core::StopToken& t) {
             return file.read(name, leading, t);
           }});
  }
  for (const auto& [wanted, is_used, where] :
       {std::tuple{names.line, used.line, "line"}, std::tuple{names.column, used.column, "column"}})
    if (wanted && !is_used)
      throw Error(
          fmt::format("{}expected a table whose first {} is 0, 1, 2 … or 1, 2, 3 …, which can be names",
                      file.place(), where));
  return {file.path(), file.format(), std::move(entries), file.notes()};
}

std::vector<std::string> index_assumptions(const TensorFile& file, const Tensor& tensor,
                                           const IndexChoice& choice) {
  std::vector<std::string> assumptions;
  if (!is_of_tables(file)) return assumptions;
  const TableIndex index = index_of(tensor);
  const auto first = static_cast<int>(index.any() ? tensor.numbers.front() : 0);
  const auto assume_numbers = [&](const char* first_of, const char* kind, const char* named) {
    assumptions.push_back(
        fmt::format("the first {0} of {1}, {2}, {3} …, is a {4} of numbers and no names of {5} "
                    "(--first-{0} says which)",
                    first_of, tensor.name, first, first + 1, kind, named));
  };
  if (index.line && !choice.line) assume_numbers("line", "row", "columns");
  if (index.column && !choice.column) assume_numbers("column", "column", "rows");
  return assumptions;
}

}  // namespace core::formats
