#include "app/window/plain_window.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/bars/menu_bar.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "app/ui/widgets/text.hpp"

namespace app {

void draw_plain_window(const Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::Begin("attnscope", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_MenuBar | ImGuiWindowFlags_NoBringToFrontOnFocus);
  panels::draw_menu_bar(frame);
  const Metrics& m = frame.metrics;
  platform::move_to({m.padding, m.menu + m.padding});
  ImGui::BeginGroup();
  const float width = size.x - 2 * m.padding;
  widgets::paragraph(frame.fonts.sans17,
                     frame.message.is_error ? frame.palette.status.bad : frame.palette.text, width,
                     frame.message.text.empty() ? " " : frame.message.text);
  widgets::paragraph(
      frame.fonts.sans15, frame.palette.dim, width,
      "This view cannot be drawn. The model is as it was: it can be saved (Ctrl+S) and the last "
      "step undone (Ctrl+Z). Any key tries to draw again.");
  ImGui::EndGroup();
  frame.landmarks.mark_item("plain window");
  ImGui::End();
  panels::draw_dialogs(frame);
}

}  // namespace app
