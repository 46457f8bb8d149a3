#include "tests/rules/includes_rule.hpp"

#include <algorithm>
#include <string_view>

#include "tests/rules/rooms.hpp"

namespace tests::rules {
namespace {

bool contains(const std::vector<std::string_view>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool is_own(std::string_view path) {
  return is_below(path, "core/") || is_below(path, "app/");
}

/// One takes them from one old release, whose mistake they are needed for, the other evens releases out.
bool may_see_inner_parts(std::string_view file) {
  return file == "app/platform/undrawn_popups.cpp" || file == "app/theme/imgui_compat.cpp";
}

std::optional<std::string> why_not_library(const std::string& file, const Room& room, std::string_view path) {
  if (path.find("imgui_internal.h") != path.npos && !may_see_inner_parts(file))
    return "ImGui's inner parts change with every release";
  for (const std::string_view library : guarded_libraries())
    if (is_below(path, library) && !contains(room.libraries, library))
      return std::string(room.folder) + " does not know " + std::string(library);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_forbidden(const std::string& file, const Include& include) {
  if (!is_own(file)) return std::nullopt;
  const Room* room = room_of(file);
  if (!room) return "its folder is no room of the table";
  if (const auto why = why_not_library(file, *room, include.path)) return why;
  if (!include.quoted) return std::nullopt;
  if (is_below(include.path, "tests/")) return "the program stands below its tests";
  if (include.path == "shaders.hpp") return std::nullopt;  // generated beside those who may use it
  if (!is_own(include.path)) return "own files are included from the project root, others in <>";
  if (is_below(file, "app/ui/") && is_below(include.path, "core/attention/attend"))
    return "panels and widgets read and ask; they do not compute";
  const Room* used = room_of(include.path);
  if (!used) return "that folder is no room of the table";
  if (used == room || contains(room->uses, used->folder)) return std::nullopt;
  return std::string(room->folder) + " does not use " + std::string(used->folder);
}

std::vector<std::string> forbidden_includes(const std::vector<File>& files) {
  std::vector<std::string> found;
  for (const File& file : files) {
    for (const Include& include : includes(file.text)) {
      if (const auto why = why_forbidden(file.path, include))
        found.push_back(file.path + ":" + std::to_string(include.line) + ": includes " + include.path + ": " +
                        *why);
    }
  }
  return found;
}

std::vector<std::string> misplaced_library(const std::vector<File>& files, const std::string& library) {
  std::vector<std::string> mistakes, users;
  for (const File& file : files) {
    const auto all = includes(file.text);
    const bool uses =
        std::any_of(all.begin(), all.end(), [&](const Include& i) { return is_below(i.path, library); });
    if (!uses || is_below(file.path, "tests/support/")) continue;
    if (is_below(file.path, "tests/")) {
      mistakes.push_back(file.path + ": includes " + library + ": tests reach it through tests/support");
    } else if (!file.path.ends_with(".cpp")) {
      mistakes.push_back(file.path + ": includes " + library +
                         ": a header spreads it over many translation units");
    } else {
      users.push_back(file.path);
    }
  }
  for (std::size_t k = 1; k < users.size(); ++k)
    mistakes.push_back(users[k] + ": includes " + library + ": so does " + users[0] + ", and one is enough");
  return mistakes;
}

}  // namespace tests::rules
