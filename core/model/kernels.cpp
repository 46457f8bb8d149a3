#include "core/model/kernels.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// This source is compiled once for each width of vector registers, with the flags that it needs. It uses no
// inline function of the standard library: one compiled for wide registers could otherwise be linked into the
// rest of the program.
namespace core::transformer {
namespace {

using formats::checkpoints::Activation;

#if defined(__AVX512F__)
constexpr int lanes = 16, tile_rows = 12;  // 24 sums in 32 registers
constexpr const char* name = "AVX-512";
#elif defined(__AVX2__)
constexpr int lanes = 8, tile_rows = 6;  // 12 sums in 16 registers
constexpr const char* name = "AVX2";
#else
constexpr int lanes = 4, tile_rows = 6;  // SSE2 on every x86-64, NEON on every arm64
constexpr const char* name = "plain";
#endif
constexpr int vectors = panel_width / lanes;  // of a panel
constexpr int tile_vectors = 2;               // of them at once
constexpr std::size_t block_depth = 256;      // of a panel, so that a block stays in the first-level cache
constexpr std::size_t prefetch_bytes = 8192;  // prefetched while a row is multiplied

// Unaligned, and allowed to alias any array of floats.
typedef float V __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
typedef std::int32_t I __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
typedef float V4 __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE [[gnu::always_inline]] inline

INLINE V load(const float* from) {
  return *reinterpret_cast<const V*>(from);
}
INLINE void store(float* to, V numbers) {
  *reinterpret_cast<V*>(to) = numbers;
}
/// Broadcasts number − 0, as 0 + number would cost an addition: it is not number when that is −0.
INLINE V broadcast(float number) {
  return number - V{};
}
INLINE float lane_sum(V v) {
  float parts[lanes];
  store(parts, v);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) parts[j] += parts[j + half];
  return parts[0];
}
/// Returns the first n numbers; the filling replaces the others.
INLINE V mask_tail(V numbers, std::size_t n, float filling) {
  if (n >= lanes) return numbers;
  I places;
  for (int j = 0; j < lanes; ++j) places[j] = j;
  return places < static_cast<std::int32_t>(n) ? numbers : broadcast(filling);
}

// Numbers in the encodings of files.

INLINE V from_bf16(const unsigned char* from) {
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return reinterpret_cast<V>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#elif defined(__AVX2__)
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<V>(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
#else
  I bits;
  for (int j = 0; j < lanes; ++j) bits[j] = (from[2 * j] | from[2 * j + 1] << 8) << 16;
  return reinterpret_cast<V>(bits);
#endif
}

INLINE V from_f16(const unsigned char* from) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__AVX2__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  I bits;
  for (int j = 0; j < lanes; ++j) bits[j] = from[2 * j] | from[2 * j + 1] << 8;
  const I sign = (bits & 0x8000) << 16, rest = (bits & 0x7fff) << 13;
  const V scaled = reinterpret_cast<V>(rest) * 0x1p112f;  // corrects the bias of the exponent
  const I is_special = rest >= (0x7c00 << 13);            // infinite, or NaN
  return reinterpret_cast<V>(sign | (is_special ? rest | 0x7f800000 : reinterpret_cast<I>(scaled)));
#endif
}

INLINE V from_int8(const unsigned char* from) {
#if defined(__AVX512F__)
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX2__)
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  V numbers;
  for (int j = 0; j < lanes; ++j) numbers[j] = static_cast<signed char>(from[j]);
  return numbers;
#endif
}

template <Encoding encoding>
INLINE V weight(const unsigned char* panel, std::size_t number) {
  if constexpr (encoding == Encoding::f32) return load(reinterpret_cast<const float*>(panel) + number);
  if constexpr (encoding == Encoding::f16) return from_f16(panel + 2 * number);
  if constexpr (encoding == Encoding::bf16) return from_bf16(panel + 2 * number);
}

constexpr std::size_t q8_bytes = panel_bytes(Encoding::q8_0, q8_block);

