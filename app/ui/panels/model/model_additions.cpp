#include <array>
#include <string>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/model/additions_popup.hpp"
#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

constexpr const char* additions_popup = "additions";

void additions_row(const Form& form) {
  const Frame& frame = form.frame;
  ImFont* font = frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, frame.metrics.frame));
  widgets::draw_text_within(font, at, form.width, frame.palette.text,
                            additions_words(frame.newest.model, frame.newest.look.sequence));
  frame.landmarks.mark("model/additions", at, {at.x + form.width, at.y + frame.metrics.frame});
}

constexpr std::array additions_table{ModelRow{has_additions, additions_row, 0}};

}  // namespace

bool has_additions(const Frame& frame) {
  return !additions_words(frame.newest.model, frame.newest.look.sequence).empty();
}

std::span<const ModelRow> addition_rows() {
  return additions_table;
}

void draw_additions_button(const Form& form) {
  const Frame& frame = form.frame;
  const float width = widgets::text_width(frame.fonts.sans14, "more…") + 2 * frame.metrics.px(8);
  platform::move_to({form.at.x + form.width - width, form.at.y - frame.metrics.px(5)});
  if (widgets::button(
          frame, "model/more", "more…",
          "Groups, norms, positions, caps, biases, sinks, keys of others: what models of today add"))
    ImGui::OpenPopup(additions_popup);
  draw_additions_popup(frame, additions_popup, {form.at.x + form.width + frame.metrics.px(20), form.at.y});
}

}  // namespace app::panels
