#include "core/engine/kernels.hpp"

#include <cstdint>

// This source is compiled once for each width of vector registers, with the flags that it needs.
namespace core::attention::fast {

/// Constants of a number format.
template <class Number>
struct Format;

template <>
struct Format<double> {
  using Integer = std::int64_t;
  static constexpr int mantissa_bits = 52, bias = 1023;  // mantissa bits and exponent bias
  static constexpr double lowest = -746;                 // eˣ is 0 below
  static constexpr double rounding_shift = 6755399441055744.0;
  static constexpr Integer rounding_shift_bits = 0x4338000000000000;
  static constexpr double ln2[] = {6.93147180369123816490e-01, 1.90821492927058770002e-10};
  static constexpr double even_coefficients[] = {1.0 / 479001600, 1.0 / 3628800, 1.0 / 40320,
                                                 1.0 / 720,       1.0 / 24,      1.0 / 2};
  static constexpr double odd_coefficients[] = {1.0 / 6227020800, 1.0 / 39916800, 1.0 / 362880,
                                                1.0 / 5040,       1.0 / 120,      1.0 / 6};
};

template <>
struct Format<float> {
  using Integer = std::int32_t;
  static constexpr int mantissa_bits = 23, bias = 127;
  static constexpr float lowest = -104;
  static constexpr float rounding_shift = 12582912;
  static constexpr Integer rounding_shift_bits = 0x4b400000;
  static constexpr float ln2[] = {0.693359375f, -2.12194440e-4f};
  static constexpr float even_coefficients[] = {1.0f / 720, 1.0f / 24, 1.0f / 2};
  static constexpr float odd_coefficients[] = {1.0f / 5040, 1.0f / 120, 1.0f / 6};
};

template <class Number, int N>
struct VectorTypes {
  // Unaligned, and may alias any array of such numbers.
  typedef Number Numbers __attribute__((vector_size(N * sizeof(Number)), aligned(sizeof(Number)), may_alias));
  typedef typename Format<Number>::Integer Integers __attribute__((vector_size(N * sizeof(Number))));
};

template <class Number, int N>
using Vector = typename VectorTypes<Number, N>::Numbers;

template <class Number, int N>
[[gnu::always_inline]] inline Vector<Number, N> load(const Number* from) {
  return *reinterpret_cast<const Vector<Number, N>*>(from);
}

template <class Number, int N>
[[gnu::always_inline]] inline void store(Number* to, Vector<Number, N> numbers) {
  *reinterpret_cast<Vector<Number, N>*>(to) = numbers;
}

/// Broadcasts a number; 0 + number would cost an addition, because 0 + −0 is not −0.
template <class Number, int N>
[[gnu::always_inline]] inline Vector<Number, N> broadcast(Number number) {
  return number - Vector<Number, N>{};
}

/// Loads the first n numbers and pads the rest with the filling.
template <class Number, int N>
[[gnu::always_inline]] inline Vector<Number, N> load_part(const Number* from, std::size_t n,
                                                          Number fill_value) {
  Vector<Number, N> numbers = broadcast<Number, N>(fill_value);
  for (std::size_t j = 0; j < n; ++j) numbers[j] = from[j];
  return numbers;
}

template <class Number, int N>
[[gnu::always_inline]] inline void store_part(Number* to, Vector<Number, N> numbers, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) to[j] = numbers[j];
}

/// Keeps the first n numbers and replaces the others by the filling.
template <class Number, int N>
[[gnu::always_inline]] inline Vector<Number, N> fill_tail(Vector<Number, N> numbers, std::size_t n,
                                                          Number fill_value) {
  if (n >= std::size_t{N}) return numbers;
  using Integer = typename Format<Number>::Integer;
  typename VectorTypes<Number, N>::Integers places;
  for (int j = 0; j < N; ++j) places[j] = j;
  return places < static_cast<Integer>(n) ? numbers : broadcast<Number, N>(fill_value);
}

template <class Number, int N>
[[gnu::always_inline]] inline Number sum(Vector<Number, N> v) {
  Number parts[N];
  store<Number, N>(parts, v);
  for (int half = N / 2; half > 0; half /= 2)  // by halves: a short dependency chain
    for (int j = 0; j < half; ++j) parts[j] += parts[j + half];
  return parts[0];
}

