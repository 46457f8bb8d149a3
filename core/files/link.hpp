#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/files/session.hpp"

/// Links: an address, or "attnscope:", then "#" and what to open.
///
/// "#s=" is a session, "#l=" a lesson of somebody's own, as base64url of raw deflate of their text;
/// "#preset=multi-head&view=heads&head=1" and
/// "#lesson=000.5", its fifth step, are short.
namespace core::formats {

/// What a link opens: a session, a preset or a lesson; the others are empty.
struct Link {
  std::string session = {};      ///< its text
  std::string lesson_text = {};  ///< of a lesson of somebody's own
  std::string preset = {}, lesson = {};
  std::size_t step = 0;                  ///< of the lesson, from 0
  std::string view = {};                 ///< with a preset: name of a tab, or ""
  std::optional<std::size_t> head = {};  ///< with a preset
};

/// Bytes of a session in a link, unpacked.
constexpr std::size_t max_linked_bytes = std::size_t{16} << 20;
/// Characters from which on a link is too long for many chats and mail programs.
constexpr std::size_t long_link = 8000;

/// Returns whether a text is meant as a link: it begins with "attnscope:", or is an address with "#s=",
/// "#l=",
/// "#preset=" or "#lesson=".
bool is_link(std::string_view text);

/// Returns a link to the page that the program was built for, or "attnscope:#…". Throws core::Error, "link:
/// …", for a session of more than max_linked_bytes.
std::string link_text(const Link& link);

/// Reads a link; names of presets, lessons and tabs are not looked up. Throws core::Error, "link: expected
/// …, got …".
Link parse_link(std::string_view text);

/// Reads the session of a link. Throws core::Error, "link: PATH: expected …, got …", as parse_session(), and
/// where the session names a file: a link opens nothing but itself.
Session parse_linked_session(const std::string& text);
/// Throws core::Error where a linked text names a file.
void require_no_files(const std::string& linked_text);

}  // namespace core::formats
