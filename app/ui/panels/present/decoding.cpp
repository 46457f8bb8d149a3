#include "app/ui/panels/present/decoding.hpp"

#include <algorithm>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/panels/present/shown_map.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::Rows;
using core::attention::StageInfo;

constexpr float not_computed = 0.86f, not_again = 0.6f;  // how much of a cell is covered

/// Covers cells from a row and a column on, up to others, as far as the map shows them.
void cover_cells(const Frame& frame, const ShownMap& map, std::size_t top, std::size_t bottom,
                 std::size_t left, std::size_t right, float how_much) {
  const ImVec2 min{map.x(static_cast<double>(left)), map.y(static_cast<double>(top))},
      max{map.x(static_cast<double>(right)), map.y(static_cast<double>(bottom))};
  if (min.x < max.x && min.y < max.y)
    ImGui::GetWindowDrawList()->AddRectFilled(min, max, packed(frame.palette.ground.back, how_much));
}

void mark_stage(const Frame& frame, const StageInfo& stage, std::size_t now) {
  if (stage.rows != Rows::queries && stage.rows != Rows::keys) return;
  if (!stage.present(frame.shown.model)) return;
  const auto map = shown_map(frame, stage);
  if (!map) return;
  const auto [n_rows, n_columns] = core::attention::shape_of(frame.shown.model, stage.stage);
  ImGui::PushClipRect(map->rect.min, map->rect.max, true);
  if (stage.rows == Rows::queries) cover_cells(frame, *map, 0, now, 0, n_columns, not_again);
  cover_cells(frame, *map, now + 1, n_rows, 0, n_columns, not_computed);
  if (stage.columns == Columns::tokens)
    cover_cells(frame, *map, now, now + 1, now + 1, n_columns, not_computed);
  ImGui::PopClipRect();
  const float thick = frame.metrics.px(2), top = map->y(static_cast<double>(now)),
              bottom = map->y(static_cast<double>(now + 1));
  if (top < map->rect.min.y || bottom > map->rect.max.y) return;
  widgets::outline(ImGui::GetWindowDrawList(), {map->rect.min.x - thick, top - thick},
                   {map->rect.max.x + thick, bottom + thick}, packed(frame.palette.accent), thick);
  frame.landmarks.mark(std::string("decode/new/") + stage.name, {map->rect.min.x, top},
                       {map->rect.max.x, bottom});
}

bool shows_decoding(const Frame& frame) {
  return frame.shown.look.positions.decoded && frame.shown.look.tab == Tab::stages &&
         !frame.shown.look.large && !frame.shown.selection.presenting.on;
}

/// "Token 3 of 6, “journey”: 2 keys and values are kept, 1 is new".
std::string decoding_words(const Frame& frame, std::size_t now) {
  const auto& tokens = frame.shown.model.sequences[frame.shown.look.sequence].tokens;
  const std::string which = "Token " + std::to_string(now + 1) + " of " +
                            std::to_string(frame.shown.model.n_tokens()) + ", “" + tokens[now] + "”: ";
  if (now == 0) return which + "its key and value are the first to be kept";
  return which + std::to_string(now) +
         (now == 1 ? " key and value is kept, 1 is new" : " keys and values are kept, 1 is new");
}

}  // namespace

void draw_decoding_marks(const Frame& frame) {
  if (!shows_decoding(frame)) return;
  for (const StageInfo& stage : core::attention::stages())
    mark_stage(frame, stage, *frame.shown.look.positions.decoded);
}

float decoding_bar_height(const Frame& frame) {
  return shows_decoding(frame) ? frame.metrics.px(36) : 0;
}

void draw_decoding_bar(const Frame& frame) {
  const auto& now = frame.shown.look.positions.decoded;
  if (!now) return;
  const ImVec2 origin = ImGui::GetCursorScreenPos(), window = ImGui::GetWindowPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::GetWindowDrawList()->AddRectFilled(window, {window.x + ImGui::GetWindowWidth(), window.y + 1},
                                            packed(frame.palette.line));
  const Situation situation = situation_of(frame);
  const std::vector<Action> all = actions(situation);
  platform::move_to({origin.x, origin.y + frame.metrics.px(6)});
  draw_action_button(frame, situation, all, "decode/back", "decode/back", "one token back");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "decode/on", "decode/on", "one token more");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "decode/close", "decode/close", "all at once");
  ImGui::SameLine();
  const float x = ImGui::GetCursorScreenPos().x + frame.metrics.px(8);
  widgets::draw_text(frame.fonts.sans14, {x, origin.y + frame.metrics.px(18)}, widgets::Align::left_middle,
                     packed(frame.palette.text),
                     widgets::shortened(frame.fonts.sans14, decoding_words(frame, *now),
                                        std::max(1.0f, origin.x + width - x)));
  frame.landmarks.mark("decode/words", {x, origin.y}, {origin.x + width, origin.y + frame.metrics.px(36)});
}

}  // namespace app::panels
