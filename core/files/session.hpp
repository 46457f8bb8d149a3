#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// Content of a session file.
struct Session {
  attention::Model model;
  std::string view;  ///< state of the view: a JSON object as text, or empty
  /// Features of the original model that this one lacks: "rotary positions".
  std::vector<std::string> left_out = {};
  std::vector<std::string> assumed =
      {};  ///< assumptions made on import: "not causal: every key is attended to"
};

/// Maximum bytes of a session, read or written.
constexpr std::size_t max_session_bytes = std::size_t{512} << 20;

/// Throws core::Error when a text is longer than max_session_bytes.
void check_session_size(std::string_view text);

/// Reads a session; file_name is its name in errors, and files that the session names are relative to its
/// folder.
///
/// A scale's factor is restored only if the scale is a factor: the file does not store an unused one. Throws
/// core::Error, "FILE: PATH: expected …, got …", for anything but a valid session that can be computed.
///
/// Throws UntrustedPath when it names a file outside its folder, unless that is allowed.
Session parse_session(std::string_view text, const std::string& file_name,
                      UntrustedPaths untrusted_paths = UntrustedPaths::refused);

/// Reads a session file of at most max_session_bytes bytes. Throws core::Error as parse_session() and
/// system::read_file() do.
Session load_session(const std::filesystem::path& path,
                     UntrustedPaths untrusted_paths = UntrustedPaths::refused);

/// Returns the session as readable JSON, one row of numbers per line; numbers are restored to the last bit.
///
/// Throws core::Error when the model cannot be computed, view is not a JSON object or the text is longer than
/// max_session_bytes, so that it could not be read again.
std::string session_text(const Session& session);

/// Writes a session file atomically. Throws core::Error, which names the file, as session_text() and
/// system::write_atomically() do.
void save_session(const std::filesystem::path& path, const Session& session);

}  // namespace core::formats
