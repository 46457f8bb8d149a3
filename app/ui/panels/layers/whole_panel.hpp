#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// A token in quotation marks, its blanks as "·".
std::string quoted_token(const std::string& token);
/// A token with its blanks as "·".
std::string visible_token(std::string token);

/// "+5.67", "−4.89".
std::string signed_text(double value, int decimals);

/// Which head is looked at, where it looks, and what it does to the chosen token.
void draw_selected_head(const Frame& frame, float width);

/// Left of the layers: the model's sizes, the text that it reads, the layer that is looked at, what was
/// edited.
void draw_whole(const Frame& frame);

}  // namespace app::panels
