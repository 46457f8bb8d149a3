#include "app/ui/panels/compare/compare_panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/session/jobs.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/compare/compare_layout.hpp"
#include "app/ui/panels/compare/compare_list.hpp"
#include "app/ui/panels/compare/compare_maps.hpp"
#include "app/ui/panels/compare/reference_buttons.hpp"
#include "app/ui/panels/menus/stage_menu.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::attention::StageInfo;
using core::compare::DifferenceKind;
using widgets::Align;

constexpr float header_height = 36, title_height = 26, stage_gap = 10;

const std::array<std::string, 3> kinds{"A − B", "|A − B|", "relative"};

void draw_empty(const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float x = at.x + frame.metrics.px(8),
              width =
                  std::min(ImGui::GetContentRegionAvail().x - frame.metrics.px(16), frame.metrics.px(560));
  widgets::draw_text(frame.fonts.sans17, {x, at.y + frame.metrics.px(24)}, Align::left_middle,
                     packed(frame.palette.text), "Nothing to compare with yet");
  platform::move_to({x, at.y + frame.metrics.px(44)});
  widgets::paragraph(frame.fonts.sans15, frame.palette.dim, width,
                     "Keep the model as it is now as A, then change something: A stays, and every stage of "
                     "it stands here beside the live "
                     "one, B, with their difference. Or see at once what one switch does.");
  const float y = draw_reference_buttons(frame, {x, ImGui::GetItemRectMax().y + frame.metrics.px(16)});
  platform::move_to(at);
  ImGui::Dummy({1, y - at.y});
}

void draw_reference_chooser(const Frame& frame, float width) {
  std::vector<widgets::Option> options;
  for (const Reference& r : frame.compared.references) options.push_back({r.name + " · " + r.title, ""});
  const std::size_t now = frame.shown.look.compared.reference;
  if (const auto chosen = widgets::combo(frame, "compare/reference", width, options[now].words, options, now))
    frame.commands.look([k = *chosen](View& v) { v.look.compared.reference = k; });
}

/// Above the columns: which A, which B, and which difference.
void draw_header(const Frame& frame, const CompareLayout& l, ImVec2 origin, bool swapped) {
  const Metrics& m = frame.metrics;
  const float top = origin.y + std::round((m.px(header_height) - m.frame) / 2), middle = top + m.frame / 2;
  const auto letter = [&](std::size_t k, const char* words) {
    const float x = origin.x + l.picture(k);
    widgets::draw_text(frame.fonts.sans17, {x, middle}, Align::left_middle, packed(frame.palette.text),
                       words);
    return x + m.px(20);
  };
  const std::size_t kept = frame.compared.references[frame.shown.look.compared.reference].tensors ? 1 : 0,
                    live = 1 - kept;
  const std::array<float, 2> after{letter(0, "A"), letter(1, swapped ? "A" : "B")};
  const float drop = m.px(26);
  platform::move_to({after[kept], top});
  draw_reference_chooser(frame,
                         std::max(m.px(60), origin.x + l.picture(kept) + l.column - after[kept] - drop));
  ImGui::SameLine(0, m.px(4));
  if (widgets::button(frame, "reference/drop", "×", kept == 0 ? "Forget this A" : "Forget these tensors"))
    frame.commands.add(DropReference{});
  const bool in_place = swapped && live == 1;
  const std::string title =
      in_place ? "in place of B" : frame.document.title + (frame.document.modified ? ", edited" : "");
  const ImVec2 words{after[live], widgets::centred_y(frame.fonts.sans15, top, m.frame)};
  widgets::draw_text_within(frame.fonts.sans15, words, origin.x + l.picture(live) + l.column - after[live],
                            in_place ? frame.palette.status.warning : frame.palette.dim, title);
  platform::move_to({std::min(origin.x + l.picture(2), origin.x + l.width - m.px(196)), top});
  if (const auto kind = widgets::segmented(frame, "compare/kind", kinds,
                                           static_cast<std::size_t>(frame.shown.look.compared.difference)))
    frame.commands.look(
        [k = static_cast<DifferenceKind>(*kind)](View& v) { v.look.compared.difference = k; });
}

void draw_warning(const Frame& frame, ImVec2 middle) {
  const float r = frame.metrics.px(6);
  ImGui::GetWindowDrawList()->AddTriangleFilled({middle.x, middle.y - r}, {middle.x - r, middle.y + r},
                                                {middle.x + r, middle.y + r},
                                                packed(frame.palette.status.warning));
}

