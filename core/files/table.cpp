#include "core/files/table.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
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

constexpr std::string_view whitespace = " \t\r\n";

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

/// Returns the dtype with a name, which may follow torch., np. or numpy.
std::optional<Dtype> parse_dtype(std::string_view word) {
  for (const std::string_view prefix : {"torch.", "np.", "numpy."})
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  return find_dtype(word, &DtypeNames::name);
}

class PrintedParser {
 public:
  PrintedParser(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  Tensor tensor() {
    skip_prefix_words();
    const bool is_call = accept('(');
    const bool is_torch = is_call && word_.ends_with("tensor");
    if (next() == '[')
      list(0);
    else if (is_call)
      number();
    else
      fail("'['");
    tensor_.dtype = !has_numbers_ && !tensor_.numbers.empty() ? Dtype::boolean
                    : !has_fractions_ && is_call              ? Dtype::i64
                    : is_torch                                ? Dtype::f32
                                                              : Dtype::f64;
    if (is_call) rest_of_call();
    if (next() != '\0') fail("nothing after the numbers");
    return std::move(tensor_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string_view rest = text_.substr(at_);
    const std::string_view found =
        rest.substr(0, std::max<std::size_t>(1, rest.find_first_of(" \t\r\n,[]()")));
    throw Error(place_ + text::line_and_column(text_, at_) + ": expected " + expected + ", got " +
                (rest.empty() ? "the end of the text" : quoted_briefly(found)));
  }

  /// Skips white space and returns the next character, or 0 at the end.
  char next() {
    at_ = std::min(text_.find_first_not_of(whitespace, at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  std::string_view take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word_character(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// Skips "weights = torch.tensor" or "Parameter containing: tensor"; keeps the last word.
  void skip_prefix_words() {
    while (is_word_character(next()) || next() == '=' || next() == ':') {
      if (const std::string_view word = take_word(); !word.empty())
        word_ = word;
      else
        ++at_;
    }
  }

  void list(std::size_t depth) {
    if (depth == max_dimensions) fail(fmt::format("at most {} dimensions", max_dimensions));
    const std::size_t begin = at_++;
    std::size_t count = 0;
    for (; next() != ']'; ++count) {
      if (next() == '\0') fail("']'");
      refuse_ellipsis();
      if (next() == '[') {
        if (depth_of_numbers_ && depth + 1 >= *depth_of_numbers_) fail("a number");
        list(depth + 1);
      } else {
        if (depth_of_numbers_.value_or(depth + 1) != depth + 1 || tensor_.shape.size() > depth + 1)
          fail("'['");
        depth_of_numbers_ = depth + 1;
        number();
      }
      if (accept(',') && next() == ',') fail("a number");
    }
    if (tensor_.shape.size() <= depth) tensor_.shape.resize(depth + 1, unknown);
    if (tensor_.shape[depth] == unknown) tensor_.shape[depth] = count;
    if (tensor_.shape[depth] != count) {
      at_ = begin;
      fail(fmt::format("a list of {} as before, not of {}", tensor_.shape[depth], count));
    }
    ++at_;
  }

  void refuse_ellipsis() {
    if (text_.substr(at_).starts_with("...") || text_.substr(at_).starts_with("…"))
      fail(
          "all numbers; print them in full after torch.set_printoptions(threshold=10**9) or "
          "numpy.set_printoptions(threshold=10**9)");
  }

  void number() {
    next();
    refuse_ellipsis();
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,[]()", at_), text_.size());
    const std::string_view field = text_.substr(at_, end - at_);
    const bool is_true = field == "True" || field == "true", is_false = field == "False" || field == "false";
    const auto value = is_true || is_false ? std::optional(is_true ? 1.0 : 0.0) : parse_number_field(field);
    if (!value) fail("a number");
    has_numbers_ = has_numbers_ || !(is_true || is_false);
    has_fractions_ =
        has_fractions_ || field.find_first_of(".nN") != field.npos;  // inf and nan are not integers
    tensor_.numbers.push_back(*value);
    tensor_.printed_precision = std::max(tensor_.printed_precision, half_last_digit(field));
    at_ = end;
  }

  /// Reads ", dtype=torch.float64, grad_fn=<SoftmaxBackward0>)", of which only the dtype matters.
  void rest_of_call() {
    int depth = 1;
    while (depth > 0) {
      const char c = next();
      if (c == '\0') fail("')'");
      if (is_word_character(c)) {
        if (take_word() == "dtype" && accept('=')) read_dtype();
        continue;
      }
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      ++at_;
    }
  }

  void read_dtype() {
    if (next() == '\'' || next() == '"') ++at_;
    const std::size_t begin = at_;
    const auto dtype = parse_dtype(take_word());
    if (!dtype) {
      at_ = begin;
      fail("a type of numbers such as float32");
    }
    tensor_.dtype = *dtype;
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) ++at_;
  }

  static constexpr std::size_t unknown = static_cast<std::size_t>(-1);

  std::string_view text_;
  const std::string& place_;
  std::size_t at_ = 0;
  std::string_view word_;
  Tensor tensor_;
  std::optional<std::size_t> depth_of_numbers_;
  bool has_numbers_ = false, has_fractions_ = false;
};

/// Returns whether a text begins like a list of numbers from PyTorch, NumPy or JSON.
bool looks_printed(std::string_view begin) {
  begin = text::without_byte_order_mark(begin);
  begin.remove_prefix(std::min(begin.find_first_not_of(whitespace), begin.size()));
  if (begin.starts_with('[')) return true;
  const std::string_view words = begin.substr(0, begin.find_first_of("[("));
  return words.size() < begin.size() && !words.empty() &&
         std::isalpha(static_cast<unsigned char>(words.front())) &&
         words.find_first_of(",;\t\"") == words.npos;
}

constexpr std::size_t max_text_file_bytes = std::size_t{512} << 20;

bool is_number(const std::string& field, const TableRules& rules) {
  return parse_number_field(field, rules.decimal_comma) ||
         is_written_beyond_float64(field, rules.decimal_comma);
}

/// Returns whether a field marks a missing number.
bool is_missing(const std::string& field) {
  constexpr std::array<std::string_view, 9> words{"na",  "n/a",     "#n/a", "null", "none",
                                                  "nil", "missing", "-",    "?"};
  return std::ranges::find(words, text::lower(field)) != words.end();
}

/// Returns whether a field marks a missing number or is a malformed one: "NA", "1e-05f", "1.0.0".
bool is_malformed_number(const std::string& field, const TableRules& rules) {
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

/// Returns whether the header has one field less than the row, or an empty first one.
bool implies_labels(const Record* header, const Record& row) {
  return header && (header->fields.front().empty() || header->fields.size() + 1 == row.fields.size());
}

bool looks_labeled(const Record* header, const Record& row, const TableRules& rules) {
  if (rules.row_labels) return *rules.row_labels;
  if (row.fields.size() < 2) return false;
  if (implies_labels(header, row)) return true;
  return !row.fields.front().empty() && !is_number(row.fields.front(), rules);
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
           fmt::format(", column {}: expected a number, got {} (a decimal comma must be asked for)", k + 1,
                       quoted_briefly(field)));
    if (!number) fail(place, row.line, k + 1, "a number", field);
    tensor.numbers.push_back(*number);
    tensor.printed_precision = std::max(tensor.printed_precision, half_last_digit(field));
  }
}

/// Reads a whole text file of tensors, up to a size that cannot fill the memory.
std::string read_text_file(const std::filesystem::path& path, const StopToken& progress) {
  progress.add(0);
  std::string text = system::read_file(path, max_text_file_bytes);
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
                           is_malformed_number(first_field, rules);
  for (std::optional<Record> row = std::move(first); row; row = records.next(), ++n_rows) {
    if (is_doubtful && is_number(row->fields.front(), rules))
      fail(place, first_line, 1, "a number", first_field);
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

Tensor parse_printed(std::string_view text, const std::string& place) {
  return PrintedParser(text::without_byte_order_mark(text), place).tensor();
}

Tensor parse_numbers(std::string_view text, const std::string& place, bool decimal_comma) {
  if (looks_printed(text)) return parse_printed(text, place);
  TableRules rules;
  rules.decimal_comma = decimal_comma;
  return parse_table(text, place, rules);
}

TensorFile open_text(const std::filesystem::path& path, const StopToken& progress) {
  return file_of(path, "text", parse_numbers(read_text_file(path, progress), path.string() + ": "));
}

TensorFile open_table(const std::filesystem::path& path, const StopToken& progress) {
  TableRules rules;
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

bool can_have_index_row(const TensorInfo& info) {
  return info.dtype != Dtype::text && info.shape.size() == 2 && info.shape[0] > 1 && info.shape[1] > 1;
}

bool has_index_row(const Tensor& tensor) {
  if (!can_have_index_row(tensor) || !tensor.column_labels.empty()) return false;
  const double first = tensor.numbers.front();
  if (first != 0 && (first != 1 || tensor.shape[1] == 2)) return false;  // 1, 2 may be any numbers
  for (std::size_t k = 0; k < tensor.shape[1]; ++k)
    if (tensor.numbers[k] != first + static_cast<double>(k)) return false;
  return true;
}

Tensor with_names(Tensor tensor) {
  const auto end = tensor.numbers.begin() + static_cast<std::ptrdiff_t>(tensor.shape[1]);
  for (auto number = tensor.numbers.begin(); number != end; ++number)
    tensor.column_labels.push_back(text::number_text(*number));
  tensor.numbers.erase(tensor.numbers.begin(), end);
  if (!tensor.row_labels.empty()) tensor.row_labels.erase(tensor.row_labels.begin());
  --tensor.shape[0];
  return tensor;
}

}  // namespace

bool has_index_header(const TensorFile& file, const core::StopToken& progress) {
  return std::string_view(file.format()) == "table" &&
         std::ranges::any_of(file.tensors(), [&](const TensorInfo& info) {
           return can_have_index_row(info) && has_index_row(file.read(info.name, {}, progress));
         });
}

TensorFile with_index_header_as_names(const TensorFile& file, const core::StopToken& progress) {
  bool found = false;
  std::vector<TensorEntry> entries;
  for (const TensorInfo& info : file.tensors()) {
    Tensor tensor;
    if (is_of_tables(file) && can_have_index_row(info)) tensor = file.read(info.name, {}, progress);
    if (!has_index_row(tensor)) {
      entries.push_back(
          {info, [file, name = info.name](std::span<const std::size_t> leading, const core::StopToken& t) {
             return file.read(name, leading, t);
           }});
      continue;
    }
    found = true;
    entries.push_back(make_entry(with_names(std::move(tensor))));
  }
  if (!found)
    throw Error(
        file.place() +
        "expected a table whose first line is 0, 1, 2 … or 1, 2, 3 …, which can be names of its columns");
  return {file.path(), file.format(), std::move(entries), file.notes()};
}

std::string index_header_words(const TensorFile& file, const Tensor& tensor) {
  if (!is_of_tables(file) || !has_index_row(tensor)) return "";
  return "the first line of " + tensor.name + ", " + text::number_text(tensor.numbers[0]) + ", " +
         text::number_text(tensor.numbers[1]) + " …";
}

}  // namespace core::formats
