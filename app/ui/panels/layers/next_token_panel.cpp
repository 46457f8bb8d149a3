#include "app/ui/panels/layers/next_token_panel.hpp"

#include <algorithm>
#include <cmath>

#include "app/session/whole_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/selected_head.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

const char* heading(const Frame& frame) {
  return frame.newest.whole->model->description().causal ? "NEXT TOKEN" : "MASKED TOKEN";
}

void draw_heading(const Frame& frame, const Prediction& next, float width) {
  const auto& f = frame;
  const bool chosen = f.newest.layers->token.has_value();
  widgets::section_heading(frame, width, heading(frame), "");
  const ImVec2 end = ImGui::GetItemRectMax();
  widgets::draw_text(f.fonts.sans13, {end.x, end.y - f.metrics.px(12)}, widgets::Align::right_middle,
                     packed(f.palette.faint), chosen ? "chosen · Esc releases" : "the most probable one");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string number = widgets::fixed(next.chosen.now, 4);
  const float number_width = widgets::text_width(f.fonts.mono32, number);
  widgets::draw_text(f.fonts.sans19, {at.x, at.y + f.metrics.px(18)}, widgets::Align::left_middle,
                     packed(f.palette.text),
                     widgets::shortened(f.fonts.sans19, quoted_token(next.chosen.text),
                                        width - number_width - f.metrics.px(12)));
  widgets::draw_text(f.fonts.mono32, {at.x + width, at.y + f.metrics.px(18)}, widgets::Align::right_middle,
                     packed(f.palette.text), number);
  f.landmarks.mark("next/probability", {at.x + width - number_width, at.y},
                   {at.x + width, at.y + f.metrics.px(36)});
  ImGui::Dummy({width, f.metrics.px(38)});
  const ImVec2 below = ImGui::GetCursorScreenPos();
  const std::string logit = "logit " + widgets::fixed(next.logit, 2);
  const float field = f.metrics.px(52), apart = f.metrics.px(8);
  const auto label_width = [&](const char* words) { return widgets::text_width(f.fonts.sans14, words); };
  const bool fits =
      label_width("at temperature") + field + widgets::text_width(f.fonts.mono13, logit) + 3 * apart <= width;
  const char* words = fits ? "at temperature" : "at temp.";
  widgets::draw_text(f.fonts.sans14, below, f.palette.dim, words);
  platform::move_to({below.x + label_width(words) + apart, below.y - f.metrics.px(3)});
  if (const auto t = widgets::real_field(frame, "next/temperature", "temperature",
                                         f.newest.layers->temperature, field)) {
    if (*t > 0)
      f.commands.look([t = *t](View& v) { v.layers.temperature = t; });
    else
      f.commands.add(
          ShowMessage{"temperature: expected a number above 0, as logits are divided by it", true});
  }
  widgets::draw_text_right(f.fonts.mono13, below.x + width, below.y, f.palette.dim, logit);
  platform::move_to({below.x, below.y + f.metrics.px(24)});
  if (f.newest.whole->experiment.is_edited()) {
    const ImVec2 line = ImGui::GetCursorScreenPos();
    widgets::draw_text_right(f.fonts.mono13, line.x + width, line.y, f.palette.dim,
                             widgets::fixed(next.chosen.before, 4));
    widgets::draw_text(f.fonts.sans14, line, f.palette.dim, "before the edits");
    ImGui::Dummy({width, f.metrics.px(20)});
  }
}

