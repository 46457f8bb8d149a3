#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Bytes as text, and compressed bytes.
namespace core::packing {

/// Returns bytes in base64, padded (RFC 4648, section 4).
std::string base64(std::string_view bytes);
/// Returns bytes in the alphabet for addresses and file names, without padding (RFC 4648, section 5).
std::string base64url(std::string_view bytes);
/// Returns the bytes of such a text; nothing if it is not one.
std::optional<std::string> parse_base64url(std::string_view text);

/// Returns bytes compressed as a raw deflate stream (RFC 1951). Throws core::Error where zlib fails.
std::string deflated(std::string_view bytes);
/// Returns what was compressed so, at most max_bytes. Throws core::Error, "expected …".
std::string inflated(std::string_view bytes, std::size_t max_bytes);

}  // namespace core::packing
