#include "core/files/link.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/packing.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"

namespace core::formats {

namespace {

constexpr std::string_view scheme = "attnscope:", whitespace = " \t\r\n";

[[noreturn]] void fail(const std::string& expected, std::string_view got) {
  throw Error(fmt::format("link: expected {}, got {}", expected, quoted_briefly(got)));
}

/// Returns what follows the first "#", or nothing.
std::optional<std::string_view> fragment_of(std::string_view text) {
  text = text::trimmed(text, whitespace);
  const std::size_t hash = text.find('#');
  return hash == text.npos ? std::nullopt : std::optional(text.substr(hash + 1));
}

std::size_t whole_number(std::string_view key, std::string_view text, std::size_t least) {
  const auto number = text::parse_unsigned(text);
  if (!number || *number < least) fail(fmt::format("{} to be a whole number from {} on", key, least), text);
  return *number;
}

std::string unpacked(std::string_view packed) {
  const auto bytes = packing::parse_base64url(packed);
  if (!bytes) fail("a whole link: letters, digits, - and _ after #s=", packed);
  try {
    return packing::inflated(*bytes, max_linked_bytes);
  } catch (const Error& error) {
    throw Error(fmt::format("link: {}; the link may have been cut", error.what()));
  }
}

void set_lesson(Link& link, std::string_view value) {
  const std::size_t dot = value.rfind('.');
  link.lesson = value.substr(0, dot);
  if (dot != value.npos) link.step = whole_number("the step of a lesson", value.substr(dot + 1), 1) - 1;
}

/// Throws core::Error if a value, or one inside it, is read from a file.
void require_no_files(const Json& json) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.members()) {
      if (key == "file" || key == "whole_model") value.fail("numbers, as a link opens no file");
      require_no_files(value);
    }
  } else if (json.is_list()) {
    for (const Json& item : json.items_or_empty("a list")) require_no_files(item);
  }
}

}  // namespace

bool is_link(std::string_view text) {
  const std::string_view trimmed = text::trimmed(text, whitespace);
  if (trimmed.starts_with(scheme)) return true;
  const auto fragment = trimmed.find("://") == trimmed.npos ? std::nullopt : fragment_of(trimmed);
  return fragment && (fragment->starts_with("s=") || fragment->starts_with("l=") ||
                      fragment->starts_with("preset=") || fragment->starts_with("lesson="));
}

std::string link_text(const Link& link) {
  const std::string_view page = ATTNSCOPE_PAGE;
  std::string text = std::string(page.empty() ? scheme : page) + "#";
  if (!link.lesson.empty()) return text + fmt::format("lesson={}.{}", link.lesson, link.step + 1);
  if (!link.preset.empty()) {
    text += "preset=" + link.preset;
    if (!link.view.empty()) text += "&view=" + link.view;
    return link.head ? text + fmt::format("&head={}", *link.head) : text;
  }
  const bool is_lesson = !link.lesson_text.empty();
  const std::string& content = is_lesson ? link.lesson_text : link.session;
  if (content.size() > max_linked_bytes)
    throw Error(fmt::format("link: a {} of {} MB is too long for one; save it instead",
                            is_lesson ? "lesson" : "session", content.size() >> 20));
  return text + (is_lesson ? "l=" : "s=") + packing::base64url(packing::deflated(content));
}

Link parse_link(std::string_view text) {
  const auto fragment = fragment_of(text);
  if (!fragment) fail("#s=, #preset= or #lesson=", text);
  Link link;
  std::set<std::string_view> keys;
  std::string_view rest = *fragment;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals),
                           value = part.substr(std::min(equals + 1, part.size()));
    if (!keys.insert(key).second) fail(std::string(key) + "= once", *fragment);
    if (value.empty()) fail("a value after " + std::string(key) + "=", part);
    if (key == "s")
      link.session = unpacked(value);
    else if (key == "l")
      link.lesson_text = unpacked(value);
    else if (key == "preset")
      link.preset = value;
    else if (key == "lesson")
      set_lesson(link, value);
    else if (key == "view")
      link.view = value;
    else if (key == "head")
      link.head = whole_number("head", value, 0);
    else
      fail("s, l, preset, lesson, view or head", part);
  }
  if (!link.session.empty() + !link.lesson_text.empty() + !link.preset.empty() + !link.lesson.empty() != 1)
    fail("one of #s=, #l=, #preset= and #lesson=", *fragment);
  if (link.preset.empty() && (!link.view.empty() || link.head))
    fail("view and head with a preset", *fragment);
  return link;
}

void require_no_files(const std::string& linked_text) {
  require_no_files(parse_json(linked_text, "link"));
}

Session parse_linked_session(const std::string& text) {
  require_no_files(text);
  return parse_session(text, "link");
}

}  // namespace core::formats
