#include "core/files/printed.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/files/table.hpp"
#include "core/files/written_number.hpp"

namespace core::formats::readers {
namespace {

constexpr std::string_view blanks = " \t\r\n";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

/// The type called that, after torch., np. or numpy., in quotes or not.
std::optional<Dtype> dtype_called(std::string_view word) {
  for (const std::string_view prefix : {"torch.", "np.", "numpy."})
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  for (int k = 0; k < static_cast<int>(Dtype::text); ++k)
    if (word == dtype_name(static_cast<Dtype>(k))) return static_cast<Dtype>(k);
  return std::nullopt;
}

class Printed {
 public:
  Printed(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  Tensor tensor() {
    skip_words_before();
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
    throw Error(place_ + text::place_words(text_, at_) + ": expected " + expected + ", got " +
                (rest.empty() ? "the end of the text" : quoted_briefly(found)));
  }

  /// The next character that is no blank, or 0 at the end.
  char next() {
    at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  std::string_view take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// "weights = torch.tensor", "Parameter containing: tensor": the last word is kept.
  void skip_words_before() {
    while (is_word(next()) || next() == '=' || next() == ':') {
      if (const std::string_view word = take_word(); !word.empty())
        word_ = word;
      else
        ++at_;
    }
  }

  void list(std::size_t depth) {
    if (depth == most_dimensions) fail("at most " + std::to_string(most_dimensions) + " dimensions");
    const std::size_t begin = at_++;
    std::size_t count = 0;
    for (; next() != ']'; ++count) {
      if (next() == '\0') fail("']'");
      refuse_dots();
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
      fail("a list of " + std::to_string(tensor_.shape[depth]) + " as before, not of " +
           std::to_string(count));
    }
    ++at_;
  }

  void refuse_dots() {
    if (text_.substr(at_).starts_with("...") || text_.substr(at_).starts_with("…"))
      fail(
          "all numbers; print them in full after torch.set_printoptions(threshold=10**9) or "
          "numpy.set_printoptions(threshold=10**9)");
  }

  void number() {
    next();
    refuse_dots();
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,[]()", at_), text_.size());
    const std::string_view field = text_.substr(at_, end - at_);
    const bool is_true = field == "True" || field == "true", is_false = field == "False" || field == "false";
    const auto value = is_true || is_false ? std::optional(is_true ? 1.0 : 0.0) : written_number(field);
    if (!value) fail("a number");
    has_numbers_ = has_numbers_ || !(is_true || is_false);
    has_fractions_ =
        has_fractions_ || field.find_first_of(".nN") != field.npos;  // inf and nan are none of integers
    tensor_.numbers.push_back(*value);
    tensor_.printed_to = std::max(tensor_.printed_to, last_digit_half(field));
    at_ = end;
  }

  /// ", dtype=torch.float64, grad_fn=<SoftmaxBackward0>)": all but the type says nothing about the numbers.
  void rest_of_call() {
    int depth = 1;
    while (depth > 0) {
      const char c = next();
      if (c == '\0') fail("')'");
      if (is_word(c)) {
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
    const auto dtype = dtype_called(take_word());
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

}  // namespace

bool looks_printed(std::string_view begin) {
  begin = text::without_byte_order_mark(begin);
  begin.remove_prefix(std::min(begin.find_first_not_of(blanks), begin.size()));
  if (begin.starts_with('[')) return true;
  const std::string_view words = begin.substr(0, begin.find_first_of("[("));
  return words.size() < begin.size() && !words.empty() &&
         std::isalpha(static_cast<unsigned char>(words.front())) &&
         words.find_first_of(",;\t\"") == words.npos;
}

Tensor parse_printed(std::string_view text, const std::string& place) {
  return Printed(text::without_byte_order_mark(text), place).tensor();
}

Tensor parse_numbers(std::string_view text, const std::string& place, bool decimal_comma) {
  if (looks_printed(text)) return parse_printed(text, place);
  TableRules rules;
  rules.decimal_comma = decimal_comma;
  return parse_table(text, place, rules);
}

TensorFile open_text(const std::filesystem::path& path, const Token& progress) {
  Tensor tensor = parse_numbers(read_text_file(path, progress), path.string() + ": ");
  tensor.name = path.stem().string();
  return file_of(path, "text", std::move(tensor));
}

}  // namespace core::formats::readers
