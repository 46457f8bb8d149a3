#include "core/files/numbers.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/utf8.hpp"

namespace core::formats {
namespace {

template <class Unsigned>
Unsigned load(const char* bytes, bool big_endian) {
  Unsigned bits;
  std::memcpy(&bits, bytes, sizeof bits);
  if ((std::endian::native == std::endian::big) == big_endian) return bits;
  Unsigned swapped = 0;
  for (std::size_t k = 0; k < sizeof bits; ++k)
    swapped = static_cast<Unsigned>(swapped | static_cast<Unsigned>(bits >> (8 * k) & 0xff)
                                                  << (8 * (sizeof bits - 1 - k)));
  return swapped;
}

/// Decodes all with one function for one number: from its bits to its value.
template <class Unsigned, class Value>
std::size_t decode_all(const char* bytes, bool big_endian, std::size_t count, double* numbers, Value value) {
  for (std::size_t k = 0; k < count; ++k)
    numbers[k] = value(load<Unsigned>(bytes + k * sizeof(Unsigned), big_endian));
  return count;
}

template <class Integer>
std::size_t decode_integers(const char* bytes, bool big_endian, std::size_t count, double* numbers) {
  using Unsigned = std::make_unsigned_t<Integer>;
  for (std::size_t k = 0; k < count; ++k) {
    const auto whole = static_cast<Integer>(load<Unsigned>(bytes + k * sizeof(Unsigned), big_endian));
    numbers[k] = static_cast<double>(whole);
    if constexpr (sizeof(Integer) == 8) {
      // 2^64 and 2^63 themselves cannot be cast back; no 64-bit integer is equal to them.
      const bool beyond = std::abs(numbers[k]) >= (std::is_signed_v<Integer> ? 0x1p63 : 0x1p64);
      if (beyond ? whole != std::numeric_limits<Integer>::min() : static_cast<Integer>(numbers[k]) != whole)
        return k;
    }
  }
  return count;
}

/// The value of a float16 (IEEE 754 binary16).
double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const double fraction = bits & 0x3ff, sign = bits >> 15 ? -1 : 1;
  if (exponent == 0x1f)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

/// The value of a float8_e4m3fn: no infinities, NaN where all bits of exponent and fraction are set.
double e4m3_value(std::uint8_t bits) {
  const int exponent = bits >> 3 & 0xf;
  const double fraction = bits & 0x7, sign = bits >> 7 ? -1 : 1;
  if (exponent == 0xf && fraction == 7) return std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(fraction + 8, exponent - 10));
}

/// The value of a float8_e5m2, which is the upper half of a float16.
double e5m2_value(std::uint8_t bits) {
  return half_value(static_cast<std::uint16_t>(bits << 8));
}

}  // namespace

std::size_t decode_numbers(const char* bytes, Dtype dtype, bool big_endian, std::size_t count,
                           double* numbers) {
  using std::uint16_t, std::uint32_t, std::uint64_t;
  switch (dtype) {
    case Dtype::f64:
      return decode_all<uint64_t>(bytes, big_endian, count, numbers,
                                  [](uint64_t b) { return std::bit_cast<double>(b); });
    case Dtype::f32:
      return decode_all<uint32_t>(bytes, big_endian, count, numbers,
                                  [](uint32_t b) { return std::bit_cast<float>(b); });
    case Dtype::f16:
      return decode_all<uint16_t>(bytes, big_endian, count, numbers, half_value);
    case Dtype::bf16:
      return decode_all<uint16_t>(bytes, big_endian, count, numbers,
                                  [](uint16_t b) { return std::bit_cast<float>(uint32_t{b} << 16); });
    case Dtype::f8_e4m3:
      return decode_all<std::uint8_t>(bytes, big_endian, count, numbers, e4m3_value);
    case Dtype::f8_e5m2:
      return decode_all<std::uint8_t>(bytes, big_endian, count, numbers, e5m2_value);
    case Dtype::i64:
      return decode_integers<std::int64_t>(bytes, big_endian, count, numbers);
    case Dtype::i32:
      return decode_integers<std::int32_t>(bytes, big_endian, count, numbers);
    case Dtype::i16:
      return decode_integers<std::int16_t>(bytes, big_endian, count, numbers);
    case Dtype::i8:
      return decode_integers<std::int8_t>(bytes, big_endian, count, numbers);
    case Dtype::u64:
      return decode_integers<uint64_t>(bytes, big_endian, count, numbers);
    case Dtype::u32:
      return decode_integers<uint32_t>(bytes, big_endian, count, numbers);
    case Dtype::u16:
      return decode_integers<uint16_t>(bytes, big_endian, count, numbers);
    case Dtype::u8:
      return decode_integers<std::uint8_t>(bytes, big_endian, count, numbers);
    case Dtype::boolean:
      return decode_all<std::uint8_t>(bytes, big_endian, count, numbers,
                                      [](std::uint8_t b) { return b ? 1.0 : 0.0; });
    case Dtype::text:
      break;
  }
  return 0;
}

std::string decode_utf32(const char* bytes, std::size_t n_bytes, bool big_endian) {
  const auto character = [&](std::size_t k) { return load<std::uint32_t>(bytes + 4 * k, big_endian); };
  std::size_t count = n_bytes / 4;
  while (count > 0 && character(count - 1) == 0) --count;  // first, as a text keeps room that it once had
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text::append_character(text, character(k));
  return text;
}

}  // namespace core::formats
