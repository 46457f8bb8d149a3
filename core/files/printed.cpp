#include "core/files/printed.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/files/table.hpp"

namespace core::formats::readers {
namespace {

constexpr std::string_view whitespace = " \t\r\n";
constexpr const char* all_numbers =
    "all numbers; print them in full after torch.set_printoptions(threshold=10**9) or "
    "numpy.set_printoptions(threshold=10**9)";

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

/// Returns the dtype with a name, which may follow torch., np. or numpy.
std::optional<Dtype> parse_dtype(std::string_view word) {
  for (const std::string_view prefix : {"torch.", "np.", "numpy."})
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  return find_dtype(word, &DtypeNames::name);
}

/// Parser of nested brackets.
class BracketParser {
 public:
  BracketParser(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  Tensor tensor() {
    const bool is_of_tensorflow = skip_prefix_of_tensorflow();
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
    if (is_of_tensorflow && !accept('>')) fail("'>'");
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

  /// Skips "<tf.Tensor: shape=(4, 4), dtype=float32, numpy=", if the text begins so.
  bool skip_prefix_of_tensorflow() {
    constexpr std::string_view begin_of_numbers = "numpy=";
    if (next() != '<') return false;
    const std::size_t at = text_.find(begin_of_numbers, at_);
    if (at == text_.npos) fail("a tensor of TensorFlow with its numbers after numpy=");
    at_ = at + begin_of_numbers.size();
    return true;
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
    if (text_.substr(at_).starts_with("...") || text_.substr(at_).starts_with("…")) fail(all_numbers);
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

/// A program that prints matrices as rows without brackets, and its code that prints all numbers.
struct RowPrinter {
  const char* name;
  std::size_t first_index;
  const char* print_all;
};

/// Returns the first line of a text that is not empty, without spaces around it, and removes all up to its
/// end.
std::string_view take_line(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(whitespace), text.size()));
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  return text::trimmed(line, whitespace);
}

std::string_view first_field(std::string_view line) {
  return line.substr(0, line.find_first_of(whitespace));
}

/// Returns all whole numbers in a text; one that is too large as the largest.
std::vector<std::size_t> whole_numbers(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  std::vector<std::size_t> numbers;
  for (std::size_t at = text.find_first_of(digits); at != text.npos; at = text.find_first_of(digits)) {
    text.remove_prefix(at);
    const std::size_t end = std::min(text.find_first_not_of(digits), text.size());
    numbers.push_back(text::parse_unsigned(text.substr(0, end)).value_or(SIZE_MAX));
    text.remove_prefix(end);
  }
  return numbers;
}

/// Returns the sizes in "4×4 Matrix{Float64}:" or "4-element Vector{Float64}:", with which Julia begins.
std::vector<std::size_t> sizes_of_julia(std::string_view line) {
  const std::string_view sizes = first_field(line);
  const bool begins = !line.empty() && text::is_digit(line.front()) && line.ends_with(':') &&
                      (sizes.find("×") != sizes.npos || sizes.ends_with("-element"));
  return begins ? whole_numbers(sizes) : std::vector<std::size_t>();
}

/// Returns the program that printed a matrix as rows without brackets, or nothing.
std::optional<RowPrinter> row_printer_of(std::string_view text) {
  if (text.find("\n[torch.") != text.npos && text.find("Tensor of size ") != text.npos)
    return RowPrinter{"PyTorch before 0.4", 0, "torch.set_printoptions(threshold=10**9)"};
  const std::string_view first = take_line(text), second = take_line(text);
  if (first.starts_with("[,1]") || first.starts_with(", , 1"))
    return RowPrinter{"R", 1, "options(max.print = 10^9)"};
  if (!sizes_of_julia(first).empty()) return RowPrinter{"Julia", 1, "show(stdout, \"text/plain\", x)"};
  if (first.ends_with('=') && (second.starts_with("Column") || parse_number_field(first_field(second))))
    return RowPrinter{"MATLAB", 1, "disp(x)"};
  return std::nullopt;
}

/// Parser of rows without brackets: blocks of columns side by side, and one matrix after the other.
class RowParser {
 public:
  RowParser(std::string_view text, RowPrinter printer, const std::string& place)
      : text_(text), printer_(printer), place_(place) {}

  Tensor tensor() {
    std::string_view rest = text_;
    for (std::string_view line = take_line(rest); !line.empty(); line = take_line(rest)) {
      line_ = line;
      if (!read_mark()) read_row();
    }
    return finish();
  }

 private:
  /// One matrix; its columns may come in several blocks.
  struct PrintedMatrix {
    std::vector<std::size_t> index = {};  ///< as printed: 1 of "(:,:,1) ="
    std::vector<std::vector<double>> rows = {};
    std::size_t next_row = 0;  ///< in this block of columns
    bool has_more_columns = false;
    double factor = 1;
  };

  [[noreturn]] void fail(const std::string& expected) const {
    const auto at = static_cast<std::size_t>(line_.data() - text_.data());
    throw Error(fmt::format("{}{}: expected {} in what {} printed, got {}", place_,
                            text::line_and_column(text_, at), expected, printer_.name,
                            quoted_briefly(line_)));
  }

  PrintedMatrix& matrix() {
    if (matrices_.empty()) matrices_.emplace_back();
    return matrices_.back();
  }

  /// Returns whether the line is no row: a name, an index, a factor, sizes or the numbers of columns.
  bool read_mark() {
    const bool is_first = std::exchange(is_first_line_, false);
    for (const char* mark : {"...", "…", "⋮", "⋱", "max.print"})
      if (line_.find(mark) != line_.npos)
        fail(fmt::format("all numbers, as {} prints them,", printer_.print_all));
    const auto factor =
        line_.ends_with('*') ? parse_number_field(line_.substr(0, line_.size() - 1)) : std::nullopt;
    const std::size_t bracket = std::min(line_.find_first_of("(["), line_.size());
    const bool is_index = line_.starts_with(", , ") ||
                          (line_.ends_with('=') && line_.find_first_of(":.", bracket) != line_.npos);
    if (factor)
      matrix().factor = *factor;
    else if (line_.starts_with("[torch."))
      read_sizes_of_torch();
    else if (is_index)
      matrices_.push_back({whole_numbers(line_.starts_with(',') ? line_ : line_.substr(bracket))});
    else if (line_.starts_with("Column") || line_.starts_with("[,"))
      begin_columns(whole_numbers(line_));
    else if (is_first && (line_.ends_with('=') || line_.ends_with(':')))
      sizes_ = sizes_of_julia(line_);
    else
      return false;
    return true;
  }

  void begin_columns(const std::vector<std::size_t>& numbers) {
    PrintedMatrix& into = matrix();
    const std::size_t n_columns = into.rows.empty() ? 0 : into.rows.front().size();
    if (numbers.empty() || numbers.front() != n_columns + printer_.first_index ||
        into.next_row != into.rows.size())
      fail(fmt::format("column {} to follow {} rows", n_columns + printer_.first_index, into.rows.size()));
    into.has_more_columns = n_columns > 0;
    into.next_row = 0;
  }

  void read_sizes_of_torch() {
    constexpr std::string_view word = "of size ";
    const std::size_t at = line_.find(word);
    sizes_ = at == line_.npos ? sizes_ : whole_numbers(first_field(line_.substr(at + word.size())));
    if (sizes_.empty() || sizes_.size() > max_dimensions) fail("the size of the tensor");
    if (line_.find("DoubleTensor") == line_.npos) dtype_ = Dtype::f32;
  }

  void read_row() {
    if (!sizes_.empty() && printer_.first_index == 0) fail("nothing after the size");
    PrintedMatrix& into = matrix();
    if (!into.has_more_columns) into.rows.emplace_back();
    if (into.next_row == into.rows.size()) fail(fmt::format("{} rows as before", into.rows.size()));
    std::vector<double>& row = into.rows[into.next_row++];
    std::string_view rest = line_;
    if (rest.starts_with('[')) rest.remove_prefix(std::min(rest.find(']') + 1, rest.size()));  // "[1,]" of R
    for (rest = text::trimmed(rest, whitespace); !rest.empty(); rest = text::trimmed(rest, whitespace)) {
      const std::string_view field = first_field(rest);
      const auto number = parse_number_field(field);
      if (!number) fail("numbers");
      row.push_back(*number * into.factor);
      precision_ = std::max(precision_, half_last_digit(field) * std::abs(into.factor));
      rest.remove_prefix(field.size());
    }
    if (row.size() != into.rows.front().size())
      fail(fmt::format("{} numbers as before", into.rows.front().size()));
  }

  Tensor finish() {
    Tensor tensor;
    tensor.dtype = dtype_;
    tensor.printed_precision = precision_;
    const std::size_t n_rows = matrix().rows.size();
    const std::size_t n_columns = n_rows == 0 ? 0 : matrix().rows.front().size();
    if (n_columns == 0) fail("numbers");
    for (const PrintedMatrix& each : matrices_) {
      if (each.rows.size() != n_rows || each.next_row != n_rows || each.rows.front().size() != n_columns)
        fail("matrices of one size");
      for (const auto& row : each.rows) tensor.numbers.insert(tensor.numbers.end(), row.begin(), row.end());
    }
    tensor.shape = {n_rows, n_columns};
    const bool is_of_torch = printer_.first_index == 0;
    if (is_of_torch || sizes_.size() == 1)
      tensor.shape = sizes_;
    else if (matrices_.size() > 1 || !matrices_.front().index.empty())
      tensor.shape.insert(tensor.shape.begin(), matrices_.size());
    const std::size_t row_axis = is_of_torch && sizes_.size() > 1 ? sizes_.size() - 2 : 0;
    const std::size_t expected_columns = sizes_.size() == 1 ? 1
                                         : sizes_.empty()   ? n_columns
                                                            : sizes_[row_axis + 1];
    const std::size_t expected_rows = sizes_.empty() ? n_rows : sizes_[row_axis];
    if (n_rows != expected_rows || n_columns != expected_columns ||
        (!sizes_.empty() && count_of(sizes_) != tensor.numbers.size()))
      fail("as many numbers as the size says");
    check_indices(tensor.shape);
    return tensor;
  }

  /// Throws core::Error unless the last index of the matrices is counted first.
  void check_indices(const TensorShape& shape) {
    for (std::size_t k = 0; k < matrices_.size(); ++k) {
      const std::vector<std::size_t>& index = matrices_[k].index;
      std::vector<std::size_t> expected;
      if (shape.size() > 2) expected.assign(shape.size() - 2, 0);
      for (std::size_t axis = expected.size(), rest = k; axis-- > 0; rest /= shape[axis])
        expected[axis] = rest % shape[axis] + printer_.first_index;
      if (index != expected) fail("every matrix once, in the order of the first axes");
    }
  }

  std::string_view text_;
  RowPrinter printer_;
  const std::string& place_;
  std::string_view line_;
  bool is_first_line_ = true;
  std::vector<PrintedMatrix> matrices_;
  std::vector<std::size_t> sizes_;  ///< as printed, or none
  Dtype dtype_ = Dtype::f64;
  double precision_ = 0;
};

/// Returns whether a text begins with a list in the braces of Mathematica.
bool has_braces(std::string_view text) {
  return text.starts_with("{{");
}

}  // namespace

bool looks_printed(std::string_view text) {
  text = text::without_byte_order_mark(text);
  text.remove_prefix(std::min(text.find_first_not_of(whitespace), text.size()));
  if (text.starts_with('[') || text.starts_with("<tf.") || has_braces(text) || row_printer_of(text))
    return true;
  const std::string_view words = text.substr(0, text.find_first_of("[("));
  return words.size() < text.size() && !words.empty() &&
         std::isalpha(static_cast<unsigned char>(words.front())) &&
         words.find_first_of(",;\t\"") == words.npos;
}

Tensor parse_printed(std::string_view text, const std::string& place) {
  text = text::without_byte_order_mark(text);
  if (const auto printer = row_printer_of(text)) return RowParser(text, *printer, place).tensor();
  std::string brackets;
  if (has_braces(text::trimmed(text, whitespace))) {
    brackets = text;
    std::ranges::replace(brackets, '{', '[');
    std::ranges::replace(brackets, '}', ']');
    text = brackets;
  }
  return BracketParser(text, place).tensor();
}

}  // namespace core::formats::readers
