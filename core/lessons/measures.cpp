#include "core/lessons/measures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/row_facts.hpp"

namespace core::lessons {

std::string number(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return text::fixed(value, 4);
  if (size > 0 && size < 5e-5) return text::scientific(value);
  std::string text = text::rounded(size, 4);
  // 0.5 is 0.5, but what was rounded to 1.0000 keeps its zeros and says so.
  if (text::parse_number(text) == size) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return (value < 0 ? "−" : "") + text;
}

std::string list(const arma::vec& numbers) {
  return text::joined(numbers, ", ", number, " and ");
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
  return row < numbers.n_rows ? attention::row_facts(numbers, row).where : numbers.n_cols;
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
  for (std::size_t i = 0; i < weights.n_rows; ++i) bits[i] = attention::row_facts(weights, i).entropy_bits;
  return bits;
}

}  // namespace core::lessons
