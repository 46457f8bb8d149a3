#include "core/model/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/positions.hpp"
#include "core/model/exponential.hpp"
#include "core/model/products.hpp"

namespace core::transformer {
namespace {

void add_bias(arma::fmat& rows, const arma::frowvec& bias) {
  for (std::size_t column = 0; column < bias.n_elem; ++column) {
    float* numbers = rows.colptr(column);
    for (std::size_t i = 0; i < rows.n_rows; ++i) numbers[i] += bias[column];
  }
}

/// The error function to 1.5e-7. Source: Abramowitz and Stegun 7.1.26.
inline float error_function(float x) {
  const float size = x < 0 ? -x : x, t = 1 / (1 + 0.3275911f * size);
  float sum = 1.061405429f;
  for (const float factor : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f})
    sum = sum * t + factor;
  const float value = 1 - sum * t * exponential(-size * size);
  return x < 0 ? -value : value;
}

inline float activated(float x, Activation activation) {
  switch (activation) {
    case Activation::gelu_erf:
      return 0.5f * x * (1 + error_function(x * 0.70710678f));
    case Activation::gelu_tanh:
      // 0.5 (1 + tanh(y)) is 1 / (1 + exp(−2y))
      return x / (1 + exponential(-1.5957691216f * (x + 0.044715f * x * x * x)));
    case Activation::quick_gelu:
      return x / (1 + exponential(-1.702f * x));
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::silu:
      return x / (1 + exponential(-x));
  }
  return x;
}

template <Activation activation>
void activate_all(float* numbers, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) numbers[k] = activated(numbers[k], activation);
}

}  // namespace

arma::fmat normed(const arma::fmat& x, const Affine& numbers, NormKind kind, double epsilon) {
  const std::size_t n = x.n_rows;
  const double width = static_cast<double>(x.n_cols);
  std::vector<double> means(n), squares(n);
  if (kind == NormKind::layer) {
    for (std::size_t column = 0; column < x.n_cols; ++column)
      for (std::size_t i = 0; i < n; ++i) means[i] += x.at(i, column);
    for (double& mean : means) mean /= width;
  }
  for (std::size_t column = 0; column < x.n_cols; ++column)
    for (std::size_t i = 0; i < n; ++i)
      squares[i] += (x.at(i, column) - means[i]) * (x.at(i, column) - means[i]);
  std::vector<float> shifts(n), factors(n);
  for (std::size_t i = 0; i < n; ++i) {
    shifts[i] = static_cast<float>(means[i]);
    factors[i] = static_cast<float>(1 / std::sqrt(squares[i] / width + epsilon));
  }
  arma::fmat result(arma::size(x), arma::fill::none);
  for (std::size_t column = 0; column < x.n_cols; ++column) {
    const float weight = numbers.weight[column], bias = numbers.bias.empty() ? 0 : numbers.bias[column];
    const float* from = x.colptr(column);
    float* to = result.colptr(column);
    for (std::size_t i = 0; i < n; ++i) to[i] = (from[i] - shifts[i]) * factors[i] * weight + bias;
  }
  return result;
}

arma::fmat projected(const arma::fmat& x, const Affine& numbers, ThreadPool& pool) {
  arma::fmat result = product(x, numbers.weight, pool);
  add_bias(result, numbers.bias);
  return result;
}

void activate(float* numbers, std::size_t count, Activation activation) {
  switch (activation) {
    case Activation::gelu_erf:
      return activate_all<Activation::gelu_erf>(numbers, count);
    case Activation::gelu_tanh:
      return activate_all<Activation::gelu_tanh>(numbers, count);
    case Activation::quick_gelu:
      return activate_all<Activation::quick_gelu>(numbers, count);
    case Activation::relu:
      return activate_all<Activation::relu>(numbers, count);
    case Activation::silu:
      return activate_all<Activation::silu>(numbers, count);
  }
}

arma::fmat mlp(const arma::fmat& x, const LayerWeights& weights, const Mlp& rules, ThreadPool& pool) {
  arma::fmat hidden = projected(x, weights.up, pool);
  const std::size_t d_hidden = rules.gated ? hidden.n_cols / 2 : hidden.n_cols;
  pool.run(d_hidden, hidden.n_elem * 8, [&](std::size_t column) {
    float* numbers = hidden.colptr(column);
    activate(numbers, hidden.n_rows, rules.activation);
    if (!rules.gated) return;
    const float* up = hidden.colptr(d_hidden + column);
    for (std::size_t i = 0; i < hidden.n_rows; ++i) numbers[i] *= up[i];
  });
  if (rules.gated) hidden.shed_cols(d_hidden, hidden.n_cols - 1);
  return projected(hidden, weights.down, pool);
}

void rotate(arma::fmat& heads, std::size_t d_head, const positions::Rotary& rotary, std::size_t first) {
  const std::vector<double> frequencies = positions::frequencies(rotary, d_head);
  const std::size_t n = heads.n_rows;
  std::vector<float> cosines(n), sines(n);
  for (std::size_t k = 0; k < frequencies.size(); ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      const double angle = positions::angle_at(rotary, static_cast<double>(first + i), frequencies[k]);
      cosines[i] = static_cast<float>(std::cos(angle));
      sines[i] = static_cast<float>(std::sin(angle));
    }
    const auto [left_column, right_column] = columns_of(rotary, k, d_head);
    for (std::size_t begin = 0; begin < heads.n_cols; begin += d_head) {
      float *a = heads.colptr(begin + left_column), *b = heads.colptr(begin + right_column);
      for (std::size_t i = 0; i < n; ++i) positions::rotate_pair(a[i], b[i], cosines[i], sines[i]);
    }
  }
}

void norm_heads(arma::fmat& heads, std::size_t d_head, const Affine& numbers, const Norm& norm) {
  for (std::size_t begin = 0; begin < heads.n_cols; begin += d_head)
    heads.cols(begin, begin + d_head - 1) =
        normed(heads.cols(begin, begin + d_head - 1), numbers, norm.kind, norm.epsilon);
}

}  // namespace core::transformer
