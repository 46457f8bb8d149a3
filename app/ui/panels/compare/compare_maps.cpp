#include "app/ui/panels/compare/compare_maps.hpp"

#include <algorithm>
#include <array>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/compare/compare_list.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using core::attention::Coloring;
using core::attention::Columns;
using core::attention::StageInfo;
using core::compare::DifferenceKind;

/// One state's numbers of a stage with what must be marked in them.
struct Side {
  const arma::mat& numbers;
  const core::attention::Sequence& sequence;
  const Extent& extent;
  const arma::mat &visible, &kept;  ///< what hides and drops its numbers
};

/// One range for A and B.
Ends common_ends(const Frame& frame, const ComparedStage& stage) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  if (info.coloring != Coloring::signed_values)
    return {0, std::max(core::attention::top_of_range(frame.compared.comparison->model, info.stage),
                        core::attention::top_of_range(frame.compared.comparison->live, info.stage))};
  const double most = std::max({-stage.a.smallest, stage.a.largest, -stage.b.smallest, stage.b.largest});
  return {-most, most};
}

void draw_tooltip(const Frame& frame, const ComparedStage& stage) {
  const std::optional<CellRef>& cell = frame.shown.selection.hovered;
  if (!ImGui::IsItemHovered() || !cell || cell->stage != stage.all.stage) return;
  const auto numbers = compared_numbers(frame, *cell);
  if (!numbers) return;
  const auto& [a, b] = *numbers;
  const std::string words = compared_cell(frame, *cell) + "\nA      " + widgets::number_text(a) +
                            "\nB      " + widgets::number_text(b) + "\nA − B  " +
                            widgets::number_text(core::compare::difference(DifferenceKind::a_minus_b, a, b));
  platform::push_font(frame.fonts.mono13);
  ImGui::SetTooltip("%s", words.c_str());
  ImGui::PopFont();
}

widgets::Heatmap map_of(const Frame& frame, const CompareLayout& l, const ComparedStage& stage,
                        std::size_t column) {
  static constexpr std::array names{"/a", "/b", "/difference"};
  const StageInfo& info = core::attention::info(stage.all.stage);
  widgets::Heatmap map;
  map.place = std::string("compare/") + info.name + names[column];
  map.stage = info.stage;
  map.head = info.per_head ? frame.compared.comparison->key.head : 0;
  map.width = info.columns == Columns::tokens ? l.square : l.features(frame.metrics, stage.difference.n_cols);
  map.height = l.height;
  map.label_width = column == 0 ? l.label_a : l.label;
  map.row_tokens = column == 0;
  if (!l.column_tokens) map.columns = widgets::ColumnLabels::indices;
  // The legend of a mask speaks of the live model; every other bar is the same for A and B.
  map.show_bar = column == 2 || (info.coloring == Coloring::mask) == (column == 1);
  return map;
}

void draw_side(const Frame& frame, const CompareLayout& l, const ComparedStage& stage, const Side& side,
               std::size_t column, ImVec2 at) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  widgets::Heatmap map = map_of(frame, l, stage, column);
  widgets::OtherNumbers numbers{.numbers = &side.numbers,
                                .version = frame.compared.comparison->revision,
                                .ends = common_ends(frame, stage),
                                .rows = &row_tokens(info, side.sequence),
                                .keys = &side.sequence.keys(),
                                .of_stage = true,
                                .extent = &side.extent};
  if (info.columns == Columns::tokens && info.coloring == Coloring::weights) numbers.visible = &side.visible;
  if (info.stage == Stage::dropout_mask || info.stage == Stage::dropped_weights) numbers.kept = &side.kept;
  map.other = &numbers;
  widgets::draw_heatmap(frame, map, {at.x + l.left(column), at.y});
  draw_tooltip(frame, stage);
}

void draw_difference(const Frame& frame, const CompareLayout& l, const ComparedStage& stage, ImVec2 at) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  const bool is_signed = frame.compared.comparison->key.kind != DifferenceKind::absolute;
  const double most = std::max(-stage.apart.smallest, stage.apart.largest);
  widgets::Heatmap map = map_of(frame, l, stage, 2);
  widgets::OtherNumbers numbers{.numbers = &stage.difference,
                                .version = frame.compared.comparison->revision,
                                .ends = {is_signed ? -most : 0, most},
                                .rows = &row_tokens(info, live_sequence(*frame.compared.comparison)),
                                .of_stage = true,
                                .coloring = is_signed ? Coloring::signed_values : Coloring::weights,
                                .extent = &stage.apart};
  if (info.columns == Columns::tokens && info.coloring == Coloring::weights)
    numbers.visible = &frame.compared.comparison->visible;
  map.other = &numbers;
  widgets::draw_heatmap(frame, map, {at.x + l.left(2), at.y});
  draw_tooltip(frame, stage);
}

}  // namespace

float draw_compared_maps(const Frame& frame, const CompareLayout& l, const ComparedStage& stage, ImVec2 at,
                         bool swapped) {
  const Comparison& c = *frame.compared.comparison;
  const core::attention::Sequence &of_reference = c.model.sequences[c.sequence], &of_live = live_sequence(c);
  // Tensors stand on the right, and what hides their numbers is what the model hides.
  const bool of_tensors = c.tensors != nullptr;
  const Side a{stage.numbers_a, of_tensors ? of_live : of_reference, stage.a,
               of_tensors ? c.visible_live : c.visible_kept,
               of_tensors ? c.kept_by_live : c.kept_by_reference};
  const Side b{stage.numbers_b, of_tensors ? of_reference : of_live, stage.b,
               of_tensors ? c.visible_kept : c.visible_live,
               of_tensors ? c.kept_by_reference : c.kept_by_live};
  const widgets::Heatmap map = map_of(frame, l, stage, 0);
  const float height =
      widgets::column_label_height(frame, map) + static_cast<float>(l.height) + frame.metrics.px(34);
  if (!ImGui::IsRectVisible(at, {at.x + l.width, at.y + height})) return height;
  draw_side(frame, l, stage, a, 0, at);
  draw_side(frame, l, stage, swapped ? a : b, 1, at);
  draw_difference(frame, l, stage, at);
  return height;
}

}  // namespace app::panels
