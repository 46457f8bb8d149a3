#include "core/lessons/expression.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/statistics.hpp"

namespace core::lessons {

std::string number(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return text::fixed(value, 4);
  if (size > 0 && size < 5e-5) return text::scientific(value);
  std::string text = text::rounded(size, 4);
  // 0.5 loses its zeros, but a number rounded to 1.0000 keeps them to show that it is not exact.
  if (text::parse_number(text) == size) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return (value < 0 ? "−" : "") + text;
}

std::string list(const arma::vec& numbers) {
  return text::joined(numbers, ", ", number, " and ");
}

std::size_t index_of(double number) {
  constexpr double beyond = 9007199254740992;  // 2^53
  return number >= 0 && number < beyond ? static_cast<std::size_t>(number) : static_cast<std::size_t>(beyond);
}

double largest_difference(const arma::mat& a, const arma::mat& b) {
  if (a.empty() || b.empty()) return a.n_elem == b.n_elem ? 0 : std::numeric_limits<double>::infinity();
  return row_differences(a, b).max();
}

arma::vec row_differences(const arma::mat& a, const arma::mat& b) {
  arma::vec rows(a.n_rows, arma::fill::zeros);
  if (arma::size(a) != arma::size(b)) return rows.fill(std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < a.n_rows; ++i)
    for (std::size_t j = 0; j < a.n_cols; ++j) {
      const double difference = std::abs(a(i, j) - b(i, j));
      if (std::isfinite(difference)) rows[i] = std::max(rows[i], difference);
    }
  return rows;
}

bool agree(const arma::mat& a, const arma::mat& b) {
  return a.is_finite() && b.is_finite() && largest_difference(a, b) <= 1e-12;
}

double cell(const arma::mat& numbers, std::size_t row, std::size_t column) {
  return row < numbers.n_rows && column < numbers.n_cols ? numbers(row, column)
                                                         : std::numeric_limits<double>::quiet_NaN();
}

std::size_t largest_in_row(const arma::mat& numbers, std::size_t row) {
  return row < numbers.n_rows ? attention::row_statistics(numbers, row).argmax : numbers.n_cols;
}

double largest_above_diagonal(const arma::mat& numbers) {
  double largest = 0;
  for (std::size_t j = 1; j < numbers.n_cols; ++j)
    for (std::size_t i = 0; i < std::min<std::size_t>(j, numbers.n_rows); ++i)
      largest = std::max(largest, numbers(i, j));
  return largest;
}

arma::vec entropies(const arma::mat& weights) {
  arma::vec bits(weights.n_rows);
  for (std::size_t i = 0; i < weights.n_rows; ++i)
    bits[i] = attention::row_statistics(weights, i).entropy_bits;
  return bits;
}

namespace {

using arma::mat;
using Values = std::vector<LessonValue>;

const mat& matrix(const LessonValue& value) {
  if (const mat* m = std::get_if<mat>(&value)) return *m;
  throw Error("expected a matrix");
}
double scalar(const LessonValue& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  throw Error("expected a number");
}
double truth(bool holds) {
  return holds ? 1 : 0;
}

/// Returns an index as a position; negative ones count from the end.
std::size_t resolve_index(double index, std::size_t n) {
  return index_of(index < 0 ? static_cast<double>(n) + index : index);
}
mat row_of(const mat& m, double index) {
  const std::size_t i = resolve_index(index, m.n_rows);
  return i < m.n_rows ? mat(m.row(i)) : mat(1, 1, arma::fill::value(arma::datum::nan));
}

template <class Reduce>
double reduce_or_nan(const mat& m, Reduce reduce) {
  return m.is_empty() ? arma::datum::nan : reduce(m);
}

/// Returns whether each row equals the mean of all rows.
bool equal_rows(const mat& m) {
  return agree(m, arma::repmat(arma::mean(m, 0), m.n_rows, 1));
}

/// Computes scores by two loops, one dot product at a time.
mat loops(const mat& queries, const mat& keys) {
  if (queries.n_cols != keys.n_cols) return {1, 1, arma::fill::value(arma::datum::nan)};
  mat scores(queries.n_rows, keys.n_rows);
  for (std::size_t i = 0; i < queries.n_rows; ++i)
    for (std::size_t j = 0; j < keys.n_rows; ++j) scores(i, j) = arma::dot(queries.row(i), keys.row(j));
  return scores;
}

std::string words(const LessonValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return number(scalar(value));
}

/// Returns whether both values are texts, and the same.
bool same_text(const LessonValue& a, const LessonValue& b) {
  const auto *x = std::get_if<std::string>(&a), *y = std::get_if<std::string>(&b);
  return x && y && *x == *y;
}

double difference(const LessonValue& a, const LessonValue& b) {
  if (std::holds_alternative<mat>(a)) return largest_difference(matrix(a), matrix(b));
  if (std::holds_alternative<std::string>(a)) return same_text(a, b) ? 0 : 1;
  return std::abs(scalar(a) - scalar(b));
}

struct NamedFunction {
  std::size_t n_arguments;
  LessonValue (*value)(const Values&);
};

const std::map<std::string_view, NamedFunction>& functions() {
  static const std::map<std::string_view, NamedFunction> table{
      {"abs", {1, [](const Values& a) { return LessonValue(mat(arma::abs(matrix(a[0])))); }}},
      {"agree", {2, [](const Values& a) { return LessonValue(truth(agree(matrix(a[0]), matrix(a[1])))); }}},
      {"argmax",
       {2,
        [](const Values& a) {
          const mat& m = matrix(a[0]);
          return LessonValue(static_cast<double>(largest_in_row(m, resolve_index(scalar(a[1]), m.n_rows))));
        }}},
      {"but_last",
       {1,
        [](const Values& a) {
          const mat& m = matrix(a[0]);
          return LessonValue(m.n_rows > 1 ? mat(m.head_rows(m.n_rows - 1)) : mat(1, 1, arma::fill::zeros));
        }}},
      {"column_sums", {1, [](const Values& a) { return LessonValue(mat(arma::sum(matrix(a[0]), 0).t())); }}},
      {"deviation",
       {1,
        [](const Values& a) {
          return LessonValue(
              reduce_or_nan(matrix(a[0]), [](const mat& m) { return arma::stddev(arma::vectorise(m)); }));
        }}},
      {"difference", {2, [](const Values& a) { return LessonValue(difference(a[0], a[1])); }}},
      {"entropies", {1, [](const Values& a) { return LessonValue(mat(entropies(matrix(a[0])))); }}},
      {"equal_rows", {1, [](const Values& a) { return LessonValue(truth(equal_rows(matrix(a[0])))); }}},
      {"finite", {1, [](const Values& a) { return LessonValue(truth(matrix(a[0]).is_finite())); }}},
      {"list", {1, [](const Values& a) { return LessonValue(list(arma::vectorise(matrix(a[0])))); }}},
      {"loops", {2, [](const Values& a) { return LessonValue(loops(matrix(a[0]), matrix(a[1]))); }}},
      {"max",
       {1,
        [](const Values& a) {
          return LessonValue(reduce_or_nan(matrix(a[0]), [](const mat& m) { return m.max(); }));
        }}},
      {"max_above_diagonal",
       {1, [](const Values& a) { return LessonValue(largest_above_diagonal(matrix(a[0]))); }}},
      {"mean",
       {1,
        [](const Values& a) {
          return LessonValue(
              reduce_or_nan(matrix(a[0]), [](const mat& m) { return arma::mean(arma::vectorise(m)); }));
        }}},
      {"min",
       {1,
        [](const Values& a) {
          return LessonValue(reduce_or_nan(matrix(a[0]), [](const mat& m) { return m.min(); }));
        }}},
      {"row", {2, [](const Values& a) { return LessonValue(row_of(matrix(a[0]), scalar(a[1]))); }}},
      {"row_sums", {1, [](const Values& a) { return LessonValue(mat(arma::sum(matrix(a[0]), 1))); }}},
      {"sum", {1, [](const Values& a) { return LessonValue(arma::accu(matrix(a[0]))); }}},
  };
  return table;
}

/// Applies an operator to two numbers or cell by cell; matrices of different shapes give
/// `shape_mismatch_value`.
template <class Operator>
LessonValue elementwise(const LessonValue& a, const LessonValue& b, double shape_mismatch_value,
                        Operator apply) {
  if (!std::holds_alternative<mat>(a) && !std::holds_alternative<mat>(b)) return apply(scalar(a), scalar(b));
  if (std::holds_alternative<mat>(a) && std::holds_alternative<mat>(b) &&
      arma::size(matrix(a)) != arma::size(matrix(b)))
    return mat(arma::size(matrix(a)), arma::fill::value(shape_mismatch_value));
  mat result = std::holds_alternative<mat>(a) ? matrix(a) : matrix(b);
  for (std::size_t k = 0; k < result.n_elem; ++k)
    result[k] = apply(std::holds_alternative<mat>(a) ? matrix(a)[k] : scalar(a),
                      std::holds_alternative<mat>(b) ? matrix(b)[k] : scalar(b));
  return result;
}

/// Recursive-descent evaluation while parsing; operands that a condition does not need are only parsed.
class Evaluator {
 public:
  Evaluator(std::string_view text, const NameResolver& names) : text_(text), names_(names) {}

