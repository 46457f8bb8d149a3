#include "core/model/byte_level.hpp"

#include <charconv>

#include "core/base/utf8.hpp"

namespace core::tokenizers {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteTable {
  std::array<std::string, 256> characters;
  std::array<std::int16_t, 512> bytes;  // -1 where a character stands for none

  ByteTable() {
    bytes.fill(-1);
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t c = stands_for_itself(byte) ? byte : next++;
      text::append_character(characters[byte], c);
      bytes[c] = static_cast<std::int16_t>(byte);
    }
  }
};

const ByteTable& byte_table() {
  static const ByteTable table;
  return table;
}

}  // namespace

const std::array<std::string, 256>& characters_of_bytes() {
  return byte_table().characters;
}

std::optional<std::uint8_t> byte_of_character(char32_t c) {
  if (c >= 512 || byte_table().bytes[c] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(byte_table().bytes[c]);
}

std::string bytes_of_piece(std::string_view piece) {
  std::string bytes;
  while (const auto c = text::first_character(piece)) {
    if (const auto byte = byte_of_character(c->value))
      bytes += static_cast<char>(*byte);
    else
      bytes += piece.substr(0, c->size);
    piece.remove_prefix(c->size);
  }
  return bytes;
}

std::optional<std::uint8_t> byte_of_fallback(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const auto end = piece.data() + 5;
  if (std::from_chars(piece.data() + 3, end, byte, 16).ptr != end) return std::nullopt;
  return static_cast<std::uint8_t>(byte);
}

std::string fallback_piece(std::uint8_t byte) {
  constexpr const char* digits = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

}  // namespace core::tokenizers
