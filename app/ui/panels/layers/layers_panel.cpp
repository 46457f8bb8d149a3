#include "app/ui/panels/layers/layers_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/session/full_model_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {
namespace {

using core::experiment::TextReading;

constexpr float legend_height = 24, label_pitch = 12;
constexpr std::size_t max_lanes = 3;

/// Returns the layout of the labels of n tokens along a map, and the room they take.
TokenLabels token_labels(const Metrics& m, float map, std::size_t n_tokens, float index, float lane) {
  const float pitch = map / static_cast<float>(n_tokens);
  TokenLabels labels;
  labels.lanes = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(m.px(label_pitch) / pitch)));
  if (labels.lanes > max_lanes)
    labels = {1, static_cast<std::size_t>(std::ceil(m.px(label_pitch + 1) / pitch)), 0};
  const float one_lane = m.px(lane) * 2;  // a lane alone has room for longer names
  labels.room = m.px(index) + (labels.lanes == 1 ? one_lane : m.px(lane) * static_cast<float>(labels.lanes));
  return labels;
}

/// Returns the tiling with maps of that size.
LayersTiling tiling_of(const Metrics& m, float map, float gap, std::size_t n_tokens, bool is_small) {
  LayersTiling t;
  t.map = map, t.gap = m.px(gap), t.labels = m.px(84);
  t.header = m.px(19), t.bar_gap = m.px(5), t.bar = m.px(4), t.foot = m.px(1);
  t.rows = token_labels(m, map, n_tokens, 24, 27);
  t.columns = token_labels(m, map, n_tokens, 0, 26.5f);
  t.is_small = is_small;
  if (t.is_small) {
    t.header = m.px(15), t.bar_gap = m.px(2), t.bar = m.px(2), t.foot = m.px(1), t.top = m.px(20);
    t.columns = {};
  }
  return t;
}

}  // namespace

LayersTiling tile_layers(const Metrics& metrics, ImVec2 room, std::size_t n_layers, std::size_t n_heads,
                         std::size_t n_tokens) {
  constexpr float min_map = 36, min_map_with_names = 72, largest = 320, largest_cell = 26, min_gap = 8,
                  widest_gap = 56, highest_foot = 16;
  constexpr float whole_cells = 4;  // from that size on, so that all cells of a map are equal
  const auto cells = static_cast<float>(n_tokens);
  const auto fits = [&](const LayersTiling& t) {
    return t.width(n_heads) <= room.x && t.height(n_layers) <= room.y;
  };
  const float max_map = std::floor(std::min(metrics.px(largest), cells * metrics.px(largest_cell)));
  LayersTiling found = tiling_of(metrics, metrics.px(min_map), min_gap / 2, n_tokens, true);
  const auto find = [&](float least, bool is_small) {
    for (float map = max_map; map >= metrics.px(least); --map) {
      const float cell = std::floor(map / cells);
      if ((cell >= whole_cells ? cell * cells : map) != map) continue;
      const LayersTiling t = tiling_of(metrics, map, is_small ? min_gap / 2 : min_gap, n_tokens, is_small);
      if (!fits(t)) continue;
      found = t;
      return true;
    }
    return false;
  };
  if (!find(min_map_with_names, false)) find(min_map, true);
  if (n_heads > 1) {  // the remaining width goes between the columns
    const float over = std::floor((room.x - found.width(n_heads)) / static_cast<float>(n_heads - 1));
    found.gap = std::clamp(found.gap + over, found.gap, metrics.px(widest_gap));
  }
  const float below = std::floor((room.y - found.height(n_layers)) / static_cast<float>(n_layers));
  found.foot = std::clamp(found.foot + below, found.foot, metrics.px(highest_foot));  // so does the height
  return found;
}

namespace {

/// Whether a token has a label of its own: every step-th, the last and the marked one, unless they overlap.
bool has_label(const TokenLabels& labels, std::size_t i, std::size_t marked, std::size_t n) {
  if (labels.step == 1) return true;
  const auto is_near = [&](std::size_t to) { return i != to && (i > to ? i - to : to - i) < labels.step; };
  if (i == marked || (i + 1 == n && !is_near(marked))) return true;
  return i % labels.step == 0 && !is_near(marked) && !is_near(n - 1);
}

/// Calls draw(i) for the tokens with a label, the marked one last, so that it is on top.
template <class Draw>
void for_each_label(const TokenLabels& labels, std::size_t marked, std::size_t n, Draw draw) {
  for (std::size_t i = 0; i < n; ++i)
    if (i != marked && has_label(labels, i, marked, n)) draw(i);
  draw(marked);
}

/// Shows a name in full where it was shortened and the mouse is over it.
void full_name_tooltip(ImVec2 min, ImVec2 max, const std::string& shown, const std::string& name) {
  if (shown != name && hovers(min, max)) ImGui::SetTooltip("%s", name.c_str());
}

/// Returns the color of each token's name on an axis: of the marked one, of those that differ from the first
/// of two prompts, and of the others.
std::vector<Rgb> name_colors(const Frame& frame, const TextReading& now) {
  const BothReadings& both = *frame.pending.reading->readings();
  const auto &ids = now.pass->ids, &before = both.before->pass->ids;
  std::vector<Rgb> colors(ids.size(), frame.palette.dim);
  const auto rows = alignment_of(both);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!rows[i] || before[*rows[i]] != ids[i]) colors[i] = frame.palette.status.warning;
  if (const std::size_t marked = marked_token(frame.displayed.look, now); colors[marked] == frame.palette.dim)
    colors[marked] = frame.palette.text;
  return colors;
}

