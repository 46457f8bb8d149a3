#pragma once

#include <cstddef>
#include <cstdint>

/// Vectors of N doubles in the compiler's own notation, and the exponential function on them.
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

}  // namespace core::attention::fast
