#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// What a session file holds.
struct Session {
  attention::Model model;
  std::string view;  ///< what was looked at: a JSON object as text, or empty
  /// What the model that it was made of does and this one does not: "rotary positions".
  std::vector<std::string> left_out = {};
  std::vector<std::string> assumed =
      {};  ///< what nothing told when it was made: "not causal: every key is attended to"
};

/// The bytes of a session that is read, and so of one that is written.
constexpr std::size_t largest_session = std::size_t{512} << 20;

/// Throws core::Error when a text is longer than a session may be.
void require_readable_session(std::string_view text);

/// Reads a session; file_name is its name in errors; the files that it names are relative to the folder of
/// that file.
///
/// The factor of a scale comes back only when the scale is a factor: the file has no place for an unused one.
/// Throws core::Error, "FILE: PATH: expected …, got …", for anything that is not exactly a session that can
/// be computed.
///
/// Throws UntrustedPath when it names a file that does not lie beside it, unless that is allowed.
Session parse_session(std::string_view text, const std::string& file_name,
                      UntrustedPaths elsewhere = UntrustedPaths::refused);

/// Reads a session file of at most largest_session bytes. Throws core::Error as parse_session() and
/// system::read_file() do.
Session load_session(const std::filesystem::path& path, UntrustedPaths elsewhere = UntrustedPaths::refused);

/// The session as readable JSON, one row of numbers a line; every bit of every number reads back.
///
/// Throws core::Error when the model cannot be computed, view is not a JSON object or the text is longer than
/// largest_session: it could not be read again.
std::string session_text(const Session& session);

/// Writes a session file atomically. Throws core::Error, which names the file, as session_text() and
/// system::write_atomically() do.
void save_session(const std::filesystem::path& path, const Session& session);

}  // namespace core::formats
