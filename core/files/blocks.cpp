#include "core/files/blocks.hpp"

#include <array>

#include "core/base/find.hpp"
#include "core/files/numbers.hpp"

namespace core::formats {
namespace {

using Byte = unsigned char;

/// The bytes of a block, from one of them on.
const Byte* bytes_at(const char* block, std::size_t offset) {
  return reinterpret_cast<const Byte*>(block) + offset;
}

float half_at(const char* block, std::size_t offset) {
  double number = 0;
  decode_numbers(block + offset, Dtype::f16, false, 1, &number);
  return static_cast<float>(number);
}

int signed_byte(Byte byte) {
  return byte < 128 ? byte : byte - 256;
}

/// 32 numbers of four bits, the lower halves of the bytes first; add(whole number) is what one stands for.
template <class Value>
void decode_nibbles(const Byte* bytes, float* numbers, Value value) {
  for (std::size_t j = 0; j < 16; ++j) {
    numbers[j] = value(j, bytes[j] & 15);
    numbers[j + 16] = value(j + 16, bytes[j] >> 4);
  }
}

void q4_0(const char* block, float* numbers) {
  const float d = half_at(block, 0);
  decode_nibbles(bytes_at(block, 2), numbers,
                 [&](std::size_t, int q) { return d * static_cast<float>(q - 8); });
}

void q4_1(const char* block, float* numbers) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  decode_nibbles(bytes_at(block, 4), numbers,
                 [&](std::size_t, int q) { return d * static_cast<float>(q) + m; });
}

/// The fifth bit of each of 32 numbers.
int fifth_bit(const Byte* bits, std::size_t j) {
  return (bits[j / 8] >> j % 8 & 1) << 4;
}

void q5_0(const char* block, float* numbers) {
  const float d = half_at(block, 0);
  const Byte* high = bytes_at(block, 2);
  decode_nibbles(bytes_at(block, 6), numbers,
                 [&](std::size_t j, int q) { return d * static_cast<float>((q | fifth_bit(high, j)) - 16); });
}

void q5_1(const char* block, float* numbers) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  const Byte* high = bytes_at(block, 4);
  decode_nibbles(bytes_at(block, 8), numbers,
                 [&](std::size_t j, int q) { return d * static_cast<float>(q | fifth_bit(high, j)) + m; });
}

void q8_0(const char* block, float* numbers) {
  const float d = half_at(block, 0);
  const Byte* q = bytes_at(block, 2);
  for (std::size_t j = 0; j < 32; ++j) numbers[j] = d * static_cast<float>(signed_byte(q[j]));
}

/// Factor and offset of one of eight parts of a block, six bits each, packed into twelve bytes.
struct PartScale {
  float d, m;
};
PartScale scale_of_part(const char* block, std::size_t part) {
  const Byte* packed = bytes_at(block, 4);
  int scale, least;
  if (part < 4) {
    scale = packed[part] & 63;
    least = packed[part + 4] & 63;
  } else {
    scale = (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4;
    least = packed[part + 4] >> 4 | (packed[part] >> 6) << 4;
  }
  return {half_at(block, 0) * static_cast<float>(scale), half_at(block, 2) * static_cast<float>(least)};
}

/// Eight parts of 32 numbers; two parts share their bytes. high, when there is some, holds a fifth bit for
/// each.
void decode_parts(const char* block, const Byte* low, const Byte* high, float* numbers) {
  for (std::size_t part = 0; part < 8; ++part) {
    const auto [d, m] = scale_of_part(block, part);
    for (std::size_t l = 0; l < 32; ++l) {
      const Byte byte = low[part / 2 * 32 + l];
      const int four = part % 2 == 0 ? byte & 15 : byte >> 4;
      const int fifth = high ? (high[l] >> part & 1) << 4 : 0;
      numbers[part * 32 + l] = d * static_cast<float>(four | fifth) - m;
    }
  }
}

void q4_k(const char* block, float* numbers) {
  decode_parts(block, bytes_at(block, 16), nullptr, numbers);
}

void q5_k(const char* block, float* numbers) {
  decode_parts(block, bytes_at(block, 48), bytes_at(block, 16), numbers);
}

void q6_k(const char* block, float* numbers) {
  const float d = half_at(block, 208);
  const Byte* scales = bytes_at(block, 192);
  for (std::size_t k = 0; k < 256; ++k) {
    const std::size_t half = k / 128, quarter = k % 128 / 32, l = k % 32;
    const Byte byte = bytes_at(block, half * 64)[l + (quarter % 2) * 32];
    const int four = quarter < 2 ? byte & 15 : byte >> 4;
    const int two = bytes_at(block, 128 + half * 32)[l] >> 2 * quarter & 3;
    const float scale = d * static_cast<float>(signed_byte(scales[half * 8 + quarter * 2 + l / 16]));
    numbers[k] = scale * static_cast<float>((four | two << 4) - 32);
  }
}

constexpr std::array gguf_types{
    GgufType{0, "F32", 1, 4, Dtype::f32, nullptr},    GgufType{1, "F16", 1, 2, Dtype::f16, nullptr},
    GgufType{30, "BF16", 1, 2, Dtype::bf16, nullptr}, GgufType{28, "F64", 1, 8, Dtype::f64, nullptr},
    GgufType{2, "Q4_0", 32, 18, Dtype::f32, q4_0},    GgufType{3, "Q4_1", 32, 20, Dtype::f32, q4_1},
    GgufType{6, "Q5_0", 32, 22, Dtype::f32, q5_0},    GgufType{7, "Q5_1", 32, 24, Dtype::f32, q5_1},
    GgufType{8, "Q8_0", 32, 34, Dtype::f32, q8_0},    GgufType{12, "Q4_K", 256, 144, Dtype::f32, q4_k},
    GgufType{13, "Q5_K", 256, 176, Dtype::f32, q5_k}, GgufType{14, "Q6_K", 256, 210, Dtype::f32, q6_k}};

}  // namespace

Dtype dtype_read(const GgufType& type) {
  return type.dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
}

const GgufType* gguf_type(std::uint32_t number) {
  return find_by(gguf_types, number, &GgufType::number);
}

}  // namespace core::formats
