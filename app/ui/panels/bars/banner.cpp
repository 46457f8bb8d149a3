#include "app/ui/panels/bars/banner.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

/// What the model does and the program does not, or "".
std::string not_supported_line(const Frame& frame) {
  std::string words;
  for (const auto& feature : frame.document.account.not_supported)
    words += (words.empty() ? "Not computed: " : ", ") + feature.words;
  return words.empty() ? words : words + ". Scores and weights differ from the model's own.";
}

std::string reservations_line(const Frame& frame) {
  core::importing::Account rest = frame.document.account;
  rest.not_supported.clear();
  std::string words = core::importing::reservations_text(rest);
  for (const std::string& note : frame.document.notes) words += (words.empty() ? "" : " · ") + note;
  return words;
}

float line_height(const Frame& frame) {
  return frame.metrics.px(20);
}

void draw_line(const Frame& frame, const char* landmark, Rgb color, const std::string& words) {
  if (words.empty()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImFont* font = frame.fonts.sans14;
  widgets::hit_area(landmark, {width, line_height(frame)});
  frame.landmarks.mark_item(landmark);
  const bool fits = widgets::text_width(font, words) <= width;
  widgets::draw_text(font, {at.x, widgets::centred_y(font, at.y, line_height(frame))}, color,
                     fits ? words : widgets::shortened(font, words, width));
  widgets::tooltip(words + "\n" + core::importing::account_text(frame.document.account));
  platform::move_to({at.x, at.y + line_height(frame)});
}

}  // namespace

float banner_height(const Frame& frame) {
  const int n_lines = !not_supported_line(frame).empty() + !reservations_line(frame).empty();
  return n_lines == 0 ? 0 : static_cast<float>(n_lines) * line_height(frame) + frame.metrics.px(8);
}

void draw_banner(const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  platform::move_to({at.x, at.y + frame.metrics.px(4)});
  draw_line(frame, "banner/left_out", frame.palette.status.warning, not_supported_line(frame));
  draw_line(frame, "banner/reservations", frame.palette.dim, reservations_line(frame));
}

}  // namespace app::panels