  LessonValue whole() {
    const LessonValue value = or_expression();
    if (skip_spaces(); at_ < text_.size())
      throw Error("unexpected \"" + std::string(text_.substr(at_)) + "\"");
    return value;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  static bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (is_letter(token.back()) && end < text_.size() && is_letter(text_[end])) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) throw Error("expected \"" + std::string(token) + "\"");
  }
  template <class Read>
  LessonValue read_branch(bool skipped, Read read) {
    const bool was = std::exchange(skipping_, skipping_ || skipped);
    const LessonValue value = read();
    skipping_ = was;
    return value;
  }
  bool is_truthy(const LessonValue& value) const { return !skipping_ && scalar(value) != 0; }

  LessonValue or_expression() {
    LessonValue left = and_expression();
    while (accept("or")) {
      const bool is_true = is_truthy(left);
      const LessonValue right = read_branch(is_true, [&] { return and_expression(); });
      left = truth(is_true || is_truthy(right));
    }
    return left;
  }
  LessonValue and_expression() {
    LessonValue left = not_expression();
    while (accept("and")) {
      const bool is_true = is_truthy(left);
      const LessonValue right = read_branch(!is_true, [&] { return not_expression(); });
      left = truth(is_true && is_truthy(right));
    }
    return left;
  }
  LessonValue not_expression() {
    if (accept("not")) return truth(!is_truthy(not_expression()));
    return comparison();
  }
  LessonValue comparison() {
    const LessonValue left = sum();
    if (accept("==")) return equality(left, sum(), true);
    if (accept("!=")) return equality(left, sum(), false);
    if (accept("<=")) return cells(left, sum(), [](double a, double b) { return truth(a <= b); });
    if (accept(">=")) return cells(left, sum(), [](double a, double b) { return truth(a >= b); });
    if (accept("<")) return cells(left, sum(), [](double a, double b) { return truth(a < b); });
    if (accept(">")) return cells(left, sum(), [](double a, double b) { return truth(a > b); });
    return left;
  }
  LessonValue equality(const LessonValue& a, const LessonValue& b, bool equal) const {
    if (!skipping_ && (std::holds_alternative<std::string>(a) || std::holds_alternative<std::string>(b)))
      return truth(same_text(a, b) == equal);
    return cells(
        a, b, [equal](double x, double y) { return truth((x == y) == equal); }, truth(!equal));
  }
  template <class Operator>
  LessonValue cells(const LessonValue& a, const LessonValue& b, Operator apply,
                    double shape_mismatch_value = arma::datum::nan) const {
    return skipping_ ? LessonValue(0.0) : elementwise(a, b, shape_mismatch_value, apply);
  }
  LessonValue sum() {
    LessonValue left = product();
    for (;;) {
      if (accept("+"))
        left = cells(left, product(), std::plus());
      else if (accept("-"))
        left = cells(left, product(), std::minus());
      else if (accept("&"))
        left = joined(left, product());
      else
        return left;
    }
  }
  LessonValue joined(const LessonValue& a, const LessonValue& b) const {
    return skipping_ ? LessonValue(0.0) : LessonValue(words(a) + words(b));
  }
  LessonValue product() {
    LessonValue left = signed_value();
    for (;;) {
      if (accept("*"))
        left = cells(left, signed_value(), std::multiplies());
      else if (accept("/"))
        left = cells(left, signed_value(), std::divides());
      else
        return left;
    }
  }
  LessonValue signed_value() {
    if (accept("-")) return cells(LessonValue(0.0), signed_value(), std::minus());
    LessonValue value = primary();
    while (accept("[")) {
      const LessonValue i = or_expression();
      std::optional<LessonValue> j;
      if (accept(",")) j = or_expression();
      expect("]");
      if (!skipping_) value = element(matrix(value), scalar(i), j);
    }
    return value;
  }
  static LessonValue element(const mat& m, double i, const std::optional<LessonValue>& j) {
    if (j) return cell(m, resolve_index(i, m.n_rows), resolve_index(scalar(*j), m.n_cols));
    const std::size_t k = resolve_index(i, m.n_elem);
    return k < m.n_elem ? m[k] : arma::datum::nan;
  }
  LessonValue primary() {
    skip_spaces();
    if (accept("(")) {
      const LessonValue value = or_expression();
      expect(")");
      return value;
    }
    if (accept("'")) {
      const std::size_t end = text_.find('\'', at_);
      if (end == text_.npos) throw Error("expected \"'\"");
      const std::string quoted(text_.substr(at_, end - at_));
      at_ = end + 1;
      return quoted;
    }
    const std::size_t begin = at_;
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      while (at_ < text_.size() &&
             (is_letter(text_[at_]) || text_[at_] == '.' || (text_[at_] == '-' && text_[at_ - 1] == 'e')))
        ++at_;
      if (const auto number = text::parse_number(text_.substr(begin, at_ - begin))) return *number;
      throw Error("expected a number");
    }
    return name_or_call();
  }
  std::string_view word() {
    skip_spaces();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    if (at_ == begin) throw Error("expected a value");
    return text_.substr(begin, at_ - begin);
  }
  LessonValue name_or_call() {
    NameReference reference{.name = word(), .before = before_, .head = {}, .arguments = {}};
    if (reference.name == "before" && accept(".")) reference.name = word(), reference.before = true;
    if (accept("@")) reference.head = index_of(scalar(primary()));
    if (!accept("(")) return skipping_ ? LessonValue(0.0) : resolve(reference);
    if (reference.name == "if") return conditional();
    if (reference.name == "moved" || reference.name == "changed" || reference.name == "row_moves")
      return change_since_start(reference.name);
    do reference.arguments.push_back(or_expression());
    while (accept(","));
    expect(")");
    return skipping_ ? LessonValue(0.0) : call(reference);
  }
  LessonValue resolve(const NameReference& reference) const {
    if (auto value = names_(reference)) return *value;
    throw Error("there is no \"" + std::string(reference.name) + "\"");
  }
  LessonValue call(const NameReference& reference) const {
    const auto function = functions().find(reference.name);
    if (function == functions().end()) return resolve(reference);
    if (reference.arguments.size() != function->second.n_arguments)
      throw Error(fmt::format("{} takes {} arguments", reference.name, function->second.n_arguments));
    return function->second.value(reference.arguments);
  }
  LessonValue conditional() {
    const bool is_true = is_truthy(or_expression());
    expect(",");
    const LessonValue first = read_branch(!is_true, [&] { return or_expression(); });
    expect(",");
    const LessonValue second = read_branch(is_true, [&] { return or_expression(); });
    expect(")");
    return is_true ? first : second;
  }
  /// Returns how far a value has moved since the start of the step.
  LessonValue change_since_start(std::string_view how) {
    if (std::exchange(in_change_, true)) throw Error(std::string(how) + " inside another change");
    const std::size_t begin = at_;
    const LessonValue now = or_expression();
    at_ = begin;
    const bool was = std::exchange(before_, true);
    const LessonValue before = or_expression();
    before_ = was, in_change_ = false;
    expect(")");
    if (skipping_) return 0.0;
    if (how == "row_moves") return mat(row_differences(matrix(before), matrix(now)));
    const double by = difference(before, now);
    return how == "moved" ? by : truth(by > 0);
  }

  std::string_view text_;
  const NameResolver& names_;
  std::size_t at_ = 0;
  bool skipping_ = false, before_ = false, in_change_ = false;
};

LessonValue evaluate(std::string_view expression, const NameResolver& names) {
  constexpr std::size_t longest = 1000;  // in bytes, which also limits its depth
  try {
    if (expression.size() > longest) throw Error(fmt::format("expected at most {} characters", longest));
    return Evaluator(expression, names).whole();
  } catch (const Error& error) {
    throw Error("\"" + std::string(expression.substr(0, 200)) + "\": " + error.what());
  }
}

}  // namespace

bool holds(std::string_view expression, const NameResolver& names) {
  const LessonValue value = evaluate(expression, names);
  return scalar(value) != 0 && !std::isnan(scalar(value));
}

std::string interpolate(std::string_view text, const NameResolver& names) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at), close = text.find('}', at);
    result += text.substr(at, open - at);
    if (open == text.npos) break;
    if (close == text.npos) throw Error("\"" + std::string(text) + "\": expected \"}\"");
    result += words(evaluate(text.substr(open + 1, close - open - 1), names));
    at = close + 1;
  }
  return result;
}

}  // namespace core::lessons
