#include "app/ui/panels/dialogs/drawn_before.hpp"

#include <algorithm>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/close_dialog.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/error.hpp"
#include "core/editing/draw.hpp"

namespace app::panels {
namespace {

constexpr const char* hint =
    "What the same seed gave first, as for attnscope draw: rand(6,3) Linear(3,2) randint(0,10,6) …";

TypedBefore read(const std::string& text) {
  try {
    return {{text, ""}, core::random::parse_draw_ops(text, core::editing::most_numbers_before)};
  } catch (const core::Error& error) {
    return {{text, error.what()}, {}};
  }
}

}  // namespace

float draw_dialog_width(const Frame& frame) {
  return std::min(frame.metrics.px(580), ImGui::GetIO().DisplaySize.x - frame.metrics.px(80));
}

float draw_dialog_labels(const Frame& frame) {
  return frame.metrics.px(104);
}

void dialog_label(const Frame& frame, const char* words) {
  ImFont* font = frame.fonts.sans15;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text(font, {at.x, widgets::centred_y(font, at.y, frame.metrics.frame)}, frame.palette.dim,
                     words);
  platform::move_to({at.x + draw_dialog_labels(frame), at.y});
}

std::optional<TypedBefore> drawn_before_row(const Frame& frame, const std::string& name,
                                            const DrawnBefore& before) {
  const float left = ImGui::GetCursorScreenPos().x,
              width = draw_dialog_width(frame) - draw_dialog_labels(frame);
  dialog_label(frame, "drawn before");
  widgets::FieldStyle style;
  style.width = width, style.font = frame.fonts.mono14, style.alignment = widgets::Alignment::left;
  const widgets::FieldAnswer answer = widgets::text_field(frame, name, before.text, style);

  const bool bad = !before.error.empty();
  const ImVec2 at(left + draw_dialog_labels(frame), ImGui::GetCursorScreenPos().y);
  platform::move_to(at);
  widgets::paragraph(frame.fonts.sans14, bad ? frame.palette.status.bad : frame.palette.faint, width,
                     bad ? before.error : hint);
  if (bad) frame.landmarks.mark_item(name + "/error");
  const float two_lines = 2 * platform::font_size(frame.fonts.sans14) + frame.metrics.px(8);
  platform::move_to({left, std::max(ImGui::GetCursorScreenPos().y, at.y + two_lines)});

  return answer.text ? std::optional(read(*answer.text)) : std::nullopt;
}

bool dialog_buttons(const Frame& frame, const char* words, bool enabled) {
  ImGui::BeginDisabled(!enabled);
  const bool pressed = widgets::button(frame, "dialog/confirm", words);
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (widgets::button(frame, "dialog/cancel", "Cancel")) close_dialog(frame);
  return enabled && (pressed || widgets::enter_confirms());
}

}  // namespace app::panels