void draw_row(const Frame& frame, const NextToken& token, bool is_chosen, bool is_edited, float width) {
  const auto& f = frame;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = f.metrics.px(22), middle = at.y + height / 2;
  const bool pressed = widgets::hit_area(("token " + std::to_string(token.id)).c_str(), {width, height});
  f.landmarks.mark_item("next/" + std::to_string(token.id));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float pad = f.metrics.px(6);
  if (is_chosen || ImGui::IsItemHovered())
    list->AddRectFilled({at.x - pad, at.y}, {at.x + width + pad, at.y + height},
                        packed(is_chosen ? f.palette.control.active : f.palette.control.hovered));
  if (pressed)
    f.commands.look([id = token.id, is_chosen](View& v) {
      v.layers.token = is_chosen && v.layers.token ? std::nullopt : std::optional(id);
    });
  const float change = widgets::text_width(f.fonts.mono13, "−0.000"),
              now = widgets::text_width(f.fonts.mono13, "0.0000");
  float right = at.x + width;
  if (is_edited) {
    const double by = token.now - token.before;
    widgets::draw_text(f.fonts.mono13, {right, middle}, widgets::Align::right_middle, packed(f.palette.dim),
                       signed_text(by, 3));
    right -= change + f.metrics.px(12);
  }
  widgets::draw_text(f.fonts.mono13, {right, middle}, widgets::Align::right_middle, packed(f.palette.text),
                     widgets::fixed(token.now, 4));
  right -= now + f.metrics.px(10);
  const float left = at.x + width * 0.26f, bar = std::max(right - left, 1.0f);
  const float top = middle - f.metrics.px(5), bottom = middle + f.metrics.px(5);
  list->AddRectFilled({left, top}, {right, bottom}, packed(f.palette.control.rest));
  const auto at_share = [&](double share) {
    return left + bar * static_cast<float>(std::clamp(share, 0.0, 1.0));
  };
  list->AddRectFilled(
      {left, top}, {std::max(left + 1, at_share(token.now)), bottom},
      packed(render::color_at(f.shown.look.colors.sequential, f.palette.dark, 0.3 + 0.5 * token.now)));
  if (is_edited && std::abs(token.now - token.before) > 0.005)
    widgets::outline(list, {left, top - 1}, {std::max(left + 3, at_share(token.before)), bottom + 1},
                     packed(f.palette.text), 1);
  widgets::draw_text(
      f.fonts.sans14, {at.x, middle}, widgets::Align::left_middle, packed(f.palette.text),
      widgets::shortened(f.fonts.sans14, visible_token(token.text), left - at.x - f.metrics.px(6)));
}

void draw_table(const Frame& frame, const Prediction& next, float width) {
  const auto& f = frame;
  const bool is_edited = f.newest.whole->experiment.is_edited();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y}, {at.x + width, at.y + 1}, packed(f.palette.line));
  const float y = at.y + f.metrics.px(6);
  widgets::draw_text(f.fonts.sans13, {at.x, y}, f.palette.faint, "token");
  const float change = widgets::text_width(f.fonts.mono13, "−0.000") + f.metrics.px(12);
  if (is_edited) widgets::draw_text_right(f.fonts.sans13, at.x + width, y, f.palette.faint, "change");
  widgets::draw_text_right(f.fonts.sans13, at.x + width - (is_edited ? change : 0), y, f.palette.faint,
                           "now");
  ImGui::Dummy({width, f.metrics.px(24)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  bool is_listed = false;
  for (const NextToken& token : next.table) {
    draw_row(frame, token, token.id == next.chosen.id, is_edited, width);
    is_listed = is_listed || token.id == next.chosen.id;
  }
  if (!is_listed) draw_row(frame, next.chosen, true, is_edited, width);
  ImGui::PopStyleVar();
  const ImVec2 foot = ImGui::GetCursorScreenPos();
  if (is_edited) {
    widgets::outline(ImGui::GetWindowDrawList(), {foot.x, foot.y + f.metrics.px(5)},
                     {foot.x + f.metrics.px(14), foot.y + f.metrics.px(14)}, packed(f.palette.text), 1);
    widgets::draw_text(f.fonts.sans13, {foot.x + f.metrics.px(20), foot.y + f.metrics.px(2)}, f.palette.faint,
                       "before the edits");
  }
  widgets::draw_text_right(
      f.fonts.sans13, foot.x + width, foot.y + f.metrics.px(2), f.palette.faint,
      "the other " + std::to_string(next.n_others) + ": " + widgets::fixed(next.others, 4));
  ImGui::Dummy({width, f.metrics.px(24)});
}

}  // namespace

void draw_next_token(const Frame& frame) {
  if (!frame.newest.whole || !frame.newest.reading->readings()) return;
  const float width = ImGui::GetContentRegionAvail().x;
  const Prediction* next = frame.newest.reading->prediction();
  const std::string& why_not = frame.newest.reading->readings()->now->why_no_prediction;
  if (!why_not.empty()) {
    widgets::section_heading(frame, width, heading(frame), "");
    widgets::paragraph(frame.fonts.sans14, frame.palette.dim, width, why_not);
  } else if (next && !next->table.empty()) {
    draw_heading(frame, *next, width);
    draw_table(frame, *next, width);
  }
  draw_selected_head(frame, width);
}

}  // namespace app::panels