/// Draws the tokens left of a layer's first map, with lines from each name to its row.
void draw_row_tokens(const Frame& frame, const LayersTiling& t, const TextReading& now, ImVec2 corner,
                     Rgb background) {
  if (t.rows.room <= 0) return;
  const Metrics& m = frame.metrics;
  const std::size_t n = now.names.size(), marked = marked_token(frame.displayed.look, now);
  const std::vector<Rgb> colors = name_colors(frame, now);
  const float pitch = t.map / static_cast<float>(n), index = m.px(18);
  const float near = corner.x - m.px(6) - index,
              lane = (t.rows.room - m.px(6) - index) / static_cast<float>(t.rows.lanes);
  for_each_label(t.rows, marked, n, [&](std::size_t i) {
    const float middle = std::round(corner.y + pitch * (static_cast<float>(i) + 0.5f));
    const float right = near - lane * static_cast<float>(i % t.rows.lanes);
    const bool is_marked = i == marked;
    if (t.rows.lanes > 1 && (i % t.rows.lanes > 0 || is_marked))
      draw_rect({right + m.px(2), middle}, {corner.x - m.px(2), middle + 1},
                is_marked ? frame.palette.text : frame.palette.strong_line);
    if (i % t.rows.lanes == 0)
      draw_text(frame.fonts.mono12, {corner.x - m.px(6), middle}, Align::right_middle,
                is_marked ? frame.palette.text : frame.palette.faint, std::to_string(i));
    const std::string name = visible_token(now.names[i]);
    const std::string shown = shortened(frame.fonts.sans12, name, lane - m.px(4));
    const float width = text_width(frame.fonts.sans12, shown);
    draw_rect({right - width - 1, middle - m.px(6)}, {right + 1, middle + m.px(6)}, background);
    draw_text(frame.fonts.sans12, {right, middle}, Align::right_middle, colors[i], shown);
    full_name_tooltip({right - width, middle - m.px(6)}, {right, middle + m.px(6)}, shown, name);
  });
  if (t.rows.step > 1)  // some names are omitted
    for (float y = corner.y + m.px(16); y < corner.y + t.map - m.px(14); y += m.px(5))
      draw_rect({corner.x - m.px(5), y}, {corner.x - m.px(4), y + 1}, frame.palette.faint);
}

/// Draws the tokens above the maps of the first layer, rotated by 90°.
void draw_column_tokens(const Frame& frame, const LayersTiling& t, const TextReading& now, ImVec2 corner,
                        Rgb background) {
  if (t.columns.room <= 0) return;
  const Metrics& m = frame.metrics;
  const std::size_t n = now.names.size(), marked = marked_token(frame.displayed.look, now);
  const std::vector<Rgb> colors = name_colors(frame, now);
  const float pitch = t.map / static_cast<float>(n),
              lane = t.columns.room / static_cast<float>(t.columns.lanes);
  for_each_label(t.columns, marked, n, [&](std::size_t i) {
    const float middle = std::round(corner.x + pitch * (static_cast<float>(i) + 0.5f));
    const float bottom = corner.y - m.px(3) - lane * static_cast<float>(i % t.columns.lanes);
    const bool is_marked = i == marked;
    if (i % t.columns.lanes > 0)
      draw_rect({middle, bottom}, {middle + 1, corner.y - m.px(2)},
                is_marked ? frame.palette.text : frame.palette.strong_line);
    const std::string name = visible_token(now.names[i]);
    const std::string shown = shortened(frame.fonts.sans12, name, lane - m.px(4));
    const float length = text_width(frame.fonts.sans12, shown), half = m.px(6);
    draw_rect({middle - half, bottom - length - 1}, {middle + half, bottom}, background);
    draw_text_rotated(frame.fonts.sans12, {middle, bottom}, colors[i], shown);
    full_name_tooltip({middle - half, bottom - length}, {middle + half, bottom}, shown, name);
  });
}

