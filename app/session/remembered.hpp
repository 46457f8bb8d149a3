#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/session/view.hpp"

namespace app {

/// Returns the view as the JSON object in a session: tab, sequence, head, stage and order of the heads, color
/// range, pinned cell, the token view's silent heads, threshold and pinned query; with the session's own
/// folder also the folder of a scan.
std::string view_text(const View& view, const std::filesystem::path& folder = {});

/// Applies the object of a session in a folder. Missing and unknown values change nothing, but color locks,
/// the large stage and decoding are reset.
void restore_view(const std::string& text, View& view, const std::filesystem::path& folder = {});

/// Returns the name of a tab in sessions and settings; the laboratory, to which no session returns, has the
/// name of the first.
const char* tab_name(Tab tab);
std::optional<Tab> tab_of(std::string_view name);

/// Returns the view settings that survive from one run to the next: theme, sizes, the open tab, widths of the
/// regions, folded stages, colors, used actions.
std::map<std::string, std::string> saved_settings(const View& view);

/// Applies such settings; missing and invalid ones change nothing, but switches get their defaults.
void apply_settings(const std::map<std::string, std::string>& settings, View& view);

/// Returns a whole number from the settings, if it lies within bounds.
std::optional<int> setting_number(const std::map<std::string, std::string>& settings, const char* key,
                                  int least, int most);

/// Maximum length of the list of recent files, in memory and from one run to the next.
constexpr std::size_t max_recent = 10;

/// Returns the list of recent files, newest first, with one more in front; each is in it once.
std::vector<std::filesystem::path> with_recent(std::vector<std::filesystem::path> recent,
                                               const std::filesystem::path& file);

/// Returns the actions of the palette that were used, the latest first, with one more in front.
std::vector<std::string> with_used_action(std::vector<std::string> used, const std::string& id);

}  // namespace app
