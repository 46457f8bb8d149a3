#include "core/engine/kernels.hpp"

#include <cstddef>
#include <cstdint>

// This source is compiled once for each width of vector registers, with the flags that it needs.
namespace core::attention::fast {

template <int N>
struct VectorOf {
  // Unaligned, and allowed to lie on any array of doubles.
  typedef double Numbers __attribute__((vector_size(N * sizeof(double)), aligned(sizeof(double)), may_alias));
  typedef std::int64_t Integers __attribute__((vector_size(N * sizeof(double))));
};

template <int N>
using Vector = typename VectorOf<N>::Numbers;

template <int N>
[[gnu::always_inline]] inline Vector<N> load(const double* from) {
  return *reinterpret_cast<const Vector<N>*>(from);
}

template <int N>
[[gnu::always_inline]] inline void store(double* to, Vector<N> numbers) {
  *reinterpret_cast<Vector<N>*>(to) = numbers;
}

/// The same number in all places; 0 + number would cost an addition, as it is not number when that is −0.
template <int N>
[[gnu::always_inline]] inline Vector<N> spread(double number) {
  return number - Vector<N>{};
}

/// The first n numbers, and so many fillings after them.
template <int N>
[[gnu::always_inline]] inline Vector<N> load_part(const double* from, std::size_t n, double filling) {
  Vector<N> numbers = spread<N>(filling);
  for (std::size_t j = 0; j < n; ++j) numbers[j] = from[j];
  return numbers;
}

template <int N>
[[gnu::always_inline]] inline void store_part(double* to, Vector<N> numbers, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) to[j] = numbers[j];
}

/// The first n numbers; instead of the others the filling.
template <int N>
[[gnu::always_inline]] inline Vector<N> cut(Vector<N> numbers, std::size_t n, double filling) {
  if (n >= std::size_t{N}) return numbers;
  typename VectorOf<N>::Integers places;
  for (int j = 0; j < N; ++j) places[j] = j;
  return places < static_cast<std::int64_t>(n) ? numbers : spread<N>(filling);
}

template <int N>
[[gnu::always_inline]] inline double sum(Vector<N> v) {
  double parts[N];
  store<N>(parts, v);
  for (int half = N / 2; half > 0; half /= 2)  // by halves: few sums have to wait for others
    for (int j = 0; j < half; ++j) parts[j] += parts[j + half];
  return parts[0];
}

template <int N>
[[gnu::always_inline]] inline double largest(Vector<N> v) {
  double parts[N];
  store<N>(parts, v);
  for (int half = N / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) parts[j] = parts[j + half] > parts[j] ? parts[j + half] : parts[j];
  return parts[0];
}

/// 2ⁿ for whole n from −1022 to 1023.
template <int N>
[[gnu::always_inline]] inline Vector<N> power_of_two(typename VectorOf<N>::Integers n) {
  return reinterpret_cast<Vector<N>>((n + 1023) << 52);
}

/// eˣ for x ≤ 709, to about one unit in the last place; 0 for −inf, NaN for NaN.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2; eʳ by its series to r¹³, whose rest is below 2⁻⁵⁷, its even and its
/// odd terms apart, as neither has to wait for the other. Scaling by 2ⁿ in two steps gives numbers below the
/// normal range too.
template <int N>
[[gnu::always_inline]] inline Vector<N> exponential(Vector<N> x) {
  using V = Vector<N>;
  using I = typename VectorOf<N>::Integers;
  constexpr double lowest = -746;
  const auto is_zero = x < lowest;  // told apart, as processors take long to round a number to nothing
  x = is_zero ? V{} : x;
  // Adding 1.5 · 2⁵² leaves the nearest whole number in the low bits.
  constexpr double to_whole = 6755399441055744.0;
  constexpr std::int64_t bits_of_to_whole = 0x4338000000000000;
  const V shifted = x * 1.4426950408889634 + to_whole, n = shifted - to_whole;
  const V r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;  // ln 2 in two parts
  constexpr double evens[] = {1.0 / 3628800, 1.0 / 40320, 1.0 / 720, 1.0 / 24, 1.0 / 2};
  constexpr double odds[] = {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6};
  const V square = r * r;
  V even = spread<N>(1.0 / 479001600), odd = spread<N>(1.0 / 6227020800);
  for (const double c : evens) even = even * square + c;
  for (const double c : odds) odd = odd * square + c;
  const V p = (odd * r + even) * square + r + 1.0;
  const V half_shifted = n * 0.5 + to_whole;
  const I whole = reinterpret_cast<I>(shifted) - bits_of_to_whole;
  const I half = reinterpret_cast<I>(half_shifted) - bits_of_to_whole;
  return is_zero ? V{} : p * power_of_two<N>(half) * power_of_two<N>(whole - half);
}

