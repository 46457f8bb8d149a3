#include <algorithm>

#include "app/session/picture_source.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

/// Maps of gradients, in the places of the stages.
namespace app::widgets {

namespace {

constexpr std::uint64_t gradient_version_bit = 1ull << 62;  // of a version that no numbers of a stage have
constexpr double noise = 1e-12;  // a range is not smaller, so that rounding has no color

const arma::mat& gradient_of(const Frame& frame, Stage stage, std::size_t head) {
  return frame.gradient->gradients()->stages.at(stage, head);
}

void draw_tooltip(const Frame& frame, const CellRef& cell) {
  const core::graph::Target& of = *frame.displayed.look.gradient.of;
  const double gradient = gradient_of(frame, cell.stage, cell.head)(cell.row, cell.column);
  const std::string words = describe_cell(frame, cell).heading + "\n∂ " + display_number(gradient) +
                            "\nvalue " + display_number(cell_value(frame, cell)) + "\nHow fast " +
                            text_of(of) + " grows with this number";
  platform::push_font(frame.fonts.mono13);
  ImGui::SetTooltip("%s", words.c_str());
  ImGui::PopFont();
}

}  // namespace

bool shows_gradient(const Frame& frame, Stage stage) {
  const Look& look = frame.displayed.look;
  return frame.gradient && frame.gradient->is_current() && stage != Stage::mask &&
         look.gradient.maps != GradientMaps::values;
}

OtherNumbers gradient_numbers(const Frame& frame, Stage stage, std::size_t head) {
  OtherNumbers other{.numbers = &gradient_of(frame, stage, head),
                     .version = gradient_version_bit | frame.gradient->version(),
                     .ends = {},
                     .shows_stage = true,
                     .coloring = core::attention::Coloring::signed_values};
  const ValueRange range = value_range(*other.numbers);
  const double largest = std::max(-range.smallest, range.largest),
               end = largest > 0 ? std::max(largest, noise) : 1;
  other.ends = {-end, end};
  // Where the mask fills in scores, it stops the gradient.
  const core::attention::StageInfo& info = core::attention::info(stage);
  if (info.columns == core::attention::Columns::tokens && info.line == 2)
    other.visible =
        frame.work.source ? frame.work.source->visible() : &*frame.displayed.trace.at(Stage::mask);
  return other;
}

void draw_gradient_map(const Frame& frame, Heatmap map, ImVec2 top_left) {
  const OtherNumbers other = gradient_numbers(frame, map.stage, map.head);
  map.other = &other;
  draw_heatmap(frame, map, top_left);
  const std::optional<CellRef>& cell = frame.displayed.selection.hovered;
  if (ImGui::IsItemHovered() && cell && cell->stage == map.stage) draw_tooltip(frame, *cell);
}

}  // namespace app::widgets
