#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace core::tokenizers {

/// The character that stands for each byte in vocabularies of bytes, in UTF-8: itself where it can be seen.
///
/// Source: Radford et al. 2019, bytes_to_unicode().
const std::array<std::string, 256>& characters_of_bytes();

/// The byte that a character stands for, or nothing.
std::optional<std::uint8_t> byte_of_character(char32_t c);

/// The bytes that the characters of a piece stand for; what stands for none is left as it is.
std::string bytes_of_piece(std::string_view piece);

/// The byte that "<0x0A>" stands for, or nothing.
std::optional<std::uint8_t> byte_of_fallback(std::string_view piece);
/// "<0x0A>"
std::string fallback_piece(std::uint8_t byte);

}  // namespace core::tokenizers