template <class Number, int N>
[[gnu::always_inline]] inline Number largest(Vector<Number, N> v) {
  Number parts[N];
  store<Number, N>(parts, v);
  for (int half = N / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) parts[j] = parts[j + half] > parts[j] ? parts[j + half] : parts[j];
  return parts[0];
}

/// Computes 2ⁿ for integers n; 2ⁿ must be a normal number.
template <class Number, int N>
[[gnu::always_inline]] inline Vector<Number, N> power_of_two(typename VectorTypes<Number, N>::Integers n) {
  return reinterpret_cast<Vector<Number, N>>((n + Format<Number>::bias) << Format<Number>::mantissa_bits);
}

/// Computes eˣ for x ≤ 709, or 88 in float32, to about one unit in the last place; 0 for −inf, NaN for NaN.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2; eʳ by its series to r¹³ with a remainder below 2⁻⁵⁷, or to r⁷ and
/// 2⁻²⁷. Even and odd terms are summed separately, so that neither sum waits for the other. Scaling by 2ⁿ in
/// two steps gives subnormal numbers too.
template <class Number, int N>
[[gnu::always_inline]] inline Vector<Number, N> exponential(Vector<Number, N> x) {
  using V = Vector<Number, N>;
  using I = typename VectorTypes<Number, N>::Integers;
  using F = Format<Number>;
  const auto is_zero = x < F::lowest;  // separate, as processors are slow when a result underflows
  x = is_zero ? V{} : x;
  // Adding 1.5 · 2⁵², or 1.5 · 2²³, leaves the nearest integer in the low bits.
  const V shifted = x * Number(1.4426950408889634) + F::rounding_shift, n = shifted - F::rounding_shift;
  const V r = (x - n * F::ln2[0]) - n * F::ln2[1];  // ln 2 in two parts
  constexpr int n_terms = sizeof(F::even_coefficients) / sizeof(Number);
  const V square = r * r;
  V even = broadcast<Number, N>(F::even_coefficients[0]), odd = broadcast<Number, N>(F::odd_coefficients[0]);
  for (int k = 1; k < n_terms; ++k) even = even * square + F::even_coefficients[k];
  for (int k = 1; k < n_terms; ++k) odd = odd * square + F::odd_coefficients[k];
  const V p = (odd * r + even) * square + r + Number(1);
  const V half_shifted = n * Number(0.5) + F::rounding_shift;
  const I whole = reinterpret_cast<I>(shifted) - F::rounding_shift_bits;
  const I half = reinterpret_cast<I>(half_shifted) - F::rounding_shift_bits;
  return is_zero ? V{} : p * power_of_two<Number, N>(half) * power_of_two<Number, N>(whole - half);
}

/// Tile sizes, such that all sums of a tile stay in registers.
struct Tiles {
  int key_vectors, queries;  // of a tile of products with panels
  int value_vectors, rows;   // of a tile of contexts
};

template <class Number, int N, Tiles tiles>
struct VectorKernels {
  using V = Vector<Number, N>;
  static constexpr std::size_t panel_width = std::size_t{tiles.key_vectors} * N;
  // How many numbers of panels, and how many keys of a head's values, fit the L2 cache.
  static constexpr std::size_t cached_numbers = 524288 / sizeof(Number),
                               key_chunk_size = 8192 / sizeof(Number);
  static constexpr std::size_t part_depth = 128;  // of partial sums in float32
  static constexpr Number infinity = Number(__builtin_inf());
  static_assert(panel_width <= AttentionKernels<Number>::max_panel_width &&
                tiles.queries <= int(AttentionKernels<Number>::max_panel_rows));