std::string result_words(const Frame& frame, const ComparedStage& stage) {
  if (!stage.all.obstacle.empty()) return stage.all.obstacle + ": cannot be compared";
  if (!stage.all.differs())
    return stage.all.largest > 0 ? "equal to rounding, largest " + compared_number(stage.all.largest)
                                 : "equal in every cell";
  if (stage.within) return "within tolerance, largest " + compared_number(stage.all.largest);
  const std::size_t head = frame.compared.comparison->key.head;
  const bool per_head = core::attention::info(stage.all.stage).per_head;
  if (stage.shown.distance == 0)
    return "equal in head " + std::to_string(head) + ", not in head " + std::to_string(stage.all.head);
  std::string place = compared_cell(frame, {stage.all.stage, head, stage.shown.row, stage.shown.column});
  if (per_head) place = place.substr(place.find(": ") + 2);
  return "largest" + (per_head ? " in head " + std::to_string(head) : "") + ": " +
         compared_number(stage.shown.distance) + " at " + place;
}

/// Name, formula, and what the comparison found.
void draw_title(const Frame& frame, const ComparedStage& stage, ImVec2 at, float width) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  const Metrics& m = frame.metrics;
  const float middle = at.y + m.px(title_height) / 2;
  ImFont* title = m.compact ? frame.fonts.sans16 : frame.fonts.sans17;
  const Rgb ink = !stage.within ? frame.palette.text : frame.palette.dim;
  widgets::draw_text(title, {at.x, middle}, Align::left_middle, packed(ink), info.title);
  const float named = widgets::text_width(title, info.title);
  if (info.present(frame.shown.model))
    draw_title_area(frame, std::string("compare/title/") + info.name, info.stage, frame.shown.look.head,
                    {at.x, at.y + m.px(2)}, {named, m.px(title_height - 4)});
  float x = at.x + named + m.px(10);
  const bool of_b = stage.all.in_b;
  const std::string formula =
      formula_of(info, of_b ? frame.compared.comparison->live : frame.compared.comparison->model, true);
  if (!formula.empty()) {
    ImFont* font = frame.fonts.sans14;
    x += widgets::draw_formula(font, {x, widgets::centred_y(font, at.y, m.px(title_height))},
                               packed(frame.palette.dim), formula) +
         m.px(16);
  }
  if (&stage == frame.compared.comparison->first) {
    draw_warning(frame, {x + m.px(6), middle});
    widgets::draw_text(frame.fonts.sans14, {x + m.px(18), middle}, Align::left_middle,
                       packed(frame.palette.status.warning), "first stage that differs");
    x += m.px(30) + widgets::text_width(frame.fonts.sans14, "first stage that differs");
  }
  widgets::draw_text(frame.fonts.sans14, {at.x + width, middle}, Align::right_middle,
                     packed(frame.palette.dim),
                     widgets::shortened(frame.fonts.sans14, result_words(frame, stage),
                                        std::max(m.px(20), at.x + width - x)));
}

void draw_stages_of(const Frame& frame, const CompareLayout& l, bool swapped) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImVec2 at = origin;
  for (const ComparedStage& stage : frame.compared.comparison->stages) {
    const ImVec2 start = at;
    if (frame.shown.selection.sought == stage.all.stage) {
      ImGui::SetScrollY(start.y - origin.y);
      frame.commands.look([](View& v) { v.selection.sought.reset(); });
    }
    draw_title(frame, stage, at, l.width);
    at.y += frame.metrics.px(title_height);
    const bool pictured = stage.all.same_shape && stage.all.differs();
    if (pictured) at.y += draw_compared_maps(frame, l, stage, at, swapped) + frame.metrics.px(stage_gap);
    frame.landmarks.mark(std::string("compare/block/") + core::attention::info(stage.all.stage).name, start,
                         {at.x + l.width, at.y});
  }
  platform::move_to(origin);
  ImGui::Dummy({l.width, std::max(1.0f, at.y - origin.y)});
}

}  // namespace

void draw_compare(const Frame& frame) {
  if (frame.compared.references.empty()) return draw_empty(frame);
  const ImVec2 origin = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const std::size_t n_tokens =
      (frame.compared.comparison ? frame.compared.comparison->live : frame.shown.model).n_tokens();
  const CompareLayout l =
      lay_out_comparison(frame.metrics, n_tokens, room.x - ImGui::GetStyle().ScrollbarSize);
  const bool swapped = frame.shown.selection.shows_a;
  draw_header(frame, l, origin, swapped);
  const float top = frame.metrics.px(header_height);
  if (!frame.compared.comparison) {  // a moment for small models
    if (frame.compared.work.seconds < unnoticed_seconds) return;
    const float middle = origin.y + top + frame.metrics.px(title_height) / 2;
    widgets::draw_text(frame.fonts.sans14, {origin.x, middle}, Align::left_middle, packed(frame.palette.dim),
                       "Every stage of every head is being compared.");
    return;
  }
  platform::move_to({origin.x, origin.y + top});
  const bool zooms = frame.shown.selection.hovered && !ImGui::GetIO().KeyShift;
  platform::begin_child("comparison", {room.x, std::max(1.0f, room.y - top)}, false,
                        zooms ? ImGuiWindowFlags_NoScrollWithMouse : 0);
  draw_stages_of(frame, l, swapped);
  ImGui::EndChild();
}

}  // namespace app::panels
