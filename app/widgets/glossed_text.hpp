#pragma once

#include <initializer_list>
#include <string>

#include "app/frame.hpp"

namespace app::widgets {

/// Prose broken at the width, in which terms of the glossary are underlined and explained on hover; an item
/// as high as it needs. Each term is underlined where it first stands.
void glossed_text(const Frame& frame, ImFont* font, Rgb colour, float width, const std::string& text);

/// How high it will be.
float glossed_height(const Frame& frame, ImFont* font, float width, const std::string& text);

}  // namespace app::widgets