/// How the loops are cut so that all sums of a tile stay in registers.
struct Tiles {
  int key_vectors, queries;  // of a tile of products with panels
  int value_vectors, rows;   // of a tile of contexts
};

template <int N, Tiles tiles>
struct KernelsOf {
  using V = Vector<N>;
  static constexpr std::size_t panel_width = std::size_t{tiles.key_vectors} * N;
  static constexpr std::size_t cached_numbers = 65536;  // of panels: they fit a second-level cache …
  static constexpr std::size_t keys_at_once = 1024;     // … and so do so many values of a head
  static_assert(panel_width <= Kernels::widest_panel && tiles.queries <= int(Kernels::max_panel_rows));

  /// Written out, as `= {}` makes compilers keep a whole tile in memory.
  template <int count, int vectors>
  [[gnu::always_inline]] static void clear(V (&sums)[count][vectors]) {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < vectors; ++k) sums[i][k] = V{};
  }

  /// Products of `count` rows and one panel, whose first item is `first`.
  template <int count>
  static void product_tile(const PanelBlock& b, std::size_t row, std::size_t first) {
    V sums[count][tiles.key_vectors];
    clear(sums);
    const double* numbers = b.rows + row * b.row_stride;
    const double* panel = b.panels + first * b.depth;
    for (std::size_t c = 0; c < b.depth; ++c, panel += panel_width) {
      V items[tiles.key_vectors];
      for (int k = 0; k < tiles.key_vectors; ++k) items[k] = load<N>(panel + k * N);
#pragma GCC unroll 8
      for (int q = 0; q < count; ++q) {
        const V number = spread<N>(numbers[std::size_t(q) * b.row_stride + c]);
        for (int k = 0; k < tiles.key_vectors; ++k) sums[q][k] += items[k] * number;
      }
    }
#pragma GCC unroll 8
    for (int q = 0; q < count; ++q) {
      double* to = b.products + (row + std::size_t(q)) * b.product_stride + first;
      const std::size_t end = b.ends[row + std::size_t(q)];
      for (int k = 0; k < tiles.key_vectors; ++k) {
        const std::size_t j = first + std::size_t(k) * N;
        if (j < end) store<N>(to + k * N, cut<N>(sums[q][k] * b.scale, end - j, -__builtin_inf()));
      }
    }
  }

  static std::size_t furthest(const std::size_t* ends, std::size_t n) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < n; ++i) end = ends[i] > end ? ends[i] : end;
    return end;
  }

  /// Products of `count` rows and the panels of items first … end − 1.
  template <int count>
  static void product_rows(const PanelBlock& b, std::size_t row, std::size_t first, std::size_t end) {
    const std::size_t last_end = furthest(b.ends + row, count);
    for (end = last_end < end ? last_end : end; first < end; first += panel_width)
      product_tile<count>(b, row, first);
  }

  static void products(const PanelBlock& b) {
    const std::size_t end = furthest(b.ends, b.n_rows), panel = panel_width * b.depth;
    const std::size_t at_once = (cached_numbers / (panel + 1) + 1) * panel_width;
    for (std::size_t first = 0; first < end; first += at_once) {  // they stay in the cache for all rows
      std::size_t i = 0;
      for (; i + tiles.queries <= b.n_rows; i += tiles.queries)
        product_rows<tiles.queries>(b, i, first, first + at_once);
      for (; i < b.n_rows; ++i) product_rows<1>(b, i, first, first + at_once);
    }
  }

  static RowSums softmax(const double* s, double* e, std::size_t n) {
    V tops = spread<N>(-__builtin_inf());
    for (std::size_t j = 0; j < n; j += N) {
      const V numbers = load<N>(s + j);
      tops = numbers > tops ? numbers : tops;
    }
    const double top = largest<N>(tops);
    V sums{};
    for (std::size_t j = 0; j < n; j += N) {
      const V numbers = exponential<N>(load<N>(s + j) - top);
      store<N>(e + j, numbers);
      sums += numbers;
    }
    return {top, sum<N>(sums)};
  }

  /// Contexts of `count` rows in `vectors` vectors of columns from `column` on, as far as the keys from
  /// `first` on take them; made those of weights after the last key.
  template <int count, int vectors>
  static void context_tile(const ProductBlock& b, std::size_t row, std::size_t column, std::size_t first) {
    const std::size_t last_end = furthest(b.ends + row, count);
    if (first > 0 && first >= last_end) return;
    const std::size_t end = last_end < first + keys_at_once ? last_end : first + keys_at_once;
    V sums[count][vectors];
    clear(sums);
    if (first > 0) take_up(b, row, column, sums);
    const double* weights = b.weights + row * b.weight_stride;
    const double* values = b.values + first * b.value_stride + column;
    for (std::size_t j = first; j < end; ++j, values += b.value_stride) {
      V numbers[vectors];
      for (int c = 0; c < vectors; ++c) numbers[c] = load<N>(values + c * N);
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const V weight = spread<N>(weights[std::size_t(i) * b.weight_stride + j]);
        for (int c = 0; c < vectors; ++c) sums[i][c] += numbers[c] * weight;
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      double* to = b.contexts + (row + std::size_t(i)) * b.context_stride + column;
      const double factor = end == last_end ? b.factor / b.sums[row + std::size_t(i)] : 1;
#pragma GCC unroll 8
      for (int c = 0; c < vectors; ++c)
        store_part_or_all(to + c * N, sums[i][c] * factor, b.d_head - column - std::size_t(c) * N);
    }
  }

  /// The sums of a tile as they were left after the keys before.
  template <int count, int vectors>
  static void take_up(const ProductBlock& b, std::size_t row, std::size_t column, V (&sums)[count][vectors]) {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      const double* from = b.contexts + (row + std::size_t(i)) * b.context_stride + column;
#pragma GCC unroll 8
      for (int c = 0; c < vectors; ++c) {
        const std::size_t left = b.d_head - column - std::size_t(c) * N;
        sums[i][c] = left >= N ? load<N>(from + c * N) : load_part<N>(from + c * N, left, 0);
      }
    }
  }

  static void store_part_or_all(double* to, V numbers, std::size_t left) {
    if (left >= N)
      store<N>(to, numbers);
    else
      store_part<N>(to, numbers, left);
  }

  template <int vectors>
  static void context_columns(const ProductBlock& b, std::size_t column) {
    const std::size_t end = furthest(b.ends, b.n_rows);
    std::size_t first = 0;
    do {  // a part of the values stays in the cache for all rows
      std::size_t i = 0;
      for (; i + tiles.rows <= b.n_rows; i += tiles.rows)
        context_tile<tiles.rows, vectors>(b, i, column, first);
      for (; i < b.n_rows; ++i) context_tile<1, vectors>(b, i, column, first);
      first += keys_at_once;
    } while (first < end);
  }

  static void contexts(const ProductBlock& b) {
    std::size_t column = 0;
    for (; column + (tiles.value_vectors - 1) * N < b.d_head; column += tiles.value_vectors * N)
      context_columns<tiles.value_vectors>(b, column);
    if constexpr (tiles.value_vectors > 2)
      for (; column + N < b.d_head; column += 2 * N) context_columns<2>(b, column);
    for (; column < b.d_head; column += N) context_columns<1>(b, column);
  }

  static void add(double* target, const double* source, double factor, std::size_t n) {
    std::size_t j = 0;
    for (; j + N <= n; j += N) store<N>(target + j, load<N>(target + j) + load<N>(source + j) * factor);
    for (; j < n; ++j) target[j] += source[j] * factor;
  }

  static double dot(const double* a, const double* b, std::size_t n) {
    V even{}, odd{};
    std::size_t j = 0;
    for (; j + 2 * N <= n; j += 2 * N) {
      even += load<N>(a + j) * load<N>(b + j);
      odd += load<N>(a + j + N) * load<N>(b + j + N);
    }
    for (; j + N <= n; j += N) even += load<N>(a + j) * load<N>(b + j);
    double total = sum<N>(even + odd);
    for (; j < n; ++j) total += a[j] * b[j];
    return total;
  }

  static void blend(double* target, double factor, double a, const double* x, double b, const double* y,
                    std::size_t n) {
    std::size_t j = 0;
    for (; j + N <= n; j += N)
      store<N>(target + j, load<N>(target + j) * factor + load<N>(x + j) * a + load<N>(y + j) * b);
    for (; j < n; ++j) target[j] = target[j] * factor + x[j] * a + y[j] * b;
  }

  static bool finite(const double* numbers, std::size_t n) {
    V zeros{};  // 0 · inf is NaN
    std::size_t j = 0;
    for (; j + N <= n; j += N) zeros += load<N>(numbers + j) * 0.0;
    double total = sum<N>(zeros);
    for (; j < n; ++j) total += numbers[j] * 0.0;
    return total == 0;
  }

  static void exponentials(double* numbers, std::size_t n) {
    const std::size_t whole = n / N * N;
    for (std::size_t j = 0; j < whole; j += N) store<N>(numbers + j, exponential<N>(load<N>(numbers + j)));
    if (whole < n)
      store_part<N>(numbers + whole, exponential<N>(load_part<N>(numbers + whole, n - whole, 0)), n - whole);
  }

  static double multiply_add(std::size_t n_rounds) {
    // More than units times their latency on any processor of today, and few enough for sixteen registers.
    constexpr int depth = Kernels::yardstick_vectors;
    V sums[depth];
    for (int k = 0; k < depth; ++k) sums[k] = spread<N>(k);
    const V factor = spread<N>(0.999), term = spread<N>(0.001);
    for (std::size_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 12
      for (int k = 0; k < depth; ++k) sums[k] = sums[k] * factor + term;
    }
    V total{};
    for (int k = 0; k < depth; ++k) total += sums[k];
    return sum<N>(total);
  }

  static constexpr Kernels table(const char* name) {
    return {name, N,   panel_width, tiles.queries, products,     softmax,     contexts,
            add,  dot, blend,       finite,        exponentials, multiply_add};
  }
};

#if defined(__AVX512F__)
// Thirty-two registers: twenty-four sums, up to four vectors of keys or values, one number.
using Loops = KernelsOf<8, Tiles{3, 8, 4, 6}>;
constexpr const char* name = "AVX-512";
#elif defined(__AVX2__)
// Sixteen registers: twelve sums, two or three vectors of values or keys, one number.
using Loops = KernelsOf<4, Tiles{3, 4, 2, 6}>;
constexpr const char* name = "AVX2";
#else
// Vectors of two: SSE2 on every x86-64, NEON on every arm64.
using Loops = KernelsOf<2, Tiles{2, 6, 2, 6}>;
constexpr const char* name = "plain";
#endif

extern const Kernels ATTNSCOPE_KERNELS = Loops::table(name);

}  // namespace core::attention::fast