/// Draws a token and its probability, with a bar below.
void draw_token_probability(const Frame& frame, const std::string& token, double probability, ImVec2 at,
                            float width, bool is_first) {
  const auto& f = frame;
  const Rgb ink = is_first ? f.palette.text : f.palette.dim;
  const std::string number = fixed(probability, is_first ? 2 : 3);
  const float number_width = text_width(f.fonts.mono12, number);
  draw_text(f.fonts.sans13, {at.x, at.y}, Align::left_middle, ink,
            shortened(f.fonts.sans13, visible_token(token), width - number_width - f.metrics.px(6)));
  draw_text(f.fonts.mono12, {at.x + width, at.y}, Align::right_middle, ink, number);
  const float top = std::round(at.y + f.metrics.px(10)), bottom = top + f.metrics.px(3);
  const Rgb color = render::color_at(f.displayed.look.colors.sequential, f.palette.dark, probability);
  draw_fraction_bar(f, {at.x, top}, {at.x + width, bottom}, std::clamp(probability, 0.0, 1.0),
                    probability > 0.02 ? color : f.palette.faint);
}

constexpr float stream_x = -7;  // of the residual stream, left of the names of layers

/// Draws one part of the residual stream: its name and number above a bar, or the bar alone; a button where
/// it can be selected.
void draw_stream_part(const Frame& frame, const StreamPart& part, double end, ImVec2 at, float width,
                      bool is_small) {
  const Metrics& m = frame.metrics;
  const Palette& p = frame.palette;
  const bool selected = part.addition && is_selected(frame, *part.addition);
  const float bar = at.y + m.px(is_small ? 0 : 11), height = m.px(is_small ? 4 : 6);
  const ImVec2 min{at.x - m.px(3), at.y - m.px(is_small ? 2 : 9)},
      max{at.x + width + m.px(3), bar + height + m.px(2)};
  const std::string words = part.addition ? part.name.substr(0, part.name.find(' ')) : "embed";
  bool hovered = hovers(min, max);
  if (part.addition) {
    const std::string name =
        fmt::format("layers/{}/{}", part.addition->of_mlp ? "mlp" : "heads", part.addition->layer);
    platform::move_to(min);
    if (hit_area(name.c_str(), {max.x - min.x, max.y - min.y})) select(frame, *part.addition);
    frame.landmarks.mark_item(name);
    draw_focus(frame, min, max);
    hovered = ImGui::IsItemHovered();
    if (selected || hovered) draw_rect(min, max, selected ? p.control.active : p.control.rest, m.px(3));
  }
  if (!is_small) {
    draw_text(frame.fonts.sans13, at, Align::left_middle, selected ? p.selection : p.dim, words);
    draw_text(frame.fonts.mono12, {at.x + width, at.y}, Align::right_middle, p.text,
              signed_text(part.value, 2));
  }
  draw_signed_bar(frame, {at.x, bar}, {at.x + width, bar + height}, part.value / end);
  const float radius = m.px(is_small ? 2 : 3);
  ImGui::GetWindowDrawList()->AddCircleFilled({at.x + m.px(stream_x) + 1, bar + height / 2}, radius,
                                              packed(selected ? p.selection : p.faint));
  if (!hovered) return;
  const Prediction& next = *frame.pending.reading->prediction();
  const double bias =
      part.addition && !part.addition->of_mlp ? next.attribution->output_biases[part.addition->layer] : 0;
  ImGui::SetTooltip("%s: %s to the logit of %s%s", part.name.c_str(), signed_text(part.value, 4).c_str(),
                    quoted_token(next.chosen.text).c_str(),
                    bias == 0 ? "" : (", of which " + signed_text(bias, 4) + " is the output bias").c_str());
}

/// Draws the residual stream along the names of layers, from `top` down to an arrow.
void draw_stream_line(const Frame& frame, float x, float top, float bottom) {
  const Metrics& m = frame.metrics;
  const float left = x + m.px(stream_x), half = m.px(4);
  draw_rect({left, top}, {left + m.px(2), bottom}, frame.palette.strong_line);
  ImGui::GetWindowDrawList()->AddTriangleFilled({left + 1 - half, bottom - half},
                                                {left + 1 + half, bottom - half}, {left + 1, bottom + half},
                                                packed(frame.palette.faint));
}

