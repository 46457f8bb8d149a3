#include "core/graph/difference.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::compare {

namespace {

std::string shape(const arma::mat& m) {
  return text::shape_text(m.n_rows, m.n_cols);
}

void expect_one_shape(const arma::mat& a, const arma::mat& b) {
  if (a.n_rows == b.n_rows && a.n_cols == b.n_cols) return;
  throw Error("comparison: expected two matrices of one shape, got " + shape(a) + " and " + shape(b));
}

}  // namespace

double difference(DifferenceKind kind, double a, double b) {
  if (equal_or_both_nan(a, b)) return 0;
  const double d = a - b;
  switch (kind) {
    case DifferenceKind::absolute:
      return std::abs(d);
    case DifferenceKind::relative:
      return std::isfinite(d) ? d / std::max(std::abs(a), std::abs(b)) : d;
    case DifferenceKind::a_minus_b:
      break;
  }
  return d;
}

arma::mat difference(DifferenceKind kind, const arma::mat& a, const arma::mat& b) {
  expect_one_shape(a, b);
  arma::mat result(a.n_rows, a.n_cols);
  for (arma::uword k = 0; k < a.n_elem; ++k) result[k] = difference(kind, a[k], b[k]);
  return result;
}

MaxDifference max_difference(const arma::mat& a, const arma::mat& b) {
  expect_one_shape(a, b);
  MaxDifference best;
  for (std::size_t j = 0; j < a.n_cols; ++j)
    for (std::size_t i = 0; i < a.n_rows; ++i) {
      const double d = abs_difference(a(i, j), b(i, j));
      const bool earlier = i < best.row || (i == best.row && j < best.column);
      if (d > best.distance || (d > 0 && d == best.distance && earlier)) best = {d, i, j};
    }
  return best;
}

}  // namespace core::compare
