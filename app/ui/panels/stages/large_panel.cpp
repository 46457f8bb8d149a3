#include "app/ui/panels/stages/large_panel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/stages/profiles.hpp"
#include "app/ui/panels/stages/rotation_panel.hpp"
#include "app/ui/panels/stages/stages_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;
using widgets::Align;

// At scale 1.
constexpr float largest_thumbnail = 64, thumbnail_gap = 12, title_height = 28, bar_height = 30,
                profile_room = 64, widest_profile = 150, profile_heading = 32;

std::vector<const StageInfo*> shown_stages(const Frame& frame) {
  std::vector<const StageInfo*> shown;
  for (const StageInfo& stage : core::attention::stages())
    if (stage.present(frame.displayed.model) &&
        (!frame.displayed.look.folded.contains(stage.stage) || frame.displayed.look.large == stage.stage))
      shown.push_back(&stage);
  return shown;
}

/// One stage as a button; matrices of features are narrower.
void draw_thumbnail(const Frame& frame, const StageInfo& stage, ImVec2 at, float side) {
  const core::attention::StageMatrix& numbers =
      frame.displayed.trace.at(stage.stage, frame.displayed.look.head);
  const std::string name = std::string("large/stage/") + stage.name;
  const float wide = stage.columns == Columns::tokens
                         ? side
                         : std::max(side / 3, std::min(side, side * static_cast<float>(numbers.n_cols()) /
                                                                 static_cast<float>(numbers.n_rows())));
  widgets::Heatmap map;
  map.place = name;
  map.stage = stage.stage;
  map.head = frame.displayed.look.head;
  map.width = std::max(1, static_cast<int>(wide)), map.height = std::max(1, static_cast<int>(side));
  map.show_numbers = false;
  map.whole = true;
  platform::move_to(at);
  const bool pressed = widgets::hit_area(name.c_str(), {side, side + frame.metrics.px(18)});
  frame.landmarks.mark_item(name);
  const bool focused = ImGui::IsItemFocused() && ImGui::GetIO().NavVisible;
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", stage.title);
  if (pressed) frame.commands.add(set<&Look::large>(stage.stage));
  widgets::draw_picture(frame, map, at);
  const bool chosen = frame.displayed.look.large == stage.stage;
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (chosen || focused)
    widgets::outline(list, {at.x - 4, at.y - 4}, {at.x + static_cast<float>(map.width) + 4, at.y + side + 4},
                     packed(focused ? frame.palette.accent : frame.palette.selection), 2);
  widgets::draw_text(
      frame.fonts.sans12, {at.x, at.y + side + frame.metrics.px(12)}, Align::left_middle,
      packed(chosen ? frame.palette.text : frame.palette.dim),
      widgets::shortened(frame.fonts.sans12, stage.title, side + frame.metrics.px(thumbnail_gap - 2)));
}

/// Returns the height of the row.
float draw_thumbnails(const Frame& frame, ImVec2 origin, float width) {
  const auto& m = frame.metrics;
  const auto shown = shown_stages(frame);
  const float pitch =
      std::min(m.px(largest_thumbnail + thumbnail_gap), (width - m.px(8)) / static_cast<float>(shown.size()));
  const float side = std::floor(pitch - m.px(thumbnail_gap));
  float x = origin.x + 4;
  for (const StageInfo* stage : shown) {
    draw_thumbnail(frame, *stage, {std::round(x), origin.y + 4}, side);
    x += pitch;
  }
  return side + m.px(30);
}

/// All of the room, in cells of whole pixels where these leave little of it; cells of tokens are no higher
/// than wide, and at most so much wider as digits profit from.
ImVec2 picture_size(const Frame& frame, const StageInfo& stage, const core::attention::StageMatrix& numbers,
                    ImVec2 room) {
  const auto& m = frame.metrics;
  constexpr float widest = 220, highest = 140, most_across = 2.5f, least_with_numbers = 26;
  const auto columns = static_cast<float>(numbers.n_cols()), rows = static_cast<float>(numbers.n_rows());
  constexpr float least_used = 0.85f;
  const auto whole = [](float length, float count) {
    const float pixels = count * std::floor(length / count);
    return length < count * 2 || pixels < least_used * length ? std::floor(length) : pixels;
  };
  float wide = std::min(room.x / columns, m.px(widest)), high = std::min(room.y / rows, m.px(highest));
  if (stage.columns == Columns::tokens) {
    high = std::min(high, wide);
    wide = std::min(wide, wide < m.px(least_with_numbers) ? high : most_across * high);
  }
  return {std::max(1.0f, whole(wide * columns, columns)), std::max(1.0f, whole(high * rows, rows))};
}