/// Draws what the chosen lens predicts at a layer: also between attention and the MLP, above the end of the
/// layer, if it reads there. Returns the middle of the last line.
float draw_lens(const Frame& frame, const Prediction& next, std::size_t layer, ImVec2 at, float width) {
  using core::transformer::LensKind;
  const Metrics& m = frame.metrics;
  const LensKind kind = frame.pending.layers->lens;
  const auto draw = [&](const LensToken& token, const char* where) {
    if (token.text.empty())
      draw_text(frame.fonts.sans13, at, Align::left_middle, frame.palette.faint, "no matrix");
    else
      draw_token_probability(frame, token.text, token.probability, at, width, true);
    if (!hovers({at.x, at.y - m.px(8)}, {at.x + width, at.y + m.px(14)})) return;
    if (token.text.empty())
      ImGui::SetTooltip("%s: its file has no matrix for this layer", core::transformer::name_of(kind).words);
    else
      ImGui::SetTooltip("%s: the top token if the model ended %s; %s has %s",
                        core::transformer::name_of(kind).words, where, quoted_token(next.chosen.text).c_str(),
                        fixed(token.chosen_probability, 4).c_str());
  };
  if (kind == LensKind::logit) {
    draw(next.lens[layer], "after this layer");
    return at.y;
  }
  const LensReading* reading = frame.pending.reading->lens(kind);
  if (!reading || !reading->error.empty()) {
    draw_text(frame.fonts.sans13, at, Align::left_middle, frame.palette.faint, reading ? "no lens" : "…");
    if (reading && hovers({at.x, at.y - m.px(8)}, {at.x + width, at.y + m.px(14)}))
      ImGui::SetTooltip("%s", reading->error.c_str());
    return at.y;
  }
  if (layer < reading->between.size() && !reading->between[layer].text.empty()) {
    draw(reading->between[layer], "between attention and the MLP of this layer");
    at.y += m.px(24);
  }
  if (layer < reading->after.size()) draw(reading->after[layer], "after this layer");
  return at.y;
}

/// Draws the watched logit difference of both prompts as if the model ended after a layer.
void draw_layer_differences(const Frame& frame, std::size_t layer, ImVec2 at, float width, float height) {
  const auto* watched = frame.pending.reading->watched();
  if (!watched || !watched->error.empty() || layer >= watched->now_lens.size()) return;
  const Metrics& m = frame.metrics;
  double end = 0;
  for (std::size_t l = 0; l < watched->now_lens.size(); ++l)
    end = std::max({end, std::abs(watched->first_lens[l]), std::abs(watched->now_lens[l])});
  float y = at.y + m.px(24);
  for (const auto& [words, value] :
       {std::pair("A", watched->first_lens[layer]), {"B", watched->now_lens[layer]}}) {
    if (y + m.px(18) > at.y + height) return;
    draw_text(frame.fonts.sans13, {at.x, y}, Align::left_middle, frame.palette.dim, words);
    draw_text(frame.fonts.mono12, {at.x + width, y}, Align::right_middle, frame.palette.text,
              fixed(value, 2));
    draw_signed_bar(frame, {at.x, y + m.px(9)}, {at.x + width, y + m.px(13)}, end > 0 ? value / end : 0);
    y += m.px(32);
  }
  if (hovers({at.x, at.y + m.px(16)}, {at.x + width, y - m.px(16)}))
    ImGui::SetTooltip("Logit of %s minus that of %s, as if the model ended after this layer",
                      quoted_token(watched->answer_text).c_str(),
                      quoted_token(watched->against_text).c_str());
}

/// Draws the name of a layer, its logit lens, and what it adds to the residual stream, as far as there is
/// room.
void draw_layer_label(const Frame& frame, const LayersTiling& t, std::size_t layer,
                      std::span<const StreamPart> parts, ImVec2 at) {
  constexpr float stream_height = 112;  // of a map next to names and numbers of the residual stream
  const auto& f = frame;
  const Metrics& m = f.metrics;
  const bool is_layer_selected = layer == f.pending.full_model->experiment.layer;
  const float width = m.px(76), height = t.map;
  if (is_layer_selected)
    draw_rect({at.x - m.px(10), at.y}, {at.x - m.px(8), at.y + height}, f.palette.selection);
  platform::move_to(at);
  const float named_height = parts.empty() ? height : m.px(44);  // above what it adds to the residual stream
  if (hit_area(("layer " + std::to_string(layer)).c_str(), {width, named_height}))
    f.commands.add(ShowLayer{layer});
  f.landmarks.mark_item("layers/layer/" + std::to_string(layer));
  const std::string name = (t.is_small ? "" : "layer ") + std::to_string(layer);
  const float named = draw_text(f.fonts.sans15, {at.x, at.y + m.px(7)}, Align::left_middle,
                                is_layer_selected ? f.palette.text : f.palette.dim, name);
  if (f.pending.full_model->experiment.layers.contains(layer)) {
    const float left = at.x + named + m.px(6);
    draw_rect({left, at.y + m.px(4)}, {left + m.px(6), at.y + m.px(10)}, f.palette.accent);
  }
  const Prediction* next = f.pending.reading->prediction();
  if (f.pending.full_model->experiment.first) return draw_layer_differences(f, layer, at, width, height);
  if (!next || layer >= next->lens.size()) return;
  const float lens = draw_lens(f, *next, layer, {at.x, at.y + m.px(27)}, width);
  const double end = stream_scale(parts);
  const bool is_small = height<m.px(stream_height), has_two_lenses = lens> at.y + m.px(27);
  float y = lens + m.px(is_small ? 20 : has_two_lenses ? 24 : 30);
  for (const StreamPart& part : parts) {
    if (!part.addition || part.addition->layer != layer) continue;
    if (is_small && y + m.px(4) > at.y + height + t.bar_gap + t.bar) return;
    draw_stream_part(f, part, end, {at.x, y}, width, is_small);
    y += m.px(is_small ? 9 : has_two_lenses ? 32 : 36);
  }
}

