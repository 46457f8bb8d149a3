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

/// What was looked at, as the JSON object that a session keeps: tab, sequence, head, stage and order of the
/// heads, range of the colors, pinned cell, and of the token view its silent heads, threshold and pinned
/// query.
std::string view_text(const View& view);

/// Takes over what such an object says; what it does not say, or says of something unknown, stays as it is.
void recall_view(const std::string& text, View& view);

/// The name of a tab in sessions and settings; the laboratory is a place to try, not to come back to, and
/// goes by the name of the first.
const char* tab_name(Tab tab);
std::optional<Tab> tab_of(std::string_view name);

/// How the window is looked at, as it is kept from one run of the program to the next: theme, sizes, the view
/// that was open, widths of the regions, folded stages, colors.
std::map<std::string, std::string> remembered(const View& view);

/// Takes over what such settings say; what they do not say, or say wrongly, stays as it is.
void recall(const std::map<std::string, std::string>& settings, View& view);

/// A whole number of the settings, when it lies within bounds.
std::optional<int> remembered_number(const std::map<std::string, std::string>& settings, const char* key,
                                     int least, int most);

/// So many files are remembered, in memory and from one run to the next.
constexpr std::size_t max_recent = 10;

/// A list of recent files, newest first, with one more; each stands in it once.
std::vector<std::filesystem::path> with_recent(std::vector<std::filesystem::path> recent,
                                               const std::filesystem::path& file);

}  // namespace app