/// Name, formula, shape; at the right the measure of the picture and the way back.
void draw_title(const Frame& frame, const StageInfo& stage, float cell, ImVec2 at, float width) {
  const auto& f = frame.fonts;
  const float middle = at.y + frame.metrics.px(title_height) / 2;
  const float top = std::round(middle - platform::font_size(f.sans17) * 0.56f);
  draw_stage_title(frame, "large/title", stage.stage, f.sans17, {at.x, top});
  float x =
      at.x + widgets::text_width(f.sans17, widgets::stage_title(frame, stage.stage)) + frame.metrics.px(10);
  const auto lowered = [&](ImFont* small) { return top + widgets::baseline_drop(f.sans17, small); };
  std::string words = computed_formula(stage, frame.displayed.model, false);
  x += widgets::draw_formula(f.sans14, {x, lowered(f.sans14)}, packed(frame.palette.dim), words) +
       frame.metrics.px(10);
  if (stage.per_head) {
    words = widgets::head_words(frame.displayed.model, stage.stage, frame.displayed.look.head);
    widgets::draw_text(f.sans14, {x, lowered(f.sans14)}, Align::left_top, packed(frame.palette.dim), words);
    x += widgets::text_width(f.sans14, words) + frame.metrics.px(10);
  }
  widgets::draw_text(f.mono12, {x, lowered(f.mono12)}, Align::left_top, packed(frame.palette.faint),
                     core::attention::shape_words(frame.displayed.model, stage.stage));
  const float right = at.x + width, back = frame.metrics.px(92), fit = frame.metrics.px(36),
              gap = frame.metrics.px(8);
  const float button_top = std::round(middle - frame.metrics.frame / 2);
  platform::move_to({right - back, button_top});
  if (widgets::button(frame, "large/back", "all stages", "Returns to all stages (Esc, L)"))
    frame.commands.add(set<&Look::large>(std::nullopt));
  platform::move_to({right - back - gap - fit, button_top});
  if (widgets::button(frame, "large/fit", "fit", "Shows all cells again (F)"))
    frame.commands.add(set<&Look::zoomed>({}));
  const std::string measure = cell >= 1 ? "1 cell = " + widgets::fixed(cell, cell < 10 ? 1 : 0) + " px"
                                        : "1 px = " + widgets::fixed(1 / cell, 1) + " cells";
  widgets::draw_text(f.mono12, {right - back - fit - 2 * gap, middle}, Align::right_middle,
                     packed(frame.palette.dim), measure);
}

}  // namespace

void draw_large(const Frame& frame) {
  const auto& m = frame.metrics;
  const StageInfo& stage = core::attention::info(*frame.displayed.look.large);
  const core::attention::StageMatrix& numbers =
      frame.displayed.trace.at(stage.stage, frame.displayed.look.head);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const bool turns = has_turning(frame, stage.stage);
  const ImVec2 room{ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize,
                    ImGui::GetContentRegionAvail().y - (turns ? turning_height(frame) : 0)};
  const float thumbnails = draw_thumbnails(frame, origin, room.x);

  widgets::Heatmap map;
  map.place = std::string("large/") + stage.name;
  map.stage = stage.stage;
  map.head = frame.displayed.look.head;
  map.label_width = m.px(92);
  map.show_bar = stage.columns != Columns::single;
  if (frame.displayed.look.gutters && stage.columns == Columns::tokens) map.gutter_width = m.px(54);
  const float gutters = map.gutter_width * static_cast<float>(widgets::gutter_count(stage.stage));
  const float profile = m.px(profile_room), top = origin.y + thumbnails + m.px(title_height);
  const float across = room.x - map.label_width - gutters - profile - m.px(40);
  map.width = std::max(1, static_cast<int>(across));  // the height of the labels depends on it
  const float labels = std::max(widgets::column_label_height(frame, map), m.px(profile_heading));
  const float down = origin.y + room.y - top - labels - m.px(bar_height) - profile - m.px(16);
  const ImVec2 size =
      picture_size(frame, stage, numbers, {std::max(m.px(60), across), std::max(m.px(60), down)});
  map.width = static_cast<int>(size.x), map.height = static_cast<int>(size.y);
  // What whole and square cells leave goes to the profiles.
  const float widest = m.px(widest_profile);
  const ImVec2 profiles{std::clamp(std::floor(across - size.x) + profile, profile, widest),
                        std::clamp(std::floor(down - size.y) + profile, profile, widest)};

  const CellWindow part = shown_part(frame.displayed.look, {numbers.n_rows(), numbers.n_cols()});
  draw_title(frame, stage, size.x / static_cast<float>(part.right - part.left),
             {origin.x, origin.y + thumbnails}, room.x);
  const float lowered = std::max(0.0f, m.px(profile_heading) - widgets::column_label_height(frame, map));
  widgets::draw_heatmap(frame, map, {origin.x, top + lowered});
  handle_stage(frame, stage.stage);
  const ImVec2 corner{std::round(origin.x + map.label_width),
                      std::round(top + lowered + widgets::column_label_height(frame, map))};
  const ImVec2 far{corner.x + size.x, corner.y + size.y};
  draw_profiles(frame, stage, numbers, {corner, far, part},
                {far.x + gutters + m.px(14), far.y + m.px(bar_height)}, profiles);
  const float bottom = far.y + m.px(bar_height) + profiles.y + m.px(8);
  if (turns) draw_turning(frame, {origin.x, bottom}, room.x);
  platform::move_to(origin);
  ImGui::Dummy({room.x, std::max(1.0f, bottom + (turns ? turning_height(frame) : 0) - origin.y)});
}

}  // namespace app::panels