/// Returns the sources of the pinned score to which arrows point, or nullptr.
const core::circuits::ScoreSources* shown_sources(const Frame& frame) {
  const auto& pinned = frame.displayed.selection.pinned;
  if (!pinned || !frame.pending.layers->shows_sources || frame.pending.full_model->experiment.first)
    return nullptr;
  const auto* of = frame.pending.reading->sources(*frame.pending.full_model, *pinned);
  return of && of->has_totals ? of : nullptr;
}

/// Draws arrows from the heads with the largest totals to the head of the pinned score, while its sources are
/// shown; corner_of returns the corner of a map.
template <class CornerOf>
void draw_source_arrows(const Frame& frame, float map, const CornerOf& corner_of) {
  constexpr std::size_t n_arrows = 3;
  const auto* of = shown_sources(frame);
  if (!of) return;
  const auto& pinned = frame.displayed.selection.pinned;
  std::vector<core::circuits::ScoreSource> heads;
  std::ranges::copy_if(of->sources, std::back_inserter(heads),
                       [](const auto& source) { return source.head.has_value(); });
  std::ranges::stable_sort(heads, std::greater<>(),
                           [](const auto& source) { return std::abs(source.total); });
  if (heads.size() > n_arrows) heads.resize(n_arrows);
  const ImVec2 target = corner_of(frame.pending.full_model->layer, pinned->head);
  const ImVec2 to{target.x + map / 2, target.y};
  for (const auto& source : heads) {
    const ImVec2 corner = corner_of(source.head->first, source.head->second);
    const ImVec2 from{corner.x + map / 2, corner.y + map};
    const double share = std::abs(source.total) / std::abs(heads.front().total);
    const ImU32 ink = packed(render::color_at(frame.displayed.look.colors.diverging, frame.palette.dark,
                                              source.total > 0 ? 0.9 : 0.1),
                             0.85f);
    const float length = std::hypot(to.x - from.x, to.y - from.y), head = frame.metrics.px(8);
    const ImVec2 along{(to.x - from.x) / length, (to.y - from.y) / length};
    const ImVec2 base{to.x - along.x * head, to.y - along.y * head};
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddLine(from, base, ink, frame.metrics.px(1 + 3 * static_cast<float>(share)));
    list->AddTriangleFilled({base.x - along.y * head / 2, base.y + along.x * head / 2},
                            {base.x + along.y * head / 2, base.y - along.x * head / 2}, to, ink);
  }
}

/// Writer of the legend, from left to right while there is room.
struct Legend {
  const Frame& frame;
  float x, right, middle;

  void words(const std::string& text, Rgb color) {
    x += draw_text(frame.fonts.sans13, {x, middle}, Align::left_middle, color, text) + frame.metrics.px(22);
  }
  bool has_room(const std::string& text, float more) const {
    return x + text_width(frame.fonts.sans13, text) + frame.metrics.px(more) <= right;
  }
  void scale(core::color::ColorMap map, const std::string& low, const std::string& high,
             const std::string& text) {
    const auto& f = frame;
    const float width = f.metrics.px(66);
    if (!has_room(text, 130)) return;
    x += draw_text(f.fonts.mono12, {x, middle}, Align::left_middle, f.palette.dim, low) + f.metrics.px(6);
    draw_color_map(f, {x, middle - f.metrics.px(3)}, {x + width, middle + f.metrics.px(3)}, map);
    x += width + f.metrics.px(6);
    x += draw_text(f.fonts.mono12, {x, middle}, Align::left_middle, f.palette.dim, high) + f.metrics.px(8);
    words(text, f.palette.faint);
  }
};

