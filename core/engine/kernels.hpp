#pragma once

#include <cstddef>
#include <span>

/// Inner loops on plain arrays of float64 or float32, compiled once for each width of vector registers and
/// selected at run time.
///
/// This header and the kernels' sources use no inline function of the standard library: a version compiled
/// for wide registers could otherwise be linked into the rest of the program.
namespace core::attention::fast {

/// Rows times items: queries times keys, or columns of a projection times tokens. Rows are row_stride numbers
/// apart; items are stored in panels (products.hpp).
template <class Number>
struct PanelProductArgs {
  const Number* rows;  ///< n_rows × depth
  std::size_t row_stride;
  const Number* panels;  ///< panels of depth × panel_width numbers
  std::size_t depth;
  Number scale;             ///< multiplies every product as it is stored
  const std::size_t* ends;  ///< [row]: one past the last item to multiply
  Number* products;  ///< n_rows × items; −inf from ends[row] up to a whole vector, not written after that
  std::size_t product_stride;
  std::size_t n_rows;
};

/// Rows of unnormalized weights (exponentials) times the values of one head.
template <class Number>
struct ContextArgs {
  const Number* weights;  ///< n_rows × n_tokens, not yet times factor / sums[row]; 0 from ends[row] on
  std::size_t weight_stride;
  const std::size_t* ends;
  const double* sums;  ///< [row]
  double factor;
  const Number* values;  ///< n_tokens × d_head, rows padded with zeros to whole vectors
  std::size_t value_stride;
  std::size_t d_head;
  Number* contexts;  ///< n_rows × d_head
  std::size_t context_stride;
  std::size_t n_rows;
};

/// Largest score of a row, and the sum of exp(score − largest).
template <class Number>
struct SoftmaxStats {
  Number largest, sum;
};

template <class Number>
struct AttentionKernels {
  static constexpr std::size_t max_panel_width = 192 / sizeof(Number),
                               max_panel_rows = 12;     ///< of all kernels
  static constexpr std::size_t benchmark_vectors = 12;  ///< of multiply_add

  const char* name;         ///< "AVX-512", "AVX2" or "plain"
  std::size_t lanes;        ///< numbers in a vector
  std::size_t panel_width;  ///< items in a panel: whole vectors
  std::size_t panel_rows;   ///< rows that are best multiplied at once
  void (*products)(const PanelProductArgs<Number>&);
  /// exponentials[j] = exp(scores[j] − largest) for j < n, to about one unit in the last place; scores must
  /// be padded to a whole vector with −inf, and exponentials are padded with 0.
  SoftmaxStats<Number> (*softmax)(const Number* scores, Number* exponentials, std::size_t n);
  void (*contexts)(const ContextArgs<Number>&);
  /// target[j] += factor · source[j]
  void (*add)(Number* target, const Number* source, Number factor, std::size_t n);
  Number (*dot)(const Number* a, const Number* b, std::size_t n);
  /// target[j] = factor · target[j] + a · x[j] + b · y[j]
  void (*blend)(Number* target, Number factor, Number a, const Number* x, Number b, const Number* y,
                std::size_t n);
  bool (*is_finite)(const Number* numbers, std::size_t n);
  /// numbers[j] = exp(numbers[j])
  void (*exponentials)(Number* numbers, std::size_t n);
  /// Runs n_rounds multiply-adds of benchmark_vectors vectors, to compare the speed of other kernels with.
  Number (*multiply_add)(std::size_t n_rounds);
};

/// Kernels of one vector width, for both formats.
struct KernelSet {
  AttentionKernels<double> float64;
  AttentionKernels<float> float32;
};

/// Returns the kernels that this processor can run, fastest first; the plain ones are always included.
template <class Number>
std::span<const AttentionKernels<Number>> supported_kernels();

}  // namespace core::attention::fast
