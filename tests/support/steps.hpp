#pragma once

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/files/json.hpp"
#include "core/files/session.hpp"
#include "tests/support/program.hpp"

/// Steps at controls as a table: what is done to which control, and what of the session it changes.
namespace support {

/// A control is clicked, one of its lines is chosen, or a text is typed into it.
struct Step {
  std::string control;
  std::variant<std::monostate, std::size_t, std::string> input = {};
  /// "mask.window [2, -1]; −mask.prefix": the members of the session that are other ones, and those that are
  /// gone; "" if nothing changes; "… words" if more changes than these; "! words" if it is refused.
  std::string then = "";
};

using Members = std::map<std::string, std::string>;

/// Adds the members of a session by their paths; matrices by their shape, "4 × 6 × 6".
inline void add_members(Members& all, const core::formats::Json& json, const std::string& path) {
  const auto members = json.is_object() ? json.members() : decltype(json.members()){};
  for (const auto& [key, value] : members) add_members(all, value, path.empty() ? key : path + "." + key);
  if (!members.empty()) return;
  std::string shape;
  std::optional innermost = json;
  for (; innermost && innermost->is_list(); innermost = innermost->first())
    shape += (shape.empty() ? "" : " × ") + std::to_string(innermost->items_or_empty("items").size());
  const bool is_matrix = innermost && innermost->is_number() && shape.find(' ') != shape.npos;
  all[path] = is_matrix ? shape : json_text(json);
}

/// Returns which members of the session of a model another model changes.
inline std::string session_change(const core::attention::Model& before, const core::attention::Model& after) {
  Members was, is;
  add_members(was, core::formats::parse_json(core::formats::session_text({before, "", {}}), "before"), "");
  add_members(is, core::formats::parse_json(core::formats::session_text({after, "", {}}), "after"), "");
  std::string change;
  const auto add = [&](const std::string& words) { change += (change.empty() ? "" : "; ") + words; };
  for (const auto& [path, text] : is)
    if (!was.contains(path) || was[path] != text) add(path + " " + text);
  for (const auto& [path, text] : was)
    if (!is.contains(path)) add("−" + path);
  return change;
}

/// Plays steps at panels; `opener` is clicked whenever a control is not on the screen.
inline void expect_steps(gui::Panels& ui, const std::vector<Step>& steps, const std::string& opener = "") {
  for (const auto& [control, input, then] : steps) {
    SCOPED_TRACE(control + ": " + then);
    if (!opener.empty() && !ui.has(control)) ui.click(opener);
    const core::attention::Model before = ui.model();
    if (const auto* line = std::get_if<std::size_t>(&input))
      ui.choose(control, *line);
    else if (const auto* text = std::get_if<std::string>(&input))
      ui.fill_in(control, *text);
    else
      ui.click(control);
    const std::string change = session_change(before, ui.model());
    const bool is_part = then.starts_with("… "), is_refused = then.starts_with("! ");
    const std::string words = then.substr(is_part ? std::string("… ").size() : is_refused ? 2 : 0);
    if (is_refused) {
      EXPECT_THAT(ui.message().text, testing::HasSubstr(words));
      EXPECT_EQ(change, "");
    } else {
      EXPECT_THAT(change, is_part ? testing::HasSubstr(words) : testing::Matcher<std::string>(words))
          << ui.message().text;
    }
  }
}

}  // namespace support
