#include "app/ui/panels/bars/side_tabs.hpp"

#include <array>

#include "app/ui/widgets/buttons.hpp"

namespace app::panels {

bool inspects_in_place(const Frame& frame) {
  return frame.metrics.narrow &&
         frame.shown.selection.inspects.value_or(frame.shown.selection.pinned.has_value());
}

float side_tabs_height(const Frame& frame) {
  return frame.metrics.narrow ? frame.metrics.px(31) : 0;
}

void draw_side_tabs(const Frame& frame) {
  const std::array all{widgets::TabWords{"side/edit", "Edit"},
                       widgets::TabWords{"side/inspector", "Inspector"}};
  const auto chosen =
      widgets::tabs(frame, ImGui::GetContentRegionAvail().x, all, inspects_in_place(frame) ? 1 : 0);
  if (chosen) frame.commands.look([inspects = *chosen == 1](View& v) { v.selection.inspects = inspects; });
}

}  // namespace app::panels