template <Encoding encoding>
void widen_as(const unsigned char* panel, std::size_t from, std::size_t count, float* to) {
  if constexpr (encoding == Encoding::q8_0) {
    for (std::size_t k = from; k < from + count; ++k, to += panel_width) {
      const unsigned char *block = panel + k / q8_block * q8_bytes,
                          *numbers = block + 2 * panel_width + k % q8_block * panel_width;
      for (int c = 0; c < vectors; ++c)
        store(to + c * lanes, from_int8(numbers + c * lanes) * from_f16(block + 2 * c * lanes));
    }
  } else {
    for (std::size_t j = 0; j < count * panel_width; j += lanes)
      store(to + j, weight<encoding>(panel, from * panel_width + j));
  }
}

void widen(const unsigned char* panel, Encoding encoding, std::size_t from, std::size_t count, float* to) {
  switch (encoding) {
    case Encoding::f32:
      return widen_as<Encoding::f32>(panel, from, count, to);
    case Encoding::f16:
      return widen_as<Encoding::f16>(panel, from, count, to);
    case Encoding::bf16:
      return widen_as<Encoding::bf16>(panel, from, count, to);
    case Encoding::q8_0:
      return widen_as<Encoding::q8_0>(panel, from, count, to);
  }
}

// One row: reading memory is all it costs, and panel after panel is one sequential read.

