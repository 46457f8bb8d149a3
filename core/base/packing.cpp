#include "core/base/packing.hpp"

#include <fmt/core.h>
#include <zlib.h>
#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/error.hpp"

namespace core::packing {

namespace {

constexpr std::string_view usual_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view url_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr int raw = -15;  // bits of the window; negative: without header and checksum

/// Returns groups of four digits, the last one without those that carry nothing.
std::string digits_of(std::string_view bytes, std::string_view digits) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4 && i + k <= bytes.size(); ++k) text += digits[group >> (18 - 6 * k) & 63];
  }
  return text;
}

// zlib does not write to its input, and takes at most so many bytes.
z_stream reading(std::string_view bytes) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) throw Error("expected at most 4 GB to compress");
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  return stream;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text = digits_of(bytes, usual_digits);
  text.resize((bytes.size() + 2) / 3 * 4, '=');
  return text;
}

std::string base64url(std::string_view bytes) {
  return digits_of(bytes, url_digits);
}

std::optional<std::string> parse_base64url(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (const char digit : text) {
    const std::size_t value = url_digits.find(digit);
    if (value == url_digits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value), n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>(bits >> n_bits & 255);
  }
  // A single digit more is no byte, and what a last byte leaves is zero.
  const bool is_whole = n_bits < 6 && (bits & ((1u << n_bits) - 1)) == 0;
  return is_whole ? std::optional(std::move(bytes)) : std::nullopt;
}

std::string deflated(std::string_view bytes) {
  z_stream stream = reading(bytes);
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, raw, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("there is not enough memory to compress");
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int ended = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (ended != Z_STREAM_END) throw Error("zlib could not compress");
  return result;
}

std::string inflated(std::string_view bytes, std::size_t max_bytes) {
  z_stream stream = reading(bytes);
  if (inflateInit2(&stream, raw) != Z_OK) throw Error("there is not enough memory to decompress");
  std::string result;
  int state = Z_OK;
  while (state == Z_OK && result.size() <= max_bytes) {
    constexpr std::size_t step = std::size_t{1} << 16;
    const std::size_t before = result.size();
    result.resize(before + step);
    stream.next_out = reinterpret_cast<Bytef*>(result.data() + before);
    stream.avail_out = static_cast<uInt>(step);
    state = inflate(&stream, Z_NO_FLUSH);
    result.resize(before + step - stream.avail_out);
  }
  const bool is_used_up = stream.avail_in == 0;
  inflateEnd(&stream);
  if (result.size() > max_bytes) throw Error(fmt::format("expected at most {} MB", max_bytes >> 20));
  if (state != Z_STREAM_END || !is_used_up) throw Error("expected compressed text, whole and undamaged");
  return result;
}

}  // namespace core::packing
