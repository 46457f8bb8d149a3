#include "app/ui/panels/bars/layers_controls.hpp"

#include <array>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {
namespace {

// At scale 1.
constexpr float maps_width = 150, bars_width = 140, label_gap = 10, field_gap = 24;

float label_width(const Frame& frame, const char* words) {
  return widgets::text_width(frame.fonts.sans15, words) + frame.metrics.px(label_gap);
}

void field_label(const Frame& frame, float right, float top, const char* words) {
  widgets::draw_text(frame.fonts.sans15, {right - frame.metrics.px(label_gap), top + frame.metrics.frame / 2},
                     widgets::Align::right_middle, packed(frame.palette.dim), words);
}

}  // namespace

float layers_controls_width(const Frame& frame, bool labelled) {
  const float labels = labelled ? label_width(frame, "maps") + label_width(frame, "bars") : 0;
  return frame.metrics.px(maps_width + bars_width + field_gap) + labels;
}

void draw_maps_chooser(const Frame& frame, float right, float top) {
  const std::array<widgets::Option, 3> options{
      widgets::Option{"weights", "The weights of every head on this text"},
      widgets::Option{"before the edits", "The weights that the model gives as it was opened"},
      widgets::Option{"change", "The weights now minus those before the edits"}};
  const auto now = static_cast<std::size_t>(frame.newest.layers->maps);
  const float width = frame.metrics.px(maps_width);
  platform::move_to({right - width, top});
  if (const auto chosen = widgets::combo(frame, "view/maps", width, options[now].words, options, now))
    frame.commands.look([maps = static_cast<LayerMaps>(*chosen)](View& v) { v.layers.maps = maps; });
}

void draw_bars_chooser(const Frame& frame, float right, float top) {
  const std::array<widgets::Option, 2> options{
      widgets::Option{"adds directly", "What each head adds to the logit of the chosen token"},
      widgets::Option{"if switched off",
                      "What becomes of that logit without the head: a run of the model for each"}};
  const std::size_t now = frame.newest.layers->shows_effects ? 1 : 0;
  const float width = frame.metrics.px(bars_width);
  platform::move_to({right - width, top});
  const auto chosen = widgets::combo(frame, "view/bars", width, options[now].words, options, now);
  if (!chosen || *chosen == now) return;
  if (*chosen == 1)
    frame.commands.add(SweepHeads{});
  else
    frame.commands.look([](View& v) { v.layers.shows_effects = false; });
}

void draw_layers_controls(const Frame& frame, float right, float top, bool labelled) {
  draw_bars_chooser(frame, right, top);
  right -= frame.metrics.px(bars_width);
  if (labelled) {
    field_label(frame, right, top, "bars");
    right -= label_width(frame, "bars");
  }
  right -= frame.metrics.px(field_gap);
  draw_maps_chooser(frame, right, top);
  if (labelled) field_label(frame, right - frame.metrics.px(maps_width), top, "maps");
}

}  // namespace app::panels