void draw_effects_progress(Legend& legend, const TextReading& now) {
  const Frame& frame = legend.frame;
  const HeadEffects& effects = frame.pending.reading->effects();
  std::size_t n_heads = 0;
  for (const auto& layer : now.layers) n_heads += layer->heads.size();
  n_heads -= std::min(n_heads, now.experiment.heads_off.size());
  if (effects.n_known() >= n_heads) return;
  const std::string words = fmt::format("not computed: {} of {}", n_heads - effects.n_known(), n_heads);
  if (!legend.has_room(words, 90)) return;
  draw_dots(frame, {legend.x, legend.middle - 1}, legend.x + frame.metrics.px(24));
  legend.x += frame.metrics.px(30);
  legend.words(words, frame.palette.faint);
  legend.x -= frame.metrics.px(12);
  const bool is_running = effects.is_sweeping();
  const std::string action = is_running ? "Stop" : "Compute";
  if (link(frame, "layers/sweep", frame.fonts.sans13, {legend.x, legend.middle}, Align::left_middle,
           frame.palette.accent, action))
    frame.commands.add(SweepHeads{!is_running});
  legend.x += text_width(frame.fonts.sans13, action) + frame.metrics.px(22);
}

void draw_legend(const Frame& frame, const TextReading& now, bool has_outlined_role, ImVec2 at, float width) {
  const FullModelReading& reading = *frame.pending.reading;
  const float middle = std::round(at.y + frame.metrics.px(legend_height) / 2);
  Legend legend{frame, at.x, at.x + width, middle};
  if (!reading.matches(*frame.pending.full_model) && !reading.is_busy())
    return legend.words("The last edit could not be computed: these maps are older. Undo it.",
                        frame.palette.status.bad);
  const LayerMaps maps = frame.pending.layers->maps;
  const bool changes = maps == LayerMaps::change,
             compares = frame.pending.full_model->experiment.first.has_value();
  const auto& colors = frame.displayed.look.colors;
  const std::string pooled = now.block == 1 ? "" : fmt::format(", largest of {} × {}", now.block, now.block);
  if (const BothReadings& both = *reading.readings();
      compares && maps != LayerMaps::weights && both.now->block != 1 &&
      !core::transformer::is_one_by_one(alignment_of(both), both.before->pass->ids.size()))
    return legend.words("Maps of prompts of other lengths are too large to be aligned: weight in B.",
                        frame.palette.status.warning);
  const double largest = largest_change(frame);
  const std::string end_words = largest == 1 ? "1" : fixed(largest, 2);
  legend.scale(changes ? colors.diverging : colors.sequential, changes ? "−" + end_words : "0",
               changes ? "+" + end_words : "1",
               (changes && compares         ? "weight in B − weight in A"
                : changes                   ? "weight, change"
                : maps == LayerMaps::before ? compares ? "weight in A" : "weight before the edits"
                : compares                  ? "weight in B"
                                            : "weight") +
                   pooled);
  if (compares) {
    const std::string bars = "bar: recovered alone, ±0.5";
    if (legend.has_room(bars, 30)) legend.words(bars, frame.palette.faint);
    const std::string corner = changes ? "corner: largest difference" : "corner: entropy, bits";
    if (legend.has_room(corner, 0))
      draw_text(frame.fonts.sans13, {at.x + width, middle}, Align::right_middle, frame.palette.faint, corner);
    return;
  }
  const Prediction* next = reading.prediction();
  const bool effects = frame.pending.layers->shows_effects;
  const double end = !next ? 0 : effects ? reading.effects().largest() : next->max_attribution;
  if (end > 0) {
    const std::string number = fixed(end, end >= 10    ? 0
                                          : end >= 0.1 ? 1
                                                       : 1 - static_cast<int>(std::floor(std::log10(end))));
    legend.scale(colors.diverging, "−" + number, "+" + number,
                 (effects ? "ablation effect on " : "to the logit of ") + quoted_token(next->chosen.text));
  }
  if (effects && next) draw_effects_progress(legend, now);
  if (shown_sources(frame)) {
    const CellRef& cell = *frame.displayed.selection.pinned;
    const std::string words = fmt::format("arrows: into score {} → {} of head {}.{}", cell.row, cell.column,
                                          frame.pending.full_model->layer, cell.head);
    if (legend.has_room(words, 0)) legend.words(words, frame.palette.faint);
  }
  if (reading.scan().is_of(*frame.pending.full_model)) {
    const std::string words = "roles over " + texts_words(*reading.scan().table());
    if (legend.has_room(words, 30)) legend.words(words, frame.palette.faint);
  }
  if (has_outlined_role && legend.has_room("measured before the edits", 30)) {
    outline({legend.x, middle - frame.metrics.px(5)},
            {legend.x + frame.metrics.px(20), middle + frame.metrics.px(6)}, frame.palette.faint, 1);
    legend.x += frame.metrics.px(26);
    legend.words("measured before the edits", frame.palette.faint);
  }
  if (const auto parts = stream_parts(frame); !parts.empty()) {
    const std::string words = "stream: ±" + core::text::number_text(stream_scale(parts));
    if (legend.has_room(words, 30)) legend.words(words, frame.palette.faint);
  }
  const std::string entropies = "corner: entropy, bits";
  if (legend.has_room(entropies, 0))
    draw_text(frame.fonts.sans13, {at.x + width, middle}, Align::right_middle, frame.palette.faint,
              entropies);
}

}  // namespace

