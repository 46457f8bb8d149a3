#include "app/ui/panels/layers/layers_panel.hpp"

#include <algorithm>
#include <cmath>

#include "app/session/whole_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/head_map.hpp"
#include "app/ui/panels/layers/whole_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {

namespace {

constexpr float smallest_map = 60, largest_map = 320, largest_cell = 26;
constexpr float cell_with_tokens = 12, cell_with_gap = 8, widest_gap = 28;

}  // namespace

LayersTiling tile_layers(const Metrics& metrics, ImVec2 room, std::size_t n_layers, std::size_t n_heads,
                         std::size_t n_numbers) {
  const auto columns = static_cast<float>(n_heads), rows = static_cast<float>(n_layers),
             cells = static_cast<float>(n_numbers);
  // As much as fits, in whole cells where these are large enough to have gaps.
  const auto fitted = [&](LayersTiling t, float least_cell) {
    const float across = (room.x - t.labels - t.row_tokens + t.gap) / columns - t.gap,
                down = (room.y - t.top) / rows - (t.pitch() - t.map);
    const float most = std::min({across, down, metrics.px(largest_map), cells * metrics.px(largest_cell)});
    const float cell = std::floor(std::max(0.0f, most) / cells);
    const bool has_gaps = cell >= metrics.px(cell_with_gap);
    t.map = has_gaps ? cell * cells : std::floor(most);
    return std::pair(t, t.map >= metrics.px(smallest_map) && t.map >= metrics.px(least_cell) * cells);
  };
  // What whole cells leave over goes between the columns.
  const auto spread = [&](LayersTiling t) {
    const float over = std::floor((room.x - t.width(n_heads)) / std::max(1.0f, columns - 1));
    t.gap = std::max(t.gap, std::min(metrics.px(widest_gap), t.gap + over));
    return t;
  };
  LayersTiling t;
  t.labels = metrics.px(100);
  t.header = metrics.px(24), t.bar_gap = metrics.px(6), t.bar = metrics.px(4), t.foot = metrics.px(10);
  for (const float gap : {widest_gap, 20.0f, 12.0f}) {
    t.gap = metrics.px(gap), t.row_tokens = metrics.px(76);
    if (const auto [found, fits] = fitted(t, cell_with_tokens); fits) return spread(found);
  }
  t.row_tokens = 0;
  for (const float gap : {widest_gap, 16.0f, 8.0f}) {
    t.gap = metrics.px(gap);
    if (const auto [found, fits] = fitted(t, cell_with_gap); fits) return spread(found);
  }
  t.gap = metrics.px(8);
  if (const auto [found, fits] = fitted(t, 0); fits && found.map >= metrics.px(96)) return spread(found);
  t.header = 0, t.top = metrics.px(20), t.bar_gap = metrics.px(2), t.bar = metrics.px(3),
  t.foot = metrics.px(3);
  t.gap = metrics.px(4);
  auto [found, fits] = fitted(t, 0);
  if (!fits) {
    found.map = metrics.px(smallest_map);
    return found;
  }
  return spread(found);
}

