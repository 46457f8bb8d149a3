#pragma once

#include <optional>
#include <string>
#include <string_view>

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

}  // namespace app