template <Encoding encoding>
void row_times_panel(const float* x, const unsigned char* panel, std::size_t depth, const float* bias,
                     float* y) {
  V sums[vectors];
#pragma GCC unroll 8
  for (int c = 0; c < vectors; ++c) sums[c] = bias ? load(bias + c * lanes) : V{};
  if constexpr (encoding == Encoding::q8_0) {
    for (std::size_t k = 0; k < depth; k += q8_block, panel += q8_bytes) {
      V parts[2][vectors];  // of a block, before its scales; two hide the latency of additions
#pragma GCC unroll 8
      for (int c = 0; c < vectors; ++c) parts[0][c] = parts[1][c] = V{};
      for (std::size_t i = 0; i < q8_block; i += 2) {
        const unsigned char* numbers = panel + (i + 2) * panel_width;
        __builtin_prefetch(numbers + prefetch_bytes);
#pragma GCC unroll 2
        for (std::size_t j = 0; j < 2; ++j) {
          const V number = broadcast(x[k + i + j]);
#pragma GCC unroll 8
          for (int c = 0; c < vectors; ++c)
            parts[j][c] += from_int8(numbers + j * panel_width + c * lanes) * number;
        }
      }
#pragma GCC unroll 8
      for (int c = 0; c < vectors; ++c)
        sums[c] += (parts[0][c] + parts[1][c]) * from_f16(panel + 2 * c * lanes);
    }
  } else {
    constexpr std::size_t bytes = panel_bytes(encoding, 1);
    for (std::size_t k = 0; k < depth; ++k, panel += bytes) {
      const V number = broadcast(x[k]);
#pragma GCC unroll 2
      for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(panel + line + prefetch_bytes);
#pragma GCC unroll 8
      for (int c = 0; c < vectors; ++c) sums[c] += weight<encoding>(panel, std::size_t(c) * lanes) * number;
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < vectors; ++c) store(y + c * lanes, sums[c]);
}

template <Encoding encoding>
void one_row(const PanelProduct& p) {
  for (std::size_t k = p.begin; k < p.end; ++k)
    row_times_panel<encoding>(p.x, p.panels + k * panel_bytes(encoding, p.depth), p.depth,
                              p.bias ? p.bias + k * panel_width : nullptr, p.y + k * panel_width);
}

// Many rows: the sums of a tile of rows × two vectors stay in registers while the next block of the panel is
// prefetched.

struct Tile {
  const float* x;
  std::size_t x_stride;
  const float* panel;
  std::size_t panel_stride, depth;
  float* y;
  std::size_t y_stride;
  const float* bias;  ///< or nullptr
  bool accumulates;   ///< continues from the sums in y
  const unsigned char* prefetch;
  std::size_t prefetch_step;  ///< bytes for each input
};

// With checks for undefined behavior GCC 12 reads past the rows here; without them it does not.
template <int rows>
[[gnu::no_sanitize("undefined")]] void tile(const Tile& t) {
  V sums[rows][tile_vectors];
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int c = 0; c < tile_vectors; ++c)
      sums[i][c] = t.accumulates ? load(t.y + std::size_t(i) * t.y_stride + c * lanes)
                   : t.bias      ? load(t.bias + c * lanes)
                                 : V{};
  // One pointer for three rows, each reached by the addressing of one instruction: a pointer per row would
  // not fit in sixteen registers. The empty statement keeps compilers from making twelve pointers again.
  const std::size_t stride = t.x_stride;
  const float *a = t.x, *b = a + 3 * stride, *c = a + 6 * stride, *d = a + 9 * stride, *panel = t.panel;
  const unsigned char* prefetch = t.prefetch;
  for (std::size_t k = 0; k < t.depth; ++k) {
    const V left = load(panel), right = load(panel + lanes);
#pragma GCC unroll 12
    for (unsigned i = 0; i < rows; ++i) {  // unsigned: with int, g++ 12 generates wrong code under sanitizers
      const float* const row_of_three = i < 3 ? a : i < 6 ? b : i < 9 ? c : d;
      const V number = broadcast(row_of_three[i % 3 * stride]);
      sums[i][0] += number * left;
      sums[i][1] += number * right;
    }
    __builtin_prefetch(prefetch, 0, 2);
    prefetch += t.prefetch_step;
    panel += t.panel_stride, ++a, ++b, ++c, ++d;
#if defined(__x86_64__)
    asm("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(panel));
#endif
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < tile_vectors; ++v) store(t.y + std::size_t(i) * t.y_stride + v * lanes, sums[i][v]);
}

void tile_of(std::size_t rows, const Tile& t) {
  switch (rows) {
    case 1:
      return tile<1>(t);
    case 2:
      return tile<2>(t);
    case 3:
      return tile<3>(t);
    case 4:
      return tile<4>(t);
    case 5:
      return tile<5>(t);
    case 6:
      return tile<6>(t);
#if defined(__AVX512F__)
    case 7:
      return tile<7>(t);
    case 8:
      return tile<8>(t);
    case 9:
      return tile<9>(t);
    case 10:
      return tile<10>(t);
    case 11:
      return tile<11>(t);
    case 12:
      return tile<12>(t);
#endif
  }
}

/// Multiplies all rows by a panel, two vectors of it at a time, in tiles of nearly equal numbers of rows.
void tiles_of_panel(Tile t, std::size_t n_rows, std::size_t bytes_of_next) {
  const std::size_t n_tiles = (n_rows + tile_rows - 1) / tile_rows,
                    n_steps = n_tiles * (vectors / tile_vectors) * t.depth;
  t.prefetch_step = (bytes_of_next + n_steps - 1) / n_steps;
  const float* x = t.x;
  for (int column = 0; column < int(panel_width); column += tile_vectors * lanes) {
    float* y = t.y + column;
    Tile part = t;
    for (std::size_t k = 0; k < n_tiles; ++k) {
      const std::size_t from = n_rows * k / n_tiles, to = n_rows * (k + 1) / n_tiles;
      part.x = x + from * t.x_stride, part.y = y + from * t.y_stride;
      part.panel = t.panel + column, part.bias = t.bias ? t.bias + column : nullptr;
      tile_of(to - from, part);
      part.prefetch += t.prefetch_step * t.depth;
    }
    t.prefetch = part.prefetch;
  }
}

void many_rows(const PanelProduct& p) {
  alignas(64) float widened[block_depth * panel_width];
  const std::size_t bytes = panel_bytes(p.encoding, p.depth);
  for (std::size_t panel = p.begin; panel < p.end; ++panel) {
    const unsigned char* numbers = p.panels + panel * bytes;
    for (std::size_t k = 0; k < p.depth; k += block_depth) {
      const std::size_t count = k + block_depth < p.depth ? block_depth : p.depth - k,
                        block_bytes = panel_bytes(p.encoding, count),
                        done = panel_bytes(p.encoding, k) + block_bytes;
      if (p.encoding != Encoding::f32) widen(numbers, p.encoding, k, count, widened);
      const float* block =
          p.encoding == Encoding::f32 ? reinterpret_cast<const float*>(numbers) + k * panel_width : widened;
      tiles_of_panel({p.x + k, p.x_stride, block, panel_width, count, p.y + panel * panel_width, p.y_stride,
                      p.bias ? p.bias + panel * panel_width : nullptr, k > 0, numbers + done, 0},
                     p.n_rows, block_bytes);
    }
  }
}

void product(const PanelProduct& p) {
  if (p.n_rows > 1) return many_rows(p);
  switch (p.encoding) {
    case Encoding::f32:
      return one_row<Encoding::f32>(p);
    case Encoding::f16:
      return one_row<Encoding::f16>(p);
    case Encoding::bf16:
      return one_row<Encoding::bf16>(p);
    case Encoding::q8_0:
      return one_row<Encoding::q8_0>(p);
  }
}

void float_panel(const float* x, std::size_t x_stride, std::size_t n_rows, const float* panel,
                 std::size_t panel_stride, std::size_t depth, float* y, std::size_t y_stride) {
  const auto* here = reinterpret_cast<const unsigned char*>(panel);
  tiles_of_panel({x, x_stride, panel, panel_stride, depth, y, y_stride, nullptr, false, here, 0}, n_rows, 0);
}

void pack_panel(const float* rows, std::size_t stride, std::size_t n_rows, std::size_t depth, float* panel) {
  std::size_t row = 0;
  for (; row + 4 <= n_rows; row += 4) {
    std::size_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      const auto four = [&](std::size_t i) {
        return *reinterpret_cast<const V4*>(rows + (row + i) * stride + k);
      };
      const V4 a = four(0), b = four(1), c = four(2), d = four(3);
      const V4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
               cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      float* to = panel + k * panel_width + row;
      *reinterpret_cast<V4*>(to) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
      *reinterpret_cast<V4*>(to + panel_width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
      *reinterpret_cast<V4*>(to + 2 * panel_width) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      *reinterpret_cast<V4*>(to + 3 * panel_width) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
    for (; k < depth; ++k)
      for (std::size_t i = 0; i < 4; ++i) panel[k * panel_width + row + i] = rows[(row + i) * stride + k];
  }
  for (; row < panel_width; ++row)
    for (std::size_t k = 0; k < depth; ++k)
      panel[k * panel_width + row] = row < n_rows ? rows[row * stride + k] : 0;
}

// Softmax, norms and activations.

/// Returns e to the power of x, to about two units in the last place of float32; x is clamped to −87 … 88,
/// and NaN stays. Source: Cephes, expf.
INLINE V exponential(V x) {
  x = x < -87.0f ? broadcast(-87) : x;
  x = x > 88.0f ? broadcast(88) : x;
  // Adding 1.5 · 2²³ leaves the nearest whole number in the low bits.
  const V shifted = x * 1.44269504f + 12582912.0f, whole = shifted - 12582912.0f;
  const V rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  V sum = broadcast(1.9875691500e-4f);
  for (const float factor :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    sum = sum * rest + factor;
  sum = sum * (rest * rest) + (rest + 1.0f);
  return sum * reinterpret_cast<V>((reinterpret_cast<I>(shifted) - 0x4b400000 + 127) << 23);
}

void softmax(float* scores, std::size_t begin, std::size_t end, std::size_t n, float scale) {
  for (std::size_t j = 0; j < begin; ++j) scores[j] = -__builtin_inff();
  for (std::size_t j = end; j < n; ++j) scores[j] = -__builtin_inff();
  V tops = broadcast(-__builtin_inff());
  for (std::size_t j = 0; j < n; j += lanes) {
    const V numbers = mask_tail(load(scores + j), n - j, -__builtin_inff());
    tops = numbers > tops ? numbers : tops;
  }
  float top = tops[0];
  for (int j = 1; j < lanes; ++j) top = tops[j] > top ? tops[j] : top;
  V sums{};
  for (std::size_t j = 0; j < n; j += lanes) {
    const V below = (mask_tail(load(scores + j), n - j, -__builtin_inff()) - top) * scale;
    const V numbers = below < -87.0f ? V{} : exponential(below);
    store(scores + j, numbers);
    sums += numbers;
  }
  const float factor = 1 / lane_sum(sums);
  for (std::size_t j = 0; j < n; j += lanes) store(scores + j, load(scores + j) * factor);
}

void norm(const float* x, std::size_t width, const RowNorm& rule, float* y) {
  float mean = 0;
  if (rule.is_centered) {
    V sums{};
    for (std::size_t j = 0; j < width; j += lanes) sums += mask_tail(load(x + j), width - j, 0);
    mean = lane_sum(sums) / static_cast<float>(width);
  }
  V squares{};
  for (std::size_t j = 0; j < width; j += lanes) {
    const V difference = mask_tail(load(x + j) - mean, width - j, 0);
    squares += difference * difference;
  }
  const float factor = 1 / __builtin_sqrtf(lane_sum(squares) / static_cast<float>(width) + rule.epsilon);
  std::size_t j = 0;
  for (; j + lanes <= width; j += lanes) {
    const V scaled = (load(x + j) - mean) * factor * load(rule.factors + j);
    store(y + j, rule.bias ? scaled + load(rule.bias + j) : scaled);
  }
  for (; j < width; ++j) y[j] = (x[j] - mean) * factor * rule.factors[j] + (rule.bias ? rule.bias[j] : 0);
}

/// Returns the error function to 1.5e-7. Source: Abramowitz and Stegun 7.1.26.
INLINE V error_function(V x) {
  const V size = x < 0.0f ? -x : x, t = 1.0f / (1.0f + 0.3275911f * size);
  V sum = broadcast(1.061405429f);
  for (const float factor : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f})
    sum = sum * t + factor;
  const V value = 1.0f - sum * t * exponential(-size * size);
  return x < 0.0f ? -value : value;
}

template <class Function>
INLINE void apply(float* x, const float* factors, std::size_t n, Function function) {
  for (std::size_t j = 0; j < n; j += lanes) {
    const V numbers = function(load(x + j));
    store(x + j, factors ? numbers * load(factors + j) : numbers);
  }
}

void activate(float* x, const float* factors, std::size_t n, Activation activation) {
  switch (activation) {
    case Activation::gelu_erf:
      return apply(x, factors, n, [](V v) { return 0.5f * v * (1.0f + error_function(v * 0.70710678f)); });
    case Activation::gelu_tanh:  // 0.5 (1 + tanh(y)) is 1 / (1 + exp(−2y))
      return apply(x, factors, n, [](V v) {
        return v / (1.0f + exponential(-1.5957691216f * (v + 0.044715f * v * v * v)));
      });
    case Activation::quick_gelu:
      return apply(x, factors, n, [](V v) { return v / (1.0f + exponential(-1.702f * v)); });
    case Activation::relu:
      return apply(x, factors, n, [](V v) { return v > 0.0f ? v : V{}; });
    case Activation::relu_squared:
      return apply(x, factors, n, [](V v) { return v > 0.0f ? v * v : V{}; });
    case Activation::silu:
      return apply(x, factors, n, [](V v) { return v / (1.0f + exponential(-v)); });
    case Activation::xielu:  // computed by mlp(), which has its parameters
      return;
  }
}

}  // namespace

extern const ModelKernels ATTNSCOPE_KERNELS;
const ModelKernels ATTNSCOPE_KERNELS{name, product, float_panel, pack_panel, widen, softmax, norm, activate};

}  // namespace core::transformer
