#include "core/base/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace core {
namespace {

/// Returns the length of a column, without overflow.
double length(const double* x, std::size_t n) {
  double largest = 0, sum = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  if (largest == 0) return 0;
  for (std::size_t i = 0; i < n; ++i) sum += (x[i] / largest) * (x[i] / largest);
  return largest * std::sqrt(sum);
}

double dot(const double* x, const double* y, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/// Replaces columns of b by R⁻¹ of their first rows; R is the upper triangle of a.
void solve_triangle(const arma::mat& a, arma::mat& b) {
  for (std::size_t k = 0; k < b.n_cols; ++k) {
    double* x = b.colptr(k);
    for (std::size_t j = a.n_cols; j-- > 0;) {
      x[j] /= a(j, j);
      for (std::size_t i = 0; i < j; ++i) x[i] -= a(i, j) * x[j];
    }
  }
}

/// Returns the largest sum of magnitudes of a column.
double norm_1(const arma::mat& a) {
  double largest = 0;
  for (std::size_t j = 0; j < a.n_cols; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < a.n_rows; ++i) sum += std::abs(a(i, j));
    if (!(sum <= largest)) largest = sum;  // also of NaN
  }
  return largest;
}

}  // namespace

std::optional<arma::mat> least_squares(arma::mat a, arma::mat b) {
  const std::size_t m = a.n_rows, n = a.n_cols;
  if (m < n || b.n_rows != m) return std::nullopt;
  for (std::size_t k = 0; k < n; ++k) {
    double* v = a.colptr(k) + k;
    const double norm = length(v, m - k);
    if (!(norm > 0 && std::isfinite(norm))) return std::nullopt;
    // The reflection of this column to its first entry, and of those after it; v is scaled to begin with 1.
    const double r = v[0] > 0 ? -norm : norm, tau = (r - v[0]) / r, scale = v[0] - r;
    for (std::size_t i = 0; i < m - k; ++i) v[i] = i == 0 ? 1 : v[i] / scale;
    const auto reflect = [&](double* x) {
      const double by = tau * dot(v, x, m - k);
      for (std::size_t i = 0; i < m - k; ++i) x[i] -= by * v[i];
    };
    for (std::size_t j = k + 1; j < n; ++j) reflect(a.colptr(j) + k);
    for (std::size_t j = 0; j < b.n_cols; ++j) reflect(b.colptr(j) + k);
    v[0] = r;
  }
  const arma::mat triangle = n > 0 ? arma::mat(arma::trimatu(a.head_rows(n))) : arma::mat();
  arma::mat inverse(n, n, arma::fill::eye), x = n > 0 ? arma::mat(b.head_rows(n)) : arma::mat(0, b.n_cols);
  solve_triangle(triangle, inverse);
  if (n > 0 && !(norm_1(triangle) * norm_1(inverse) <= 1 / std::numeric_limits<double>::epsilon()))
    return std::nullopt;
  solve_triangle(triangle, x);
  return x.is_finite() ? std::optional(std::move(x)) : std::nullopt;
}

double condition_number(arma::mat a) {
  constexpr int max_sweeps = 60;
  const std::size_t m = a.n_rows, n = a.n_cols;
  bool is_rotated = true;
  for (int sweep = 0; is_rotated && sweep < max_sweeps; ++sweep) {
    is_rotated = false;
    for (std::size_t j = 1; j < n; ++j)
      for (std::size_t i = 0; i < j; ++i) {
        double *x = a.colptr(i), *y = a.colptr(j);
        const double xx = dot(x, x, m), yy = dot(y, y, m), xy = dot(x, y, m);
        if (!(std::abs(xy) > std::numeric_limits<double>::epsilon() * std::sqrt(xx * yy))) continue;
        is_rotated = true;
        const double ratio = (yy - xx) / (2 * xy),
                     t = (ratio < 0 ? -1 : 1) / (std::abs(ratio) + std::sqrt(1 + ratio * ratio)),
                     c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (std::size_t row = 0; row < m; ++row) {
          const double before = x[row];
          x[row] = c * before - s * y[row];
          y[row] = s * before + c * y[row];
        }
      }
  }
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const double value = length(a.colptr(j), m);
    least = std::min(least, value), greatest = std::max(greatest, value);
  }
  return least > 0 ? greatest / least : std::numeric_limits<double>::infinity();
}

}  // namespace core