namespace {

using core::experiment::Reading;

constexpr float legend_height = 30;

/// A token and how probable it is, with a bar under it.
void draw_guess(const Frame& frame, const std::string& token, double probability, ImVec2 at, float width,
                bool is_first) {
  const auto& f = frame;
  const Rgb ink = is_first ? f.palette.text : f.palette.dim;
  const std::string number = widgets::fixed(probability, is_first ? 2 : 3);
  const float number_width = widgets::text_width(f.fonts.mono12, number);
  widgets::draw_text(
      f.fonts.sans13, {at.x, at.y}, widgets::Align::left_middle, packed(ink),
      widgets::shortened(f.fonts.sans13, visible_token(token), width - number_width - f.metrics.px(6)));
  widgets::draw_text(f.fonts.mono12, {at.x + width, at.y}, widgets::Align::right_middle, packed(ink), number);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float top = std::round(at.y + f.metrics.px(10)), bottom = top + f.metrics.px(3);
  list->AddRectFilled({at.x, top}, {at.x + width, bottom}, packed(f.palette.control.rest));
  const Rgb color = render::color_at(f.shown.look.colors.sequential, f.palette.dark, probability);
  list->AddRectFilled({at.x, top},
                      {at.x + width * static_cast<float>(std::clamp(probability, 0.0, 1.0)), bottom},
                      packed(probability > 0.02 ? color : f.palette.faint));
}

void draw_layer_label(const Frame& frame, const LayersTiling& t, std::size_t layer, ImVec2 at) {
  const auto& f = frame;
  const bool is_chosen = layer == f.newest.whole->experiment.layer;
  const float width = t.labels - f.metrics.px(16), height = t.map;
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (is_chosen) {  // in the margin of the view
    list->PushClipRect({at.x - f.metrics.px(12), list->GetClipRectMin().y}, list->GetClipRectMax(), false);
    list->AddRectFilled({at.x - f.metrics.px(10), at.y}, {at.x - f.metrics.px(8), at.y + height},
                        packed(f.palette.selection));
    list->PopClipRect();
  }
  platform::move_to(at);
  if (widgets::hit_area(("layer " + std::to_string(layer)).c_str(), {width, height}))
    f.commands.add(LookAtLayer{layer});
  f.landmarks.mark_item("layers/layer/" + std::to_string(layer));
  const bool is_edited = f.newest.whole->experiment.layers.contains(layer);
  widgets::draw_text(f.fonts.sans15, {at.x, at.y + f.metrics.px(7)}, widgets::Align::left_middle,
                     packed(is_chosen ? f.palette.text : f.palette.dim), "layer " + std::to_string(layer));
  if (is_edited) {
    const float left =
        at.x + widgets::text_width(f.fonts.sans15, "layer " + std::to_string(layer)) + f.metrics.px(6);
    list->AddRectFilled({left, at.y + f.metrics.px(4)}, {left + f.metrics.px(6), at.y + f.metrics.px(10)},
                        packed(f.palette.accent));
  }
  const Prediction* next = f.newest.reading->prediction();
  if (!next || layer >= next->lens.size()) return;
  const LensToken& guess = next->lens[layer];
  const bool has_heading = height >= f.metrics.px(96);
  float y = at.y + f.metrics.px(has_heading ? 34 : 30);
  if (has_heading) {
    widgets::draw_text(f.fonts.sans12, {at.x, y}, widgets::Align::left_middle, packed(f.palette.faint),
                       "logit lens");
    y += f.metrics.px(22);
  }
  draw_guess(f, guess.text, guess.probability, {at.x, y}, width, true);
  if (has_heading && guess.text != next->chosen.text)
    draw_guess(f, next->chosen.text, guess.of_chosen, {at.x, y + f.metrics.px(30)}, width, false);
}

/// The tokens beside the rows of a layer's first map.
void draw_row_tokens(const Frame& frame, const LayersTiling& t, const Reading& now, ImVec2 corner) {
  if (t.row_tokens <= 0 || now.block != 1) return;
  const float cell = t.map / static_cast<float>(now.names.size());
  const float index = widgets::text_width(frame.fonts.mono12, "00");
  const std::size_t row = now.place ? now.place->row : now.names.size() - 1;
  for (std::size_t i = 0; i < now.names.size(); ++i) {
    const float middle = std::round(corner.y + cell * (static_cast<float>(i) + 0.5f));
    const Rgb ink = i == row ? frame.palette.text : frame.palette.dim;
    widgets::draw_text(frame.fonts.mono12, {corner.x - frame.metrics.px(6), middle},
                       widgets::Align::right_middle, packed(i == row ? ink : frame.palette.faint),
                       std::to_string(i));
    widgets::draw_text(frame.fonts.sans12, {corner.x - frame.metrics.px(12) - index, middle},
                       widgets::Align::right_middle, packed(ink),
                       widgets::shortened(frame.fonts.sans12, visible_token(now.names[i]),
                                          t.row_tokens - index - frame.metrics.px(18)));
  }
}

/// Returns where it ends.
float draw_scale(const Frame& frame, float x, float middle, core::color::ColorMap map, const std::string& low,
                 const std::string& high, const std::string& words) {
  const auto& f = frame;
  ImDrawList* list = ImGui::GetWindowDrawList();
  widgets::draw_text(f.fonts.mono12, {x, middle}, widgets::Align::left_middle, packed(f.palette.dim), low);
  x += widgets::text_width(f.fonts.mono12, low) + f.metrics.px(6);
  const int steps = static_cast<int>(f.metrics.px(84));
  for (int k = 0; k < steps; ++k)
    list->AddRectFilled({x + static_cast<float>(k), middle - f.metrics.px(3)},
                        {x + static_cast<float>(k + 1), middle + f.metrics.px(3)},
                        packed(render::color_at(map, f.palette.dark, (k + 0.5) / steps)));
  x += static_cast<float>(steps) + f.metrics.px(6);
  widgets::draw_text(f.fonts.mono12, {x, middle}, widgets::Align::left_middle, packed(f.palette.dim), high);
  x += widgets::text_width(f.fonts.mono12, high) + f.metrics.px(8);
  widgets::draw_text(f.fonts.sans13, {x, middle}, widgets::Align::left_middle, packed(f.palette.faint),
                     words);
  return x + widgets::text_width(f.fonts.sans13, words);
}

void draw_legend(const Frame& frame, bool has_entropies, ImVec2 at, float width) {
  const WholeReading& reading = *frame.newest.reading;
  const float middle = std::round(at.y + frame.metrics.px(legend_height) / 2);
  if (!reading.is_of(*frame.newest.whole) && !reading.is_busy()) {
    widgets::draw_text(frame.fonts.sans14, {at.x, middle}, widgets::Align::left_middle,
                       packed(frame.palette.status.bad),
                       "The last edit could not be computed: these maps are older. Undo it.");
    return;
  }
  const std::size_t block = reading.readings()->now->block;
  const LayerMaps maps = frame.newest.layers->maps;
  const bool changes = maps == LayerMaps::change;
  const std::string what = changes                     ? "weight, change"
                           : maps == LayerMaps::before ? "weight before the edits"
                                                       : "weight";
  float end_of_words = draw_scale(
      frame, at.x, middle, changes ? frame.shown.look.colors.diverging : frame.shown.look.colors.sequential,
      changes ? "−1" : "0", "1",
      what + (block == 1 ? "; row: query, column: key"
                         : "; 1 cell shows the largest of " + std::to_string(block) + " × " +
                               std::to_string(block)));
  const Prediction* next = reading.prediction();
  const bool effects = frame.newest.layers->shows_effects;
  const double end = !next ? 0 : effects ? reading.effects().largest() : next->largest_addition;
  const float gap = frame.metrics.px(24);
  if (end > 0 && width >= frame.metrics.px(620)) {
    const std::string number = widgets::fixed(end, 1);
    end_of_words = draw_scale(frame, std::max(end_of_words + gap, at.x + width * 0.42f), middle,
                              frame.shown.look.colors.diverging, "−" + number, "+" + number,
                              (effects ? "ablation effect on " : "to the logit of ") +
                                  quoted_token(next->chosen.text) + (effects ? "" : ""));
  }
  const char* entropies = "top right: entropy, bits";
  if (has_entropies &&
      at.x + width - widgets::text_width(frame.fonts.sans13, entropies) >= end_of_words + gap)
    widgets::draw_text(frame.fonts.sans13, {at.x + width, middle}, widgets::Align::right_middle,
                       packed(frame.palette.faint), entropies);
}

}  // namespace

