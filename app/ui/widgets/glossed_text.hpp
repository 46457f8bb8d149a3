#pragma once

#include <initializer_list>
#include <string>

#include "app/ui/frame.hpp"
#include "core/lessons/lessons.hpp"

namespace app::widgets {

/// Prose broken at the width, in which terms of the glossary are underlined and explained on hover; an item
/// as high as it needs. Each term is underlined where it first stands.
void glossed_text(const Frame& frame, ImFont* font, Rgb color, float width, const std::string& text);

/// One line that begins there, drawn as it is with its terms underlined and explained on hover.
void glossed_line(const Frame& frame, ImFont* font, Rgb color, ImVec2 left_middle, const std::string& text);

/// The term that explains a stage.
const core::lessons::Term* term_of(Stage stage);
/// A term and its meaning, with what can be done there as the last line, as a tooltip.
void explain_term(const Frame& frame, const core::lessons::Term& term, const std::string& remark = "");

/// How high it will be.
float glossed_height(const Frame& frame, ImFont* font, float width, const std::string& text);

}  // namespace app::widgets
