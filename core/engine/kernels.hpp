#pragma once

#include <cstddef>
#include <span>

/// Inner loops on bare numbers, float64 or float32, compiled once for each width of vector registers and
/// chosen when the program runs.
///
/// This header and the sources of the loops use no inline function of the standard library: one that was
/// compiled for wide registers could otherwise be linked into the rest of the program.
namespace core::attention::fast {

/// Rows times items: queries times keys, or columns of a projection times tokens. A row lies in memory after
/// the other, so many numbers apart; the items lie in panels (panels.hpp).
template <class Number>
struct PanelBlock {
  const Number* rows;  ///< n_rows × depth
  std::size_t row_stride;
  const Number* panels;  ///< panel after panel, each depth × panel_width numbers
  std::size_t depth;
  Number scale;             ///< multiplies every product as it is stored
  const std::size_t* ends;  ///< [row]: one past the last item that counts
  Number* products;  ///< n_rows × items; at and after ends[row] up to a whole vector −inf, then nothing is
                     ///< written
  std::size_t product_stride;
  std::size_t n_rows;
};

/// Rows of exponentials, which a factor and the sum of the row make weights, times the values of one head.
template <class Number>
struct ProductBlock {
  const Number* weights;  ///< n_rows × n_tokens, still without factor / sums[row]; 0 at and after ends[row]
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

/// What a row of scores becomes: its largest, and the sum of the exponentials of what is below it.
template <class Number>
struct RowSums {
  Number largest, sum;
};

template <class Number>
struct Kernels {
  static constexpr std::size_t widest_panel = 192 / sizeof(Number), max_panel_rows = 12;  ///< in any of them
  static constexpr std::size_t yardstick_vectors = 12;                                    ///< of multiply_add

  const char* name;         ///< "AVX-512", "AVX2" or "plain"
  std::size_t lanes;        ///< numbers in a vector
  std::size_t panel_width;  ///< items in a panel: whole vectors
  std::size_t panel_rows;   ///< best done at once
  void (*products)(const PanelBlock<Number>&);
  /// exponentials[j] = exp(scores[j] − largest) for j < n, to about one unit in the last place; up to a whole
  /// vector scores go on with −inf, and the exponentials with 0.
  RowSums<Number> (*softmax)(const Number* scores, Number* exponentials, std::size_t n);
  void (*contexts)(const ProductBlock<Number>&);
  /// target[j] += factor · source[j]
  void (*add)(Number* target, const Number* source, Number factor, std::size_t n);
  Number (*dot)(const Number* a, const Number* b, std::size_t n);
  /// target[j] = factor · target[j] + a · x[j] + b · y[j]
  void (*blend)(Number* target, Number factor, Number a, const Number* x, Number b, const Number* y,
                std::size_t n);
  bool (*finite)(const Number* numbers, std::size_t n);
  /// numbers[j] = exp(numbers[j])
  void (*exponentials)(Number* numbers, std::size_t n);
  /// So many rounds of multiplications with additions of yardstick_vectors, as a yardstick for the others.
  Number (*multiply_add)(std::size_t n_rounds);
};

/// What one width of vector registers has for both.
struct KernelSet {
  Kernels<double> float64;
  Kernels<float> float32;
};

/// Those that this processor can run, the fastest first; the plain ones are always among them.
template <class Number>
std::span<const Kernels<Number>> kernels_of_this_processor();

}  // namespace core::attention::fast
