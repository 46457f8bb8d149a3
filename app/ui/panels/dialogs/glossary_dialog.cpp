#include "app/ui/panels/dialogs/glossary_dialog.hpp"

#include <algorithm>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/close_dialog.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {

void draw_glossary_dialog(const Frame& frame) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float width = std::min(frame.metrics.px(560), window.x - frame.metrics.px(80));
  const float height = std::min(frame.metrics.px(600), window.y - frame.metrics.px(160));
  platform::begin_child("terms", {width, height});
  const float room = width - ImGui::GetStyle().ScrollbarSize - frame.metrics.px(8);
  for (const core::lessons::Term& term : core::lessons::glossary()) {
    widgets::paragraph(frame.fonts.sans15, frame.palette.text, room, term.word);
    frame.landmarks.mark_item(std::string("glossary/") + term.word);
    widgets::paragraph(frame.fonts.sans14, frame.palette.dim, room, term.meaning);
    ImGui::Dummy({room, frame.metrics.px(4)});
  }
  ImGui::EndChild();
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (widgets::button(frame, "dialog/close", "Close")) close_dialog(frame);
}

}  // namespace app::panels