  /// Sets all sums to zero; `= {}` makes compilers keep a whole tile in memory.
  template <int count, int vectors>
  [[gnu::always_inline]] static void clear(V (&sums)[count][vectors]) {
#pragma GCC unroll 12
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < vectors; ++k) sums[i][k] = V{};
  }

  /// Adds products of `count` rows and one panel, for depths from … to − 1.
  template <int count>
  [[gnu::always_inline]] static void add_products(const PanelProductArgs<Number>& b, std::size_t row,
                                                  std::size_t first, std::size_t from, std::size_t to,
                                                  V (&sums)[count][tiles.key_vectors]) {
    // One pointer for three rows, as one instruction can address them: a pointer for each row would not fit
    // in sixteen registers. The empty statement keeps compilers from making twelve of them again.
    const std::size_t stride = b.row_stride;
    const Number *r = b.rows + row * stride + from, *s = r + 3 * stride, *t = r + 6 * stride,
                 *u = r + 9 * stride, *panel = b.panels + first * b.depth + from * panel_width;
    for (std::size_t c = from; c < to; ++c) {
      V items[tiles.key_vectors];
      for (int k = 0; k < tiles.key_vectors; ++k) items[k] = load<Number, N>(panel + k * N);
#pragma GCC unroll 12
      for (unsigned q = 0; q < count; ++q) {  // unsigned: with int, g++ 12 miscompiles under sanitizers
        const Number* const row_of_three = q < 3 ? r : q < 6 ? s : q < 9 ? t : u;
        const V number = broadcast<Number, N>(row_of_three[q % 3 * stride]);
        for (int k = 0; k < tiles.key_vectors; ++k) sums[q][k] += items[k] * number;
      }
      panel += panel_width, ++r, ++s, ++t, ++u;
#if defined(__x86_64__)
      asm("" : "+r"(r), "+r"(s), "+r"(t), "+r"(u), "+r"(panel));
#endif
    }
  }

  /// Computes products of `count` rows and the panel with first item `first`.
  template <int count>
  static void product_tile(const PanelProductArgs<Number>& b, std::size_t row, std::size_t first) {
    V sums[count][tiles.key_vectors];
    clear(sums);
    if (sizeof(Number) == sizeof(double) || b.depth < 2 * part_depth) {
      add_products<count>(b, row, first, 0, b.depth, sums);
    } else {  // partial sums lose less precision
      V parts[count][tiles.key_vectors];
      for (std::size_t c = 0; c < b.depth; c += part_depth) {
        clear(parts);
        const std::size_t end = c + part_depth < b.depth ? c + part_depth : b.depth;
        add_products<count>(b, row, first, c, end, parts);
#pragma GCC unroll 12
        for (int q = 0; q < count; ++q)
          for (int k = 0; k < tiles.key_vectors; ++k) sums[q][k] += parts[q][k];
      }
    }
#pragma GCC unroll 12
    for (int q = 0; q < count; ++q) {
      Number* to = b.products + (row + std::size_t(q)) * b.product_stride + first;
      const std::size_t end = b.ends[row + std::size_t(q)];
      for (int k = 0; k < tiles.key_vectors; ++k) {
        const std::size_t j = first + std::size_t(k) * N;
        if (j < end)
          store<Number, N>(to + k * N, fill_tail<Number, N>(sums[q][k] * b.scale, end - j, -infinity));
      }
    }
  }

  static std::size_t max_end(const std::size_t* ends, std::size_t n) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < n; ++i) end = ends[i] > end ? ends[i] : end;
    return end;
  }

  /// Computes products of `count` rows and the panels of items first … end − 1.
  template <int count>
  static void product_rows(const PanelProductArgs<Number>& b, std::size_t row, std::size_t first,
                           std::size_t end) {
    const std::size_t last_end = max_end(b.ends + row, count);
    for (end = last_end < end ? last_end : end; first < end; first += panel_width)
      product_tile<count>(b, row, first);
  }

  static void products(const PanelProductArgs<Number>& b) {
    const std::size_t end = max_end(b.ends, b.n_rows), panel = panel_width * b.depth;
    const std::size_t chunk_size = (cached_numbers / (panel + 1) + 1) * panel_width;
    for (std::size_t first = 0; first < end; first += chunk_size) {  // kept in the cache for all rows
      std::size_t i = 0;
      for (; i + tiles.queries <= b.n_rows; i += tiles.queries)
        product_rows<tiles.queries>(b, i, first, first + chunk_size);
      for (; i + 4 <= b.n_rows; i += 4) product_rows<4>(b, i, first, first + chunk_size);
      for (; i < b.n_rows; ++i) product_rows<1>(b, i, first, first + chunk_size);
    }
  }

  static SoftmaxStats<Number> softmax(const Number* s, Number* e, std::size_t n) {
    V tops = broadcast<Number, N>(-infinity);
    for (std::size_t j = 0; j < n; j += N) {
      const V numbers = load<Number, N>(s + j);
      tops = numbers > tops ? numbers : tops;
    }
    const Number top = largest<Number, N>(tops);
    V sums{};
    for (std::size_t j = 0; j < n; j += N) {
      const V numbers = exponential<Number, N>(load<Number, N>(s + j) - top);
      store<Number, N>(e + j, numbers);
      sums += numbers;
    }
    return {top, sum<Number, N>(sums)};
  }

  /// Adds one part of the keys, from `first` on, to the contexts of `count` rows in `vectors` vectors of
  /// columns from `column` on; normalizes them after the last key.
  template <int count, int vectors>
  static void context_tile(const ContextArgs<Number>& b, std::size_t row, std::size_t column,
                           std::size_t first) {
    const std::size_t last_end = max_end(b.ends + row, count);
    if (first > 0 && first >= last_end) return;
    const std::size_t end = last_end < first + key_chunk_size ? last_end : first + key_chunk_size;
    V sums[count][vectors];
    clear(sums);
    if (first > 0) restore_sums(b, row, column, sums);
    const Number* weights = b.weights + row * b.weight_stride;
    const Number* values = b.values + first * b.value_stride + column;
    for (std::size_t j = first; j < end; ++j, values += b.value_stride) {
      V numbers[vectors];
      for (int c = 0; c < vectors; ++c) numbers[c] = load<Number, N>(values + c * N);
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const V weight = broadcast<Number, N>(weights[std::size_t(i) * b.weight_stride + j]);
        for (int c = 0; c < vectors; ++c) sums[i][c] += numbers[c] * weight;
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      Number* to = b.contexts + (row + std::size_t(i)) * b.context_stride + column;
      const Number factor = end == last_end ? Number(b.factor / b.sums[row + std::size_t(i)]) : 1;
#pragma GCC unroll 8
      for (int c = 0; c < vectors; ++c)
        store_part_or_all(to + c * N, sums[i][c] * factor, b.d_head - column - std::size_t(c) * N);
    }
  }

  /// Loads the sums of a tile after the previous keys.
  template <int count, int vectors>
  static void restore_sums(const ContextArgs<Number>& b, std::size_t row, std::size_t column,
                           V (&sums)[count][vectors]) {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      const Number* from = b.contexts + (row + std::size_t(i)) * b.context_stride + column;
#pragma GCC unroll 8
      for (int c = 0; c < vectors; ++c) {
        const std::size_t left = b.d_head - column - std::size_t(c) * N;
        sums[i][c] = left >= N ? load<Number, N>(from + c * N) : load_part<Number, N>(from + c * N, left, 0);
      }
    }
  }

  static void store_part_or_all(Number* to, V numbers, std::size_t left) {
    if (left >= N)
      store<Number, N>(to, numbers);
    else
      store_part<Number, N>(to, numbers, left);
  }

  template <int vectors>
  static void context_columns(const ContextArgs<Number>& b, std::size_t column) {
    const std::size_t end = max_end(b.ends, b.n_rows);
    std::size_t first = 0;
    do {  // one part of the values stays in the cache for all rows
      std::size_t i = 0;
      for (; i + tiles.rows <= b.n_rows; i += tiles.rows)
        context_tile<tiles.rows, vectors>(b, i, column, first);
      for (; i < b.n_rows; ++i) context_tile<1, vectors>(b, i, column, first);
      first += key_chunk_size;
    } while (first < end);
  }

  static void contexts(const ContextArgs<Number>& b) {
    std::size_t column = 0;
    for (; column + (tiles.value_vectors - 1) * N < b.d_head; column += tiles.value_vectors * N)
      context_columns<tiles.value_vectors>(b, column);
    if constexpr (tiles.value_vectors > 2)
      for (; column + N < b.d_head; column += 2 * N) context_columns<2>(b, column);
    for (; column < b.d_head; column += N) context_columns<1>(b, column);
  }

  static void add(Number* target, const Number* source, Number factor, std::size_t n) {
    std::size_t j = 0;
    for (; j + N <= n; j += N)
      store<Number, N>(target + j, load<Number, N>(target + j) + load<Number, N>(source + j) * factor);
    for (; j < n; ++j) target[j] += source[j] * factor;
  }

  static Number dot(const Number* a, const Number* b, std::size_t n) {
    V even{}, odd{};
    std::size_t j = 0;
    for (; j + 2 * N <= n; j += 2 * N) {
      even += load<Number, N>(a + j) * load<Number, N>(b + j);
      odd += load<Number, N>(a + j + N) * load<Number, N>(b + j + N);
    }
    for (; j + N <= n; j += N) even += load<Number, N>(a + j) * load<Number, N>(b + j);
    Number total = sum<Number, N>(even + odd);
    for (; j < n; ++j) total += a[j] * b[j];
    return total;
  }

  static void blend(Number* target, Number factor, Number a, const Number* x, Number b, const Number* y,
                    std::size_t n) {
    std::size_t j = 0;
    for (; j + N <= n; j += N)
      store<Number, N>(target + j, load<Number, N>(target + j) * factor + load<Number, N>(x + j) * a +
                                       load<Number, N>(y + j) * b);
    for (; j < n; ++j) target[j] = target[j] * factor + x[j] * a + y[j] * b;
  }

  static bool is_finite(const Number* numbers, std::size_t n) {
    V zeros{};  // 0 · inf is NaN
    std::size_t j = 0;
    for (; j + N <= n; j += N) zeros += load<Number, N>(numbers + j) * Number(0);
    Number total = sum<Number, N>(zeros);
    for (; j < n; ++j) total += numbers[j] * 0;
    return total == 0;
  }

  static void exponentials(Number* numbers, std::size_t n) {
    const std::size_t whole = n / N * N;
    for (std::size_t j = 0; j < whole; j += N)
      store<Number, N>(numbers + j, exponential<Number, N>(load<Number, N>(numbers + j)));
    if (whole < n)
      store_part<Number, N>(numbers + whole,
                            exponential<Number, N>(load_part<Number, N>(numbers + whole, n - whole, 0)),
                            n - whole);
  }

  static Number multiply_add(std::size_t n_rounds) {
    // More than the units times their latency on current processors, and few enough for sixteen registers.
    constexpr int depth = AttentionKernels<Number>::benchmark_vectors;
    V sums[depth];
    for (int k = 0; k < depth; ++k) sums[k] = broadcast<Number, N>(Number(k));
    const V factor = broadcast<Number, N>(Number(0.999)), term = broadcast<Number, N>(Number(0.001));
    for (std::size_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 12
      for (int k = 0; k < depth; ++k) sums[k] = sums[k] * factor + term;
    }
    V total{};
    for (int k = 0; k < depth; ++k) total += sums[k];
    return sum<Number, N>(total);
  }

  static constexpr AttentionKernels<Number> table(const char* name) {
    return {name, N,   panel_width, tiles.queries, products,     softmax,     contexts,
            add,  dot, blend,       is_finite,     exponentials, multiply_add};
  }
};

// A vector holds twice as many float32 numbers, so two vectors make a panel wide enough.
#if defined(__AVX512F__)
// Thirty-two registers: twenty-four sums, up to four vectors of keys or values, one number.
constexpr int lanes = 8;
constexpr Tiles tiles{3, 8, 4, 6}, float32_tiles{2, 12, 4, 6};
constexpr const char* name = "AVX-512";
#elif defined(__AVX2__)
// Sixteen registers: twelve sums, two or three vectors of values or keys, one number.
constexpr int lanes = 4;
constexpr Tiles tiles{3, 4, 2, 6}, float32_tiles{2, 6, 2, 6};
constexpr const char* name = "AVX2";
#else
// Vectors of two: SSE2 on every x86-64, NEON on every arm64.
constexpr int lanes = 2;
constexpr Tiles tiles{2, 6, 2, 6}, float32_tiles = tiles;
constexpr const char* name = "plain";
#endif

extern const KernelSet ATTNSCOPE_KERNELS{VectorKernels<double, lanes, tiles>::table(name),
                                         VectorKernels<float, 2 * lanes, float32_tiles>::table(name)};

}  // namespace core::attention::fast
