#include "tests/rules/includes_rule.hpp"

#include <algorithm>
#include <string_view>

namespace tests::rules {
namespace {

// What differs between ImGui's releases: it calls ImGui alone and may be included wherever ImGui may.
constexpr std::string_view imgui_versions = "app/platform/imgui_compat.hpp";

using Paths = std::vector<std::string_view>;

/// Files below `in`, but not those below `except`, include nothing below `never`.
struct Rule {
  Paths in, except, never;
  const char* why;
};

const std::vector<Rule>& table() {
  static const std::vector<Rule> rules{
      {{"core/"}, {}, {"app/", "tests/"}, "arrows point down: core stands below app and tests"},
      {{"core/"}, {}, {"imgui", "epoxy/", "GL/", "GLES", "GLFW/", "X11/"}, "core knows no GUI"},
      {{"app/"}, {}, {"tests/", "gtest/", "gmock/"}, "arrows point down: the program stands below its tests"},
      {{"core/attention/"},
       {},
       {"core/editing/", "core/formats/", "core/compare/"},
       "attention knows nothing of editing, formats and comparison"},
      {{"app/panels/", "app/widgets/"},
       {},
       {"app/store", "core/attention/attend", "core/attention/update"},
       "panels and widgets read and ask; they neither write nor compute"},
      {{"app/panels/", "app/widgets/"}, {}, {"app/platform/"}, "panels and widgets do not know the platform"},
      {{"app/widgets/"}, {}, {"app/panels/"}, "widgets stand below panels"},
      {{"app/"}, {"app/render/"}, {"epoxy/", "GL/", "GLES"}, "only app/render calls OpenGL"},
      {{"app/"},
       {"app/platform/"},
       {"GLFW/", "imgui_impl_", "backends/imgui_impl_"},
       "only app/platform calls GLFW and ImGui's backends"},
      {{"app/"},
       {"app/render/"},
       {"shaders", "app/render/shader"},
       "shaders are reached through the renderer alone"},
      {{"core/", "app/"}, {}, {"imgui_internal.h"}, "ImGui's inner parts change with every release"},
  };
  return rules;
}

bool is_below_any(std::string_view path, const Paths& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](std::string_view f) { return is_below(path, f); });
}

bool is_standard(const Include& include) {
  return !include.quoted && include.path != "armadillo" &&
         include.path.find_first_of("./") == std::string::npos;
}

bool is_from_project_root(const Include& include) {
  return is_below_any(include.path, {"core/", "app/", "tests/", "shaders"});
}

}  // namespace

std::optional<std::string> why_forbidden(const std::string& file, const Include& include) {
  if (include.path == imgui_versions && is_below(file, "app/")) return std::nullopt;
  for (const Rule& rule : table()) {
    if (is_below_any(file, rule.in) && !is_below_any(file, rule.except) &&
        is_below_any(include.path, rule.never))
      return rule.why;
  }
  if (is_below(file, "core/random/") && !is_standard(include) &&
      !is_below_any(include.path, {"core/random/", "core/error.hpp"}))
    return "core/random needs nothing but core/error.hpp and the standard library";
  if (include.quoted && !is_from_project_root(include))
    return "own files are included from the project root, others in <>";
  return std::nullopt;
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