void draw_layers(const Frame& frame) {
  if (!frame.newest.whole || !frame.newest.reading->readings()) {
    ImGui::TextUnformatted("The prompt is being read…");
    return;
  }
  const Reading& now = *frame.newest.reading->readings()->now;
  const std::size_t n_layers = now.layers.size();
  std::size_t n_heads = 1;
  std::size_t side = 1;
  for (const auto& layer : now.layers) {
    n_heads = std::max(n_heads, layer->heads.size());
    if (layer->is_known()) side = layer->heads.front().map.n_rows;
  }
  const ImVec2 origin = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float legend = frame.metrics.px(legend_height);
  const float scrollbar = ImGui::GetStyle().ScrollbarSize;
  const LayersTiling t = tile_layers(
      frame.metrics, {room.x - scrollbar, room.y - legend - frame.metrics.px(4)}, n_layers, n_heads, side);
  platform::begin_child("maps", {room.x, room.y - legend}, false, ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float left = start.x, view_left = origin.x;
  const float top = start.y + t.top + (t.header > 0 ? t.header : 0);
  const ImVec2 clip_min = ImGui::GetWindowPos(),
               clip_max(clip_min.x + ImGui::GetWindowWidth(), clip_min.y + ImGui::GetWindowHeight());
  const auto first_row = static_cast<std::size_t>(std::max(0.0f, (clip_min.y - top) / t.pitch()));
  const auto first_column = static_cast<std::size_t>(
      std::max(0.0f, (clip_min.x + t.labels - left - t.labels - t.row_tokens) / (t.map + t.gap)));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({view_left + t.labels - frame.metrics.px(6), clip_min.y}, clip_max, true);
  for (std::size_t l = first_row; l < n_layers; ++l) {
    const float y = std::round(top + static_cast<float>(l) * t.pitch());
    if (y - t.header > clip_max.y) break;
    if (first_column == 0) draw_row_tokens(frame, t, now, {left + t.column(0), y});
    for (std::size_t h = first_column; h < n_heads; ++h) {
      const float x = std::round(left + t.column(h));
      if (x > clip_max.x) break;
      draw_head_map(frame, t, l, h, {x, y});
    }
  }
  if (t.header <= 0)
    for (std::size_t h = first_column; h < n_heads; ++h)
      widgets::draw_text(frame.fonts.mono12,
                         {std::round(left + t.column(h) + t.map / 2), start.y + t.top / 2},
                         widgets::Align::middle, packed(frame.palette.dim), std::to_string(h));
  list->PopClipRect();
  for (std::size_t l = first_row; l < n_layers; ++l) {  // which stay where they are
    const float y = std::round(top + static_cast<float>(l) * t.pitch());
    if (y > clip_max.y) break;
    draw_layer_label(frame, t, l, {view_left, y});
  }
  platform::move_to(start);
  ImGui::Dummy({t.width(n_heads) + frame.metrics.px(4), t.top + static_cast<float>(n_layers) * t.pitch()});
  ImGui::EndChild();
  draw_legend(frame, t.header > 0, {origin.x, origin.y + room.y - legend}, room.x - scrollbar);
}

}  // namespace app::panels