void ask_sources(const Frame& frame, std::size_t layer, const CellRef& weight) {
  frame.commands.add(ShowLayer{layer}, AskSources{weight});
}

double largest_change(const Frame& frame) {
  constexpr std::size_t max_numbers = 1 << 18;  // in a frame
  const BothReadings* both = frame.pending.reading->readings();
  if (!frame.pending.full_model->experiment.first || !both) return 1;
  double largest = 0;
  std::size_t n = 0;
  for (std::size_t l = 0; l < std::min(both->now->layers.size(), both->before->layers.size()); ++l) {
    const auto &now = both->now->layers[l]->heads, &before = both->before->layers[l]->heads;
    for (std::size_t h = 0; h < std::min(now.size(), before.size()); ++h) {
      if (arma::size(now[h].map) != arma::size(before[h].map) || (n += now[h].map.n_elem) > max_numbers)
        return 1;
      largest = std::max(largest, arma::abs(now[h].map - before[h].map).max());
    }
  }
  return largest > 0 ? largest : 1;
}

std::vector<StreamPart> stream_parts(const Frame& frame) {
  const Prediction* next = frame.pending.reading->prediction();
  if (!next || !next->attribution || frame.pending.full_model->experiment.first) return {};
  const core::transformer::LogitAttributions& of = *next->attribution;
  const std::size_t head = frame.pending.look.head;
  std::vector<StreamPart> parts{{"embedding", of.embedding, {}}};
  for (std::size_t l = 0; l < of.mlps.size(); ++l) {
    const double heads = std::accumulate(of.heads[l].begin(), of.heads[l].end(), of.output_biases[l]);
    parts.push_back({fmt::format("heads {}", l), heads, StreamAddition{l, false, head}});
    parts.push_back({fmt::format("MLP {}", l), of.mlps[l], StreamAddition{l, true, head}});
  }
  parts.push_back({"last norm", of.constant, {}});
  return parts;
}

double stream_scale(std::span<const StreamPart> parts) {
  double largest = 0;
  for (const StreamPart& part : parts) largest = std::max(largest, std::abs(part.value));
  double end = 1;
  for (std::size_t k = 0; end < largest; ++k) end *= k % 3 == 1 ? 2.5 : 2;
  return end;
}

bool is_selected(const Frame& frame, const StreamAddition& addition) {
  return frame.pending.layers->addition == addition &&
         frame.pending.full_model->experiment.layer == addition.layer;
}

void select(const Frame& frame, const StreamAddition& addition) {
  if (is_selected(frame, addition)) {
    frame.commands.add(set<&LayersLook::addition>(std::nullopt));
    return;
  }
  frame.commands.add(ShowLayer{addition.layer});
  frame.commands.add(set<&LayersLook::addition>(addition));
}

float draw_named_head(const Frame& frame, std::size_t layer, std::size_t head, ImVec2 at, float width) {
  constexpr float largest_cell = 20;
  const TextReading& now = *frame.pending.reading->readings()->now;
  const std::size_t n = now.names.size();
  const auto cells = static_cast<float>(n);
  LayersTiling t;
  for (float map = std::floor(std::min(width, cells * frame.metrics.px(largest_cell))); map > 0; --map) {
    if (map > cells && map != std::floor(map / cells) * cells) continue;  // whole cells
    t = tiling_of(frame.metrics, map, 0, n, false);
    if (t.rows.room + map <= width) break;
  }
  const ImVec2 corner{std::round(at.x + t.rows.room), std::round(at.y + t.columns.room)};
  draw_column_tokens(frame, t, now, corner, frame.palette.background.panel);
  draw_row_tokens(frame, t, now, corner, frame.palette.background.panel);
  draw_head_alone(frame, t, layer, head, corner);
  return t.columns.room + t.map;
}

