#pragma once

#include <map>
#include <optional>
#include <string>

#include "app/session/view.hpp"

namespace app {

/// How the window is looked at, as it is kept from one run of the program to the next: theme, sizes, the view
/// that was open, widths of the regions, folded stages, colors.
std::map<std::string, std::string> remembered(const View& view);

/// Takes over what such settings say; what they do not say, or say wrongly, stays as it is.
void recall(const std::map<std::string, std::string>& settings, View& view);

/// A whole number of the settings, when it lies within bounds.
std::optional<int> remembered_number(const std::map<std::string, std::string>& settings, const char* key,
                                     int least, int most);

}  // namespace app
