#include "tests/app/ui/panels/side_panels.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/bars/bars.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "app/ui/panels/edit/edit_panel.hpp"
#include "app/ui/panels/model/model_panel.hpp"
#include "app/ui/panels/stages/stages_panel.hpp"
#include "tests/support/panels.hpp"

namespace gui {

void draw_side_panels(const app::Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float top = frame.metrics.menu, bottom = size.y - frame.metrics.status;
  const float middle = top + std::min(app::panels::model_panel_height(frame), (bottom - top) * 0.55f);
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::Begin("window", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_MenuBar |
                   ImGuiWindowFlags_NoBringToFrontOnFocus);
  app::panels::draw_menu_bar(frame);
  app::platform::move_to({0, top});
  ImGui::BeginChild("model", {frame.metrics.left, middle - top}, false,
                    ImGuiWindowFlags_AlwaysUseWindowPadding);
  app::panels::draw_model(frame);
  ImGui::EndChild();
  app::platform::move_to({0, middle});
  ImGui::BeginChild("edit", {frame.metrics.left, bottom - middle}, false,
                    ImGuiWindowFlags_AlwaysUseWindowPadding);
  app::panels::draw_edit(frame);
  ImGui::EndChild();
  ImGui::End();
  app::panels::draw_dialogs(frame);
}

void draw_strip(const app::Frame& frame) {
  support::in_window("strip", {0, 0}, ImGui::GetIO().DisplaySize, [&] { app::panels::draw_stages(frame); });
}

}  // namespace gui
