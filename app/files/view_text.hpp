#pragma once

#include <string>

#include "app/state/view.hpp"

namespace app {

/// What was looked at, as the JSON object that a session keeps: tab, sequence, head, stage and order of the
/// heads, range of the colours, pinned cell, and of the token view its silent heads, threshold and pinned
/// query.
std::string view_text(const View& view);

/// Takes over what such an object says; what it does not say, or says of something unknown, stays as it is.
void recall_view(const std::string& text, View& view);

}  // namespace app
