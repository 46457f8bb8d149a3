#include "app/ui/panels/dialogs/key_sheet.hpp"

#include <algorithm>

#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {

void draw_key_sheet(const Frame& frame) {
  const std::vector<KeyLine> all = key_sheet(actions(situation_of(frame)));
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const std::size_t lines = (all.size() + 1) / 2;
  const float room = (window.y - frame.metrics.px(150)) / static_cast<float>(lines);
  const float pitch = std::min(frame.metrics.px(24), std::max(frame.metrics.px(19), std::floor(room)));
  const float column = std::min(frame.metrics.px(560), (window.x - frame.metrics.px(60)) / 2);
  float keys_width = 0;
  for (const KeyLine& line : all)
    keys_width =
        std::max(keys_width, widgets::text_width(frame.fonts.mono13, line.keys) + frame.metrics.px(16));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ImVec2 pos(at.x + column * static_cast<float>(i / lines),
                     at.y + pitch * static_cast<float>(i % lines));
    widgets::draw_text(frame.fonts.mono13, pos, frame.palette.text, all[i].keys);
    widgets::draw_text_within(frame.fonts.sans15, {pos.x + keys_width, pos.y},
                              column - keys_width - frame.metrics.px(16), frame.palette.dim, all[i].words);
    frame.landmarks.mark("dialog/keys/" + std::to_string(i), pos, {pos.x + column, pos.y + pitch});
  }
  ImGui::Dummy({2 * column, pitch * static_cast<float>(lines) + frame.metrics.px(8)});
}

}  // namespace app::panels
