#include "core/model/blocks.hpp"

#include <cblas.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace core::transformer {
namespace {

/// e to the power of x, to about one unit in the last place of float32; below −87 it is that of −87, and NaN
/// stays.
///
/// It has no branches, so that compilers make vectors of loops of it. Source: Cephes, expf.
inline float exponential(float x) {
  const float high = x > 88 ? 88 : x, inside = high < -87 ? -87 : high;
  const float near = inside == inside ? inside * 1.44269504f : 0;  // NaN has no whole number
  const auto whole = static_cast<std::int32_t>(near + (near < 0 ? -0.5f : 0.5f));
  const auto power = static_cast<float>(whole);
  const float rest = (inside - power * 0.693359375f) + power * 2.12194440e-4f;
  float sum = 1.9875691500e-4f;
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * rest * rest + rest + 1;
  return sum * std::bit_cast<float>((whole + 127) << 23);
}

/// A matrix in memory, column by column with a stride between them.
struct Operand {
  const float* numbers;
  std::size_t stride;
  bool transposed = false;
};

/// target = factor · op(a)·op(b), rows × columns, on the caller's thread.
void multiply(const Operand& a, const Operand& b, std::size_t n_rows, std::size_t depth,
              std::size_t n_columns, float factor, float* target, std::size_t target_stride) {
  const auto order = [](const Operand& operand) { return operand.transposed ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasColMajor, order(a), order(b), static_cast<blasint>(n_rows),
              static_cast<blasint>(n_columns), static_cast<blasint>(depth), factor, a.numbers,
              static_cast<blasint>(a.stride), b.numbers, static_cast<blasint>(b.stride), 0, target,
              static_cast<blasint>(target_stride));
}

}  // namespace

arma::fmat product(const arma::fmat& x, const arma::fmat& weight, ThreadPool& pool) {
  arma::fmat result(x.n_rows, weight.n_cols, arma::fill::none);
  if (result.empty()) return result;
  constexpr std::size_t narrowest = 64;
  const std::size_t n_parts = std::clamp<std::size_t>(weight.n_cols / narrowest, 1,
                                                      x.n_rows > 1 ? 4 * pool.n_threads() : pool.n_threads());
  pool.run(n_parts, x.n_elem * weight.n_cols, [&](std::size_t part) {
    const std::size_t from = weight.n_cols * part / n_parts, to = weight.n_cols * (part + 1) / n_parts;
    if (from == to) return;
    if (x.n_rows == 1) {  // a product of matrices would copy the weights first, which are all the work
      cblas_sgemv(CblasColMajor, CblasTrans, static_cast<blasint>(weight.n_rows),
                  static_cast<blasint>(to - from), 1, weight.colptr(from),
                  static_cast<blasint>(weight.n_rows), x.memptr(), 1, 0, result.colptr(from), 1);
      return;
    }
    multiply({x.memptr(), x.n_rows}, {weight.colptr(from), weight.n_rows}, x.n_rows, x.n_cols, to - from, 1,
             result.colptr(from), result.n_rows);
  });
  return result;
}

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

template <class Function>
void apply(float* numbers, std::size_t count, Function function) {
  for (std::size_t k = 0; k < count; ++k) numbers[k] = function(numbers[k]);
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
      return apply(numbers, count, [](float x) { return 0.5f * x * (1 + error_function(x * 0.70710678f)); });
    case Activation::gelu_tanh:  // 0.5 (1 + tanh(y)) is 1 / (1 + exp(−2y))
      return apply(numbers, count, [](float x) {
        return x / (1 + exponential(-1.5957691216f * (x + 0.044715f * x * x * x)));
      });
    case Activation::quick_gelu:
      return apply(numbers, count, [](float x) { return x / (1 + exponential(-1.702f * x)); });
    case Activation::relu:
      return apply(numbers, count, [](float x) { return x > 0 ? x : 0; });
    case Activation::silu:
      return apply(numbers, count, [](float x) { return x / (1 + exponential(-x)); });
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

namespace {

/// Rows behind the first n of a matrix, which grows by half where it has no more.
void append_rows(arma::fmat& all, std::size_t n, const arma::fmat& more) {
  if (all.n_rows < n + more.n_rows) {
    arma::fmat larger(n == 0 ? more.n_rows : std::max<std::size_t>(n + more.n_rows, n + n / 2 + 16),
                      more.n_cols);
    if (n > 0) larger.rows(0, n - 1) = all.rows(0, n - 1);
    all = std::move(larger);
  }
  all.rows(n, n + more.n_rows - 1) = more;
}

/// A column of scores as weights, of which those from begin to end − 1 are seen.
void softmax_in(float* scores, std::size_t n, std::size_t begin, std::size_t end) {
  std::fill(scores, scores + begin, 0.0f);
  std::fill(scores + end, scores + n, 0.0f);
  const float largest = *std::max_element(scores + begin, scores + end);
  float sum = 0;
  for (std::size_t j = begin; j < end; ++j) scores[j] = exponential(scores[j] - largest);
  for (std::size_t j = begin; j < end; ++j) sum += scores[j];
  for (std::size_t j = begin; j < end; ++j) scores[j] /= sum;
}

}  // namespace

void KeysAndValues::append(const arma::fmat& more_keys, const arma::fmat& more_values) {
  append_rows(keys, n, more_keys);
  append_rows(values, n, more_values);
  n += more_keys.n_rows;
}

Visibility visibility_of(const Architecture& architecture, std::size_t layer) {
  double scale = 1 / std::sqrt(static_cast<double>(architecture.sizes.d_head));
  if (architecture.scales_by_layer) scale /= static_cast<double>(layer + 1);
  return {architecture.causal, window_of(architecture, layer), static_cast<float>(scale)};
}

VisibleKeys visible_keys(const Visibility& visibility, std::size_t position, std::size_t n_keys) {
  return {visibility.window > 0 && position + 1 > visibility.window ? position + 1 - visibility.window : 0,
          visibility.causal ? position + 1 : n_keys};
}

arma::fmat weights_of_head(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                           const Visibility& visibility, std::size_t head) {
  const std::size_t d = sizes.d_head, group = head / (sizes.n_heads / sizes.kv_heads);
  arma::fmat weights(keys.n, queries.n_rows, arma::fill::none);
  multiply({keys.keys.colptr(group * d), keys.keys.n_rows}, {queries.colptr(head * d), queries.n_rows, true},
           keys.n, d, queries.n_rows, visibility.scale, weights.memptr(), weights.n_rows);
  const std::size_t before = keys.n - queries.n_rows;
  for (std::size_t i = 0; i < queries.n_rows; ++i) {
    const auto [begin, end] = visible_keys(visibility, before + i, keys.n);
    softmax_in(weights.colptr(i), keys.n, begin, end);
  }
  return weights;
}

arma::fmat attended(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                    const Visibility& visibility, ThreadPool& pool) {
  const std::size_t d = sizes.d_head;
  arma::fmat contexts(queries.n_rows, sizes.n_heads * d, arma::fill::none);
  pool.run(sizes.n_heads, 2 * queries.n_elem * keys.n, [&](std::size_t head) {
    const std::size_t group = head / (sizes.n_heads / sizes.kv_heads);
    const arma::fmat weights = weights_of_head(queries, keys, sizes, visibility, head);
    multiply({weights.memptr(), weights.n_rows, true}, {keys.values.colptr(group * d), keys.values.n_rows},
             queries.n_rows, keys.n, d, 1, contexts.colptr(head * d), contexts.n_rows);
  });
  return contexts;
}

}  // namespace core::transformer