void draw_layers(const Frame& frame) {
  if (!frame.pending.full_model || !frame.pending.reading->readings()) {
    ImGui::TextUnformatted("The prompt is being read…");
    return;
  }
  const TextReading& now = *frame.pending.reading->readings()->now;
  const std::size_t n_layers = now.layers.size();
  std::size_t n_heads = 1;
  bool has_outlined_role = false;
  for (std::size_t l = 0; l < n_layers; ++l) {
    n_heads = std::max(n_heads, now.layers[l]->heads.size());
    for (std::size_t h = 0; now.layers[l]->is_edited && h < now.layers[l]->heads.size(); ++h)
      has_outlined_role = has_outlined_role || role_of(frame, l, h).source == RoleSource::before_edits;
  }
  const ImVec2 origin = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const bool is_presented = frame.displayed.selection.presentation.on;
  const float legend = is_presented ? 0 : frame.metrics.px(legend_height),
              scrollbar = ImGui::GetStyle().ScrollbarSize;
  const float height = room.y - legend;
  const float width = room.x - frame.metrics.px(4);  // the frame of a map is outside of it
  LayersTiling t = tile_layers(frame.metrics, {width, height}, n_layers, n_heads, now.names.size());
  if (t.height(n_layers) > height)  // it scrolls
    t = tile_layers(frame.metrics, {width - scrollbar, height}, n_layers, n_heads, now.names.size());
  platform::begin_child("maps", {room.x, height}, false, ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float left = start.x, view_left = origin.x, top = start.y + t.first_row();
  const ImVec2 clip_min = ImGui::GetWindowPos(),
               clip_max(clip_min.x + ImGui::GetWindowWidth(), clip_min.y + ImGui::GetWindowHeight());
  const auto first_row = static_cast<std::size_t>(std::max(0.0f, (clip_min.y - top) / t.pitch()));
  const auto first_column =
      static_cast<std::size_t>(std::max(0.0f, (clip_min.x - left - t.rows.room) / (t.map + t.gap)));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({view_left + t.labels - frame.metrics.px(8), clip_min.y}, clip_max, true);
  for (std::size_t h = first_column; h < n_heads; ++h)
    draw_column_tokens(frame, t, now, {std::round(left + t.column(h)), std::round(top)},
                       frame.palette.background.back);
  for (std::size_t l = first_row; l < n_layers; ++l) {
    const float y = std::round(top + static_cast<float>(l) * t.pitch());
    if (y - t.header > clip_max.y) break;
    if (first_column == 0)
      draw_row_tokens(frame, t, now, {std::round(left + t.column(0)), y}, frame.palette.background.back);
    for (std::size_t h = first_column; h < n_heads; ++h) {
      const float x = std::round(left + t.column(h));
      if (x > clip_max.x) break;
      draw_head_map(frame, t, l, h, {x, y});
    }
  }
  draw_source_arrows(frame, t.map, [&](std::size_t l, std::size_t h) {
    return ImVec2(std::round(left + t.column(h)), std::round(top + static_cast<float>(l) * t.pitch()));
  });
  if (t.is_small)
    for (std::size_t h = first_column; h < n_heads; ++h) {
      const bool is_selected = h == frame.pending.look.head;
      draw_text(frame.fonts.mono12, {std::round(left + t.column(h) + t.map / 2), start.y + t.top / 2},
                Align::middle, is_selected ? frame.palette.text : frame.palette.dim, std::to_string(h));
    }
  list->PopClipRect();
  if (t.is_small)
    draw_text(frame.fonts.sans13, {view_left, start.y + t.top / 2}, Align::left_middle, frame.palette.faint,
              "layer");
  const std::vector<StreamPart> parts = stream_parts(frame);
  const float margin = view_left - frame.metrics.px(12);
  list->PushClipRect({margin, clip_min.y}, clip_max);
  if (!parts.empty()) {
    const float embed = top - frame.metrics.px(45);
    draw_stream_line(frame, view_left, t.is_small ? top : embed + frame.metrics.px(14),
                     top + static_cast<float>(n_layers) * t.pitch() - t.header);
    if (!t.is_small)
      draw_stream_part(frame, parts.front(), stream_scale(parts), {view_left, embed}, frame.metrics.px(76),
                       false);
  }
  for (std::size_t l = first_row; l < n_layers; ++l) {  // labels do not scroll sideways
    const float y = std::round(top + static_cast<float>(l) * t.pitch());
    if (y > clip_max.y) break;
    draw_layer_label(frame, t, l, parts, {view_left, y});
  }
  list->PopClipRect();
  reserve_room(start, {t.width(n_heads), t.height(n_layers)});
  ImGui::EndChild();
  if (!is_presented) draw_legend(frame, now, has_outlined_role, {origin.x, origin.y + height}, room.x);
}

}  // namespace app::panels
