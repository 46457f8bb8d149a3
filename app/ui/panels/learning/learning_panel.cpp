#include "app/ui/panels/learning/learning_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "app/session/learning.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {
namespace {

namespace training = core::training;
using training::Measurement;
using training::TrainingRun;

// At scale 1.
constexpr float block_width = 340, wide_room = 1000, header = 21, layer_labels = 62, letter_pitch = 12;

/// The displayed run, of which everything is drawn up to the newest step, and the displayed snapshot.
struct ShownRun {
  const Frame& frame;
  const Learning& learning;
  const TrainingRun& run;
  std::size_t step;  ///< of the snapshot

  const training::Task& task() const { return run.data().task(); }
  /// Returns the last measurement up to a step, or nullptr.
  const Measurement* measured(std::size_t at) const {
    const auto& all = run.measurements();
    const auto after = std::ranges::upper_bound(all, at, {}, &Measurement::step);
    return after == all.begin() ? nullptr : &*(after - 1);
  }
};

std::optional<ShownRun> shown_run(const Frame& frame) {
  const Learning* learning = frame.pending.learning;
  if (!learning || !learning->run()) return std::nullopt;
  const std::size_t index = learning->shown(*frame.pending.learning_look);
  return ShownRun{frame, *learning, *learning->run(), learning->snapshots()[index]->step};
}

void seek(const Frame& frame, std::size_t step) {
  const bool is_newest = step >= frame.pending.learning->snapshots().back()->step;
  frame.commands.add(set<&LearningLook::plays>(false),
                     set<&LearningLook::shown>(is_newest ? std::nullopt : std::optional(step)));
}

/// Requests the next steps of a run that plays, when they are due.
void train_on(const Frame& frame) {
  const Learning& learning = *frame.pending.learning;
  const LearningLook& look = *frame.pending.learning_look;
  if (!look.plays || !learning.run() || learning.n_requested() > 0) return;
  const LearningPace pace = learning.pace(look, frame.settings.reduce_motion);
  constexpr double early = 0.002;  // a frame comes a little before or after its time
  if (learning.seconds_since_request() + early >= pace.seconds)
    frame.commands.add(StepLearning{pace.n_steps});
}

// --- Curves and snapshots ---

/// Returns the end of the axis of steps: that of the setup, or the next of 1,000, 3,000, 10,000 …
std::size_t last_step(const ShownRun& s) {
  std::size_t end = s.learning.setup().n_steps, next = 1000;
  for (bool is_one = true; end < s.run.n_steps(); is_one = !is_one) {
    end = std::max(end, next);
    next = is_one ? next * 3 : next / 3 * 10;
  }
  return std::max<std::size_t>(end, 1);
}

/// A plot over steps.
struct StepPlot {
  Rect box;
  double end, top;  ///< of steps; of the values, from 0
  float x(double step) const {
    return box.min.x + box.width() * static_cast<float>(std::min(step / end, 1.0));
  }
  float y(double value) const {
    return box.max.y - box.height() * static_cast<float>(std::clamp(value / top, 0.0, 1.0));
  }
};

void draw_ground(const ShownRun& s, const StepPlot& plot, double tick) {
  const Frame& frame = s.frame;
  draw_rect(plot.box.min, plot.box.max, frame.palette.background.panel);
  for (double value = 0; value <= plot.top * 1.0001; value += tick) {
    const float y = std::round(plot.y(value));
    draw_rect({plot.box.min.x, y}, {plot.box.max.x, y + 1}, frame.palette.line);
    draw_text(frame.fonts.mono12, {plot.box.min.x - frame.metrics.px(7), y}, Align::right_middle,
              frame.palette.faint, fixed(value, tick < 1 ? 1 : 0));
  }
  for (const training::Milestone& milestone : s.run.milestones()) {
    const float x = std::round(plot.x(static_cast<double>(milestone.step)));
    draw_rect({x, plot.box.min.y}, {x + 1, plot.box.max.y}, frame.palette.strong_line);
  }
}

void draw_cursor(const ShownRun& s, const StepPlot& plot) {
  const float x = std::round(plot.x(static_cast<double>(s.step)));
  draw_rect({x, plot.box.min.y}, {x + 1, plot.box.max.y}, s.frame.palette.selection);
}

/// Draws a line through points; of those in one pixel, their mean.
void draw_line(const StepPlot& plot, std::size_t n,
               const std::function<std::pair<double, double>(std::size_t)>& at, Rgb ink, float thickness) {
  std::vector<ImVec2> points;
  float sum = 0;
  int count = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const auto [step, value] = at(k);
    const float x = std::round(plot.x(step));
    if (points.empty() || x > points.back().x) points.emplace_back(x, 0.0f), sum = 0, count = 0;
    sum += plot.y(value), ++count;
    points.back().y = sum / static_cast<float>(count);
  }
  if (points.size() > 1)
    ImGui::GetWindowDrawList()->AddPolyline(points.data(), static_cast<int>(points.size()), packed(ink), 0,
                                            thickness);
}

/// Draws the share of a head's attention that goes to a pattern, over the steps.
void draw_pattern(const ShownRun& s, const Rect& box, std::size_t layer, std::size_t head,
                  std::size_t pattern) {
  const Frame& frame = s.frame;
  const auto& all = s.run.measurements();
  const StepPlot plot{box, static_cast<double>(last_step(s)), 1};
  draw_rect(box.min, box.max, frame.palette.background.panel);
  const float half = std::round(plot.y(training::formed));
  for (float x = box.min.x; x < box.max.x; x += frame.metrics.px(6))
    draw_rect({x, half}, {std::min(x + frame.metrics.px(2), box.max.x), half + 1}, frame.palette.faint);
  const bool has_formed = !all.empty() && all.back().patterns[pattern][layer][head] > training::formed;
  draw_line(
      plot, all.size(),
      [&](std::size_t k) {
        return std::pair(static_cast<double>(all[k].step), all[k].patterns[pattern][layer][head]);
      },
      has_formed ? frame.palette.text : frame.palette.dim, 1.5f);
  draw_cursor(s, plot);
}

// --- Maps of heads ---

/// Returns the ablated heads of a layer in a list by layers that may be shorter.
bool is_off(const std::vector<std::vector<std::size_t>>& heads_off, std::size_t layer, std::size_t head) {
  return layer < heads_off.size() && std::ranges::count(heads_off[layer], head) > 0;
}

/// Places of the maps, in pixels.
struct MapsLayout {
  ImVec2 origin;
  float cell, map, labels, letters, gap_x, gap_y;
  std::size_t lanes;
  float curves = 0;  ///< width of the curves beside a map, or 0
  ImVec2 corner(std::size_t layer, std::size_t head, float above) const {
    return {std::round(origin.x + labels + static_cast<float>(head) * (map + gap_x)),
            std::round(origin.y + above + static_cast<float>(layer) * (above + map + gap_y))};
  }
};

/// Returns the largest maps of whole pixels a cell that fit; letters take as many lanes as they need.
MapsLayout lay_out_maps(const Metrics& m, ImVec2 at, ImVec2 room, std::size_t n_layers, std::size_t n_heads,
                        std::size_t n_tokens) {
  const auto heads = static_cast<float>(n_heads), layers = static_cast<float>(n_layers),
             tokens = static_cast<float>(n_tokens);
  for (float cell = m.px(26);; --cell) {
    const auto lanes = static_cast<std::size_t>(std::ceil(m.px(letter_pitch) / cell));
    MapsLayout l{at, cell, cell * tokens, 0, m.px(13) * static_cast<float>(lanes), m.px(20), m.px(8), lanes};
    l.labels = m.px(layer_labels) + l.letters;
    const float above = m.px(header) + l.letters;
    const bool fits = l.labels + heads * l.map + (heads - 1) * l.gap_x <= room.x &&
                      layers * (above + l.map) + (layers - 1) * l.gap_y <= room.y;
    if (!fits && cell > 2) continue;
    const float beside = (room.x - l.labels) / heads - l.map - m.px(12);
    if (beside >= m.px(88))
      l.curves = std::min(beside - m.px(16), m.px(140)), l.gap_x = m.px(28) + l.curves;
    else if (heads > 1)
      l.gap_x = std::clamp((room.x - l.labels - heads * l.map) / (heads - 1), m.px(6), m.px(64));
    return l;
  }
}

/// Whether a head was measured: the picture may still be of a run with more heads.
bool has_patterns(const Measurement* measured, std::size_t layer, std::size_t head) {
  return measured && !measured->patterns.empty() && layer < measured->patterns[0].size() &&
         head < measured->patterns[0][layer].size();
}

/// Returns the pattern that a head shows most, and its share; the first pattern for a task with one.
std::pair<std::size_t, double> main_pattern(const Measurement& measured, std::size_t layer,
                                            std::size_t head) {
  std::pair<std::size_t, double> best{0, 0};
  for (std::size_t p = 0; p < measured.patterns.size(); ++p)
    if (measured.patterns[p][layer][head] > best.second) best = {p, measured.patterns[p][layer][head]};
  return best;
}

void draw_letters(const Frame& frame, const MapsLayout& l, const LearnedPicture& picture, ImVec2 corner,
                  bool has_rows) {
  const auto lane = [&](std::size_t i) { return frame.metrics.px(13) * static_cast<float>(i % l.lanes); };
  for (std::size_t i = 0; i < picture.tokens.size(); ++i) {
    const float middle = (static_cast<float>(i) + 0.5f) * l.cell;
    const std::string letter = visible_token(picture.tokens[i]);
    draw_text(frame.fonts.sans12, {corner.x + middle, corner.y - frame.metrics.px(8) - lane(i)},
              Align::middle, frame.palette.dim, letter);
    if (has_rows)
      draw_text(frame.fonts.sans12, {corner.x - frame.metrics.px(9) - lane(i), corner.y + middle},
                Align::middle, frame.palette.dim, letter);
  }
}

/// Returns the picture of A if the maps are to show the change since it, and it has the same heads.
const LearnedPicture* shown_baseline(const ShownRun& s, const LearnedPicture& picture) {
  const LearnedPicture* a = s.learning.baseline_picture();
  const bool fits = a && a->tokens == picture.tokens && a->weights.size() == picture.weights.size() &&
                    a->weights.front().size() == picture.weights.front().size();
  return fits && s.frame.pending.learning_look->shows_change ? a : nullptr;
}

void draw_head(const ShownRun& s, const MapsLayout& l, const LearnedPicture& picture, std::size_t layer,
               std::size_t head, ImVec2 corner) {
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  const std::string name = fmt::format("{}.{}", layer, head);
  const ImVec2 end{corner.x + l.map, corner.y + l.map};
  render::HeatmapPicture drawn;
  drawn.place = "learn/" + name;
  const LearnedPicture* a = shown_baseline(s, picture);
  const arma::mat numbers =
      a ? arma::mat(picture.weights[layer][head] - a->weights[layer][head]) : picture.weights[layer][head];
  drawn.cells.numbers = &numbers;
  if (!picture.visible.empty()) drawn.cells.visible = &picture.visible;
  drawn.cells.version = s.learning.picture_version();
  drawn.map = a ? frame.displayed.look.colors.diverging : frame.displayed.look.colors.sequential;
  drawn.dark = frame.palette.dark;
  drawn.low = a ? -1 : 0, drawn.high = 1;
  drawn.width = drawn.height = static_cast<int>(l.map);
  const auto n = static_cast<double>(picture.tokens.size());
  drawn.part = {0, 0, n, n};
  drawn.gaps = l.cell >= m.px(8);
  drawn.phase = static_cast<int>(corner.x + corner.y) % 6;
  ImGui::GetWindowDrawList()->AddImage(frame.painter.paint(drawn), corner, end);
  const bool is_ablated = is_off(picture.heads_off, layer, head);
  if (is_ablated) draw_ablated(frame, corner, end);
  const bool is_selected = frame.pending.learning_look->head == std::pair(layer, head);
  if (is_selected) outline({corner.x - 2, corner.y - 2}, {end.x + 2, end.y + 2}, frame.palette.selection, 2);
  const float middle = corner.y - l.letters - m.px(header / 2);
  const float x = corner.x +
                  draw_text(frame.fonts.mono13, {corner.x, middle}, Align::left_middle,
                            is_selected ? frame.palette.text : frame.palette.dim, name) +
                  m.px(8);
  if (const Measurement* measured = s.measured(s.step); has_patterns(measured, layer, head)) {
    const auto [pattern, share] = main_pattern(*measured, layer, head);
    constexpr double least_share = 0.3;
    const std::string words = is_ablated ? "ablated"
                              : share < least_share
                                  ? "other"
                                  : fmt::format("{} {}", s.task().patterns[pattern], fixed(share, 2));
    const std::string text = shortened(frame.fonts.sans12, words, end.x - x);
    const bool has_formed = share > training::formed && !is_ablated;
    if (has_formed)
      draw_rect({x - m.px(5), middle - m.px(8)},
                {x + text_width(frame.fonts.sans12, text) + m.px(5), middle + m.px(8)},
                frame.palette.control.active, m.px(3));
    draw_text(frame.fonts.sans12, {x, middle}, Align::left_middle,
              has_formed ? frame.palette.text : frame.palette.dim, text);
  }
  platform::move_to({corner.x, middle - m.px(8)});
  if (hit_area(drawn.place.c_str(), {l.map, end.y - middle + m.px(8)}))
    frame.commands.add(set<&LearningLook::head>(std::pair(layer, head)));
  frame.landmarks.mark(drawn.place, corner, end);
  draw_focus(frame, corner, end);
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (mouse.y < corner.y) return;
  const auto index = [&](float at) {
    return std::min(static_cast<std::size_t>(std::max(0.0f, at / l.cell)), picture.tokens.size() - 1);
  };
  const std::size_t row = index(mouse.y - corner.y), column = index(mouse.x - corner.x);
  ImGui::SetTooltip("Head %s: %zu %s → %zu %s  %s", name.c_str(), row,
                    quoted_token(picture.tokens[row]).c_str(), column,
                    quoted_token(picture.tokens[column]).c_str(), fixed(numbers(row, column), 4).c_str());
}

/// Draws the patterns of a head over the steps, at the right of its map.
void draw_curves(const ShownRun& s, const MapsLayout& l, std::size_t layer, std::size_t head, ImVec2 corner) {
  const Measurement* now = s.measured(s.step);
  if (l.curves == 0 || !has_patterns(now, layer, head)) return;
  const Metrics& m = s.frame.metrics;
  const auto n = static_cast<float>(now->patterns.size());
  const float left = corner.x + l.map + m.px(12), pitch = std::min(l.map / n, m.px(100));
  for (std::size_t p = 0; p < now->patterns.size(); ++p) {
    const float y = corner.y + pitch * static_cast<float>(p);
    const std::string share = fixed(now->patterns[p][layer][head], 2);
    draw_text(s.frame.fonts.sans12, {left, y + m.px(7)}, Align::left_middle, s.frame.palette.dim,
              shortened(s.frame.fonts.sans12, s.task().patterns[p], l.curves - m.px(34)));
    draw_text(s.frame.fonts.mono12, {left + l.curves, y + m.px(7)}, Align::right_middle, s.frame.palette.dim,
              share);
    draw_pattern(s, {{left, y + m.px(17)}, {left + l.curves, y + pitch - m.px(8)}}, layer, head, p);
  }
}

void draw_maps(const ShownRun& s, ImVec2 at, ImVec2 room) {
  const LearnedPicture* picture = s.learning.picture();
  if (!picture) return;
  const Frame& frame = s.frame;
  const std::size_t n_layers = picture->weights.size(), n_heads = picture->weights.front().size();
  const MapsLayout l = lay_out_maps(frame.metrics, at, room, n_layers, n_heads, picture->tokens.size());
  const float above = frame.metrics.px(header) + l.letters;
  for (std::size_t layer = 0; layer < n_layers; ++layer) {
    draw_text(frame.fonts.sans15, {at.x, l.corner(layer, 0, above).y + frame.metrics.px(8)},
              Align::left_middle,
              frame.pending.learning_look->head.first == layer ? frame.palette.text : frame.palette.dim,
              fmt::format("layer {}", layer));
    for (std::size_t head = 0; head < n_heads; ++head) {
      const ImVec2 corner = l.corner(layer, head, above);
      draw_letters(frame, l, *picture, corner, head == 0);
      draw_head(s, l, *picture, layer, head, corner);
      draw_curves(s, l, layer, head, corner);
    }
  }
}

/// Draws the points of a curve without a line, one in each two pixels.
void draw_points(const Frame& frame, const StepPlot& plot, std::size_t n,
                 const std::function<std::pair<double, double>(std::size_t)>& at, Rgb ink) {
  float last = -10;
  const float half = frame.metrics.px(1);
  for (std::size_t k = 0; k < n; ++k) {
    const auto [step, value] = at(k);
    const float x = std::round(plot.x(step)), y = std::round(plot.y(value));
    if (x < last + 2 * half + 1) continue;
    draw_rect({x - half, y - half}, {x + half, y + half}, ink);
    last = x;
  }
}

/// Draws the name of a plot and the legend of its two curves with their values at the displayed step.
void draw_legend(const ShownRun& s, ImVec2 at, bool is_above, const char* title, double train, double test) {
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  float x = at.x, y = at.y + m.px(8);
  const float title_width =
      draw_text(frame.fonts.sans15, {x, y}, Align::left_middle, frame.palette.text, title);
  if (is_above)
    x += title_width + m.px(18);
  else
    y += m.px(20);
  for (const bool is_test : {false, true}) {
    const Rgb ink = is_test ? frame.palette.text : frame.palette.dim;
    if (is_test)
      draw_rect({x, y - 1}, {x + m.px(12), y + 1}, ink);
    else
      for (float k = 0; k < 3; ++k)
        draw_rect({x + m.px(5) * k, y - m.px(1)}, {x + m.px(5) * k + m.px(2), y + m.px(1)}, ink);
    const float words = x + m.px(17);
    draw_text(frame.fonts.sans12, {words, y}, Align::left_middle, ink, is_test ? "test" : "train");
    draw_text(frame.fonts.mono12, {words + m.px(30), y}, Align::left_middle, ink,
              fixed(is_test ? test : train, 2));
    if (is_above)
      x += m.px(90);
    else
      y += m.px(16);
  }
}

void draw_loss(const ShownRun& s, const Rect& box, double end) {
  const auto& all = s.run.measurements();
  double top = 1;
  for (const Measurement& m : all) top = std::max(top, m.fresh_loss);
  for (const double loss : s.run.losses()) top = std::max(top, loss);
  const StepPlot plot{box, end, top * 1.05};
  draw_ground(s, plot, top > 6 ? std::ceil(top / 4) : 1);
  const double guess = std::log(static_cast<double>(s.run.data().letters().size()));
  const Frame& frame = s.frame;
  const float y = std::round(plot.y(guess));
  for (float x = box.min.x; x < box.max.x; x += frame.metrics.px(6))
    draw_rect({x, y}, {std::min(x + frame.metrics.px(3), box.max.x), y + 1}, frame.palette.dim);
  draw_text(frame.fonts.sans12, {box.max.x - frame.metrics.px(6), y + frame.metrics.px(9)},
            Align::right_middle, frame.palette.dim,
            fmt::format("guessing: ln {} = {}", s.run.data().letters().size(), fixed(guess, 2)));
  const auto& losses = s.run.losses();
  draw_points(
      frame, plot, losses.size(), [&](std::size_t k) { return std::pair(static_cast<double>(k), losses[k]); },
      frame.palette.dim);
  draw_line(
      plot, all.size(),
      [&](std::size_t k) { return std::pair(static_cast<double>(all[k].step), all[k].fresh_loss); },
      frame.palette.text, frame.metrics.px(2));
  draw_cursor(s, plot);
  frame.landmarks.mark("learn/loss", box.min, box.max);
}

void draw_accuracy(const ShownRun& s, const Rect& box, double end) {
  const auto& all = s.run.measurements();
  const StepPlot plot{box, end, 1};
  draw_ground(s, plot, box.height() > s.frame.metrics.px(90) ? 0.5 : 1);
  draw_points(
      s.frame, plot, all.size(),
      [&](std::size_t k) { return std::pair(static_cast<double>(all[k].step), all[k].training_accuracy); },
      s.frame.palette.dim);
  draw_line(
      plot, all.size(),
      [&](std::size_t k) { return std::pair(static_cast<double>(all[k].step), all[k].accuracy); },
      s.frame.palette.text, s.frame.metrics.px(2));
  draw_cursor(s, plot);
  s.frame.landmarks.mark("learn/accuracy", box.min, box.max);
}

/// Draws the slider over the kept snapshots, ticks where something was there first, and the steps.
void draw_timeline(const ShownRun& s, ImVec2 at, float width, double end) {
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  const StepPlot plot{{at, {at.x + width, at.y + m.px(6)}}, end, 1};
  const float middle = at.y + m.px(3), newest = plot.x(static_cast<double>(s.run.n_steps())),
              thumb = plot.x(static_cast<double>(s.step));
  draw_rect(plot.box.min, plot.box.max, frame.palette.control.rest, m.px(3));
  draw_rect(plot.box.min, {newest, plot.box.max.y}, frame.palette.control.active, m.px(3));
  for (const training::Milestone& milestone : s.run.milestones())
    draw_tick(frame, {plot.x(static_cast<double>(milestone.step)), at.y - m.px(9)},
              frame.palette.status.good);
  for (const training::RunChange& change : s.run.changes()) {
    const float x = std::round(plot.x(static_cast<double>(change.step)));
    const auto* toggle = std::get_if<training::HeadToggle>(&change.what);
    if (toggle && !toggle->on)
      draw_cross({x, at.y - m.px(9)}, m.px(4), frame.palette.text, 1.5f);
    else
      draw_rect({x, at.y - m.px(13)}, {x + m.px(2), at.y - m.px(5)}, frame.palette.text);
  }
  if (const auto& a = s.learning.document().baseline) {
    const float x = std::round(plot.x(static_cast<double>(a->step)));
    draw_rect({x - m.px(7), at.y - m.px(18)}, {x + m.px(7), at.y - m.px(4)}, frame.palette.selection,
              m.px(2));
    draw_rect({x, at.y - m.px(4)}, {x + 1, at.y + m.px(6)}, frame.palette.selection);
    draw_text(frame.fonts.sans12, {x, at.y - m.px(11)}, Align::middle, readable_on(frame.palette.selection),
              "A");
  }
  const double rough = end / (width > m.px(500) ? 8 : 4), power = std::pow(10, std::floor(std::log10(rough)));
  const double tick = std::max(1.0, (rough / power > 5 ? 10 : rough / power > 2 ? 5 : 2) * power);
  for (double step = 0; step <= end; step += tick)
    draw_text(frame.fonts.mono12, {plot.x(step), at.y + m.px(20)}, Align::middle, frame.palette.dim,
              count_text(static_cast<std::size_t>(step)));
  platform::move_to({at.x, at.y - m.px(8)});
  hit_area("learn/timeline", {width, m.px(22)});
  frame.landmarks.mark_item("learn/timeline");
  if (ImGui::IsItemActive()) {
    const double share = std::clamp((ImGui::GetIO().MousePos.x - at.x) / width, 0.0f, 1.0f);
    seek(frame, static_cast<std::size_t>(std::lround(share * end)));
  }
  const std::size_t every = s.run.snapshot_interval();
  tooltip((every > 1 ? fmt::format("Every {} steps a snapshot is kept", every)
                     : std::string("Every step is kept")) +
          ": Home shows the first, End the newest, ← and → the next one");
  draw_rect({thumb - m.px(5), middle - m.px(10)}, {thumb + m.px(5), middle + m.px(10)}, frame.palette.accent,
            m.px(2));
  draw_focus(frame, {at.x - 3, middle - m.px(12)}, {at.x + width + 3, middle + m.px(12)});
}

std::string snapshots_text(const ShownRun& s) {
  const auto mb = [](std::size_t bytes) { return fixed(static_cast<double>(bytes) / (1 << 20), 1); };
  return fmt::format("{} snapshots, {} of {} MB", count_text(s.learning.snapshots().size()),
                     mb(s.run.snapshot_bytes()), training::max_snapshot_bytes >> 20);
}

/// Draws a button of an action.
void action_button(const Frame& frame, const char* id, const char* words, bool is_primary = false) {
  const auto all = actions(situation_of(frame));
  const Action& action = *find_action(all, id);
  const std::string why = disabled_reason(action, situation_of(frame)),
                    key = shortcut_text(action, frame.pending, frame.forms.in_browser);
  const std::string help = (action.about.empty() ? action.title : action.about) +
                           (key.empty() ? "" : " (" + key + ")") + (why.empty() ? "" : "\n" + why);
  if (is_primary) {
    ImGui::PushStyleColor(ImGuiCol_Button, vec(frame.palette.accent));
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, vec(frame.palette.accent, 0.9f));
    ImGui::PushStyleColor(ImGuiCol_Text, vec(readable_on(frame.palette.accent)));
  }
  ImGui::BeginDisabled(!why.empty());
  if (button(frame, id, words)) perform(action, situation_of(frame), frame.commands);
  ImGui::EndDisabled();
  if (is_primary) ImGui::PopStyleColor(3);
  tooltip(help);
}

void draw_speed(const Frame& frame) {
  const std::array<std::string, 4> speeds{"1/s", "10/s", "60/s", "max"};
  const auto now = static_cast<std::size_t>(frame.pending.learning_look->speed);
  if (const auto chosen = segmented(frame, "learn/speed", speeds, now))
    frame.commands.add(set<&LearningLook::speed>(static_cast<LearningSpeed>(*chosen)));
}

void draw_transport(const ShownRun& s, ImVec2 at, float width, bool has_two_rows) {
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  platform::move_to(at);
  action_button(frame, "learn/play", frame.pending.learning_look->plays ? "Pause" : "Play", true);
  platform::move_to({at.x + text_width(frame.fonts.sans15, "Pause") + m.px(32), at.y});  // stays in place
  action_button(frame, "learn/back", "‹");
  ImGui::SameLine();
  action_button(frame, "learn/step", "›");
  ImGui::SameLine();
  action_button(frame, "learn/restart", "Start again");
  if (!has_two_rows) {
    ImGui::SameLine(0, m.px(20));
  } else {
    platform::move_to({at.x, at.y + m.frame + m.px(8)});
  }
  if (s.step == s.run.n_steps())
    draw_speed(frame);
  else
    action_button(frame, "learn/from_here", "Learn on from here");
  const float right = at.x + width, middle = at.y + m.frame / 2;
  const std::string step = s.step == s.run.n_steps() ? "step " + count_text(s.step)
                                                     : fmt::format("step {} of {}", count_text(s.step),
                                                                   count_text(s.run.n_steps()));
  ImFont* font = has_two_rows ? frame.fonts.mono14 : frame.fonts.mono18;
  draw_text(font, {right, middle}, Align::right_middle, frame.palette.text, step);
  const double rate = frame.pending.learning_look->plays ? s.learning.steps_per_second() : 0;
  const double again = s.learning.share_learned_again();
  const std::string words = again > 0  ? fmt::format("learning again, {} %", static_cast<int>(100 * again))
                            : rate > 0 ? fixed(rate, 0) + " steps/s"
                                       : "";
  draw_text(frame.fonts.sans13,
            has_two_rows ? ImVec2(right, middle + m.frame + m.px(8))
                         : ImVec2(right - text_width(font, step) - m.px(16), middle),
            Align::right_middle, frame.palette.dim, words);
}

/// Draws buttons, curves and slider above one axis of steps: below the maps, or at their right.
void draw_time_block(const ShownRun& s, const Rect& box, bool is_beside) {
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  const auto end = static_cast<double>(last_step(s));
  const Measurement* now = s.measured(s.step);
  const double loss = now ? now->loss : 0, fresh = now ? now->fresh_loss : 0,
               trained = now ? now->training_accuracy : 0, accuracy = now ? now->accuracy : 0;
  draw_transport(s, box.min, box.width(), is_beside);
  // The last label of the axis is centered below its end.
  const float right =
      box.max.x -
      std::max(m.px(10), text_width(frame.fonts.mono12, count_text(static_cast<std::size_t>(end))) / 2);
  if (is_beside) {
    const float left = box.min.x + m.px(30), room = box.height() - m.px(2 * 24 + 8 + 18 + 2 * 30 + 66);
    const float loss_height = std::round(std::min(m.px(250), room * 0.54f)),
                accuracy_height = std::round(std::min(m.px(210), room * 0.46f));
    float y = box.min.y + 2 * m.frame + m.px(8 + 18);
    draw_legend(s, {box.min.x, y}, true, "loss", loss, fresh);
    y += m.px(24);
    draw_loss(s, {{left, y}, {right, y + loss_height}}, end);
    y += loss_height + m.px(14);
    draw_legend(s, {box.min.x, y}, true, "accuracy", trained, accuracy);
    y += m.px(24);
    draw_accuracy(s, {{left, y}, {right, y + accuracy_height}}, end);
    y += accuracy_height + m.px(28);
    draw_timeline(s, {left, y}, right - left, end);
    draw_text(frame.fonts.sans13, {left, y + m.px(42)}, Align::left_middle, frame.palette.dim,
              snapshots_text(s));
    return;
  }
  const float left = box.min.x + m.px(112);
  float y = box.min.y + m.frame + m.px(14);
  draw_legend(s, {box.min.x, y}, false, "loss", loss, fresh);
  draw_loss(s, {{left, y}, {right, y + m.px(70)}}, end);
  y += m.px(80);
  draw_legend(s, {box.min.x, y - m.px(4)}, false, "accuracy", trained, accuracy);
  draw_accuracy(s, {{left, y}, {right, y + m.px(42)}}, end);
  y += m.px(42 + 20);
  draw_timeline(s, {left, y}, right - left, end);
  draw_lines(frame.fonts.sans12, {box.min.x, y - m.px(4)}, left - box.min.x - m.px(20), m.px(14),
             frame.palette.dim, snapshots_text(s), 2);
}

// --- What to see ---

/// Returns how far a milestone is reached at a measurement, and the value to reach.
std::pair<double, double> progress_to(const Measurement& measured, std::size_t index) {
  if (index >= measured.patterns.size()) return {measured.accuracy, training::solved};
  double best = 0;
  for (const auto& layer : measured.patterns[index]) best = std::max(best, std::ranges::max(layer));
  return {best, training::formed};
}

std::string capitalized(std::string words) {
  if (!words.empty() && words.front() >= 'a' && words.front() <= 'z')
    words.front() = static_cast<char>(words.front() - 'a' + 'A');
  return words;
}

/// Draws a milestone: ticked with its step, or with a bar up to its value. Returns the height.
void draw_milestone(const ShownRun& s, std::size_t index, const std::string& words, float width) {
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  const auto& reached = s.run.milestones();
  const auto found = std::ranges::find(reached, words, &training::Milestone::words);
  const bool is_reached = found != reached.end(), is_later = is_reached && found->step > s.step;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 mark{at.x + m.px(7), at.y + m.px(10)};
  if (is_reached)
    draw_tick(frame, mark, is_later ? frame.palette.faint : frame.palette.status.good);
  else
    ImGui::GetWindowDrawList()->AddCircle(mark, m.px(5.5f), packed(frame.palette.faint), 0, 1.5f);
  const float left = at.x + m.px(24);
  const std::string sentence = capitalized(words) + ".";
  draw_lines(frame.fonts.sans15, {left, at.y + m.px(2)}, width - m.px(24), m.px(19),
             is_reached && !is_later ? frame.palette.text : frame.palette.dim, sentence, 2);
  const float more = text_width(frame.fonts.sans15, sentence) > width - m.px(24) ? m.px(19) : 0;
  const float below = at.y + m.px(32) + more;
  const std::string name = fmt::format("learn/milestone/{}", index);
  if (is_reached) {
    if (link(frame, name, frame.fonts.sans13, {left, below}, Align::left_middle, frame.palette.accent,
             "step " + count_text(found->step), "Shows that step"))
      seek(frame, found->step);
    draw_text(frame.fonts.sans13, {left + m.px(76), below}, Align::left_middle,
              is_later ? frame.palette.faint : frame.palette.dim, is_later ? "later" : found->detail);
  } else if (index > s.task().n_patterns()) {
    draw_text(frame.fonts.sans13, {left, below}, Align::left_middle, frame.palette.dim,
              "X ablates the selected head");
  } else if (const Measurement* measured = s.measured(s.step)) {
    const auto [value, goal] = progress_to(*measured, index);
    const float right = at.x + width - m.px(50);
    draw_fraction_bar(frame, {left, below - m.px(3)}, {right, below + m.px(3)}, value,
                      render::color_at(render::ColorMap::weights, frame.palette.dark, value));
    const float x = std::round(left + (right - left) * static_cast<float>(goal));
    draw_rect({x, below - m.px(6)}, {x + 1, below + m.px(6)}, frame.palette.text);
    draw_text(frame.fonts.mono13, {at.x + width, below}, Align::right_middle, frame.palette.dim,
              fixed(value, 2));
  }
  platform::move_to(at);
  ImGui::Dummy({width, m.px(46) + more});
}

void draw_what_to_see(const ShownRun& s, float width) {
  const auto words = training::milestone_words(s.task(), s.run.network().setup.n_heads);
  section_heading(s.frame, width, "WHAT TO SEE",
                  fmt::format("{} of {}", s.run.milestones().size(), words.size()));
  paragraph(s.frame.fonts.sans14, s.frame.palette.dim, width, std::string(s.task().look) + ".");
  ImGui::Dummy({width, s.frame.metrics.px(4)});
  for (std::size_t k = 0; k < words.size(); ++k) draw_milestone(s, k, words[k], width);
  const auto step = s.run.diverged_at();
  if (step)
    paragraph(s.frame.fonts.sans14, s.frame.palette.status.bad, width,
              fmt::format(
                  "NaN at step {}: the network from before is kept. Start again, perhaps with a lower rate.",
                  *step));
}

/// Draws the patterns of the selected head: their shares at the displayed step, and over the steps.
void draw_selected(const ShownRun& s, float width) {
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  const auto [layer, head] = frame.pending.learning_look->head;
  const Measurement* now = s.measured(s.step);
  if (!has_patterns(now, layer, head)) return;
  section_heading(frame, width, fmt::format("HEAD {}.{}", layer, head).c_str(), "share of its attention");
  const auto& off = s.run.network().layers[layer].attention.heads_off;
  action_button(frame, "learn/ablate", std::ranges::count(off, head) > 0 ? "Enable" : "Ablate");
  ImGui::SameLine();
  action_button(frame, "learn/keep", "Snapshot as A");
  for (std::size_t p = 0; p < now->patterns.size(); ++p) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const double share = now->patterns[p][layer][head];
    draw_text(frame.fonts.sans14, {at.x, at.y + m.px(9)}, Align::left_middle, frame.palette.dim,
              s.task().patterns[p]);
    draw_text(frame.fonts.mono13, {at.x + width, at.y + m.px(9)}, Align::right_middle, frame.palette.text,
              fixed(share, 2));
    draw_pattern(s, {{at.x, at.y + m.px(20)}, {at.x + width, at.y + m.px(56)}}, layer, head, p);
    ImGui::Dummy({width, m.px(62)});
  }
}

/// Draws measures at A and at the displayed step.
void draw_comparison(const ShownRun& s, float width) {
  const auto& a = s.learning.document().baseline;
  if (!a) return;
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  section_heading(frame, width, "COMPARE WITH A", "step " + count_text(a->step));
  const Measurement *then = s.measured(a->step), *now = s.measured(s.step);
  const auto row = [&](const std::string& words, double before, double after) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + m.px(10);
    draw_text(frame.fonts.sans14, {at.x, middle}, Align::left_middle, frame.palette.dim, words);
    draw_text(frame.fonts.mono13, {at.x + width - m.px(58), middle}, Align::right_middle, frame.palette.dim,
              fixed(before, 2));
    draw_text(frame.fonts.mono13, {at.x + width, middle}, Align::right_middle, frame.palette.text,
              fixed(after, 2));
    ImGui::Dummy({width, m.px(21)});
  };
  const auto [layer, head] = frame.pending.learning_look->head;
  if (then && now) {
    row("loss, test", then->fresh_loss, now->fresh_loss);
    row("accuracy, test", then->accuracy, now->accuracy);
    for (std::size_t p = 0; has_patterns(then, layer, head) && p < now->patterns.size(); ++p)
      row(fmt::format("{}, head {}.{}", s.task().patterns[p], layer, head), then->patterns[p][layer][head],
          now->patterns[p][layer][head]);
  }
  if (const auto on = checkbox(frame, "learn/change", "maps show the change since A",
                               frame.pending.learning_look->shows_change,
                               "Blue and red cells have more or less weight than at A"))
    frame.commands.add(set<&LearningLook::shows_change>(*on));
  if (button(frame, "learn/drop_a", "Drop A")) frame.commands.add(KeepLearned{false});
}

/// Draws a sequence that is not trained on: its tokens, below each the answer, and whether it is right.
void draw_sequence(const ShownRun& s, float width) {
  const LearnedPicture* picture = s.learning.picture();
  if (!picture) return;
  const Frame& frame = s.frame;
  const Metrics& m = frame.metrics;
  std::size_t n_asked = 0, n_right = 0;
  for (std::size_t i = 0; i < picture->tokens.size(); ++i)
    if (!picture->targets[i].empty()) ++n_asked, n_right += picture->targets[i] == picture->predicted[i];
  section_heading(frame, width, "TEST SEQUENCE", fmt::format("{} of {} right", n_right, n_asked));
  constexpr std::size_t per_row = 12;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float pitch = std::floor(width / per_row), row = m.px(47);
  for (std::size_t i = 0; i < picture->tokens.size(); ++i) {
    const ImVec2 cell{at.x + pitch * static_cast<float>(i % per_row),
                      at.y + row * static_cast<float>(i / per_row)};
    const float middle = cell.x + (pitch - m.px(2)) / 2;
    draw_rect(cell, {cell.x + pitch - m.px(2), cell.y + m.px(21)}, frame.palette.control.rest, m.px(2));
    draw_text(frame.fonts.sans14, {middle, cell.y + m.px(10)}, Align::middle, frame.palette.text,
              visible_token(picture->tokens[i]));
    if (picture->targets[i].empty()) continue;
    const bool is_right = picture->targets[i] == picture->predicted[i];
    const Rgb ink = is_right ? frame.palette.status.good : frame.palette.status.bad;
    draw_text(frame.fonts.sans13, {middle, cell.y + m.px(30)}, Align::middle,
              is_right ? frame.palette.dim : ink, visible_token(picture->predicted[i]));
    if (is_right)
      draw_rect({cell.x + m.px(2), cell.y + m.px(39)}, {cell.x + pitch - m.px(4), cell.y + m.px(41)}, ink);
    else
      draw_cross({middle, cell.y + m.px(40)}, m.px(3), ink, 1.5f);
    if (hovers(cell, {cell.x + pitch, cell.y + row}))
      ImGui::SetTooltip("after %s: %s, with probability %s; right is %s",
                        quoted_token(picture->tokens[i]).c_str(), quoted_token(picture->predicted[i]).c_str(),
                        fixed(picture->probabilities[i], 4).c_str(),
                        quoted_token(picture->targets[i]).c_str());
  }
  const auto n_rows = static_cast<float>((picture->tokens.size() + per_row - 1) / per_row);
  const float foot = at.y + n_rows * row + m.px(6);
  draw_text(frame.fonts.sans13, {at.x, foot}, Align::left_middle, frame.palette.dim,
            "below each: what is predicted");
  const std::size_t sample = frame.pending.learning_look->sample, n = s.run.fresh_samples().size();
  if (link(frame, "learn/another", frame.fonts.sans13, {at.x + width, foot}, Align::right_middle,
           frame.palette.accent, "another one"))
    frame.commands.add(set<&LearningLook::sample>((sample + 1) % n));
  platform::move_to(at);
  ImGui::Dummy({width, n_rows * row + m.px(18)});
}

}  // namespace

void draw_learning(const Frame& frame) {
  const auto s = shown_run(frame);
  if (!s) return;
  train_on(frame);
  const Metrics& m = frame.metrics;
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  if (room.x >= m.px(wide_room)) {
    const float left = at.x + room.x - m.px(block_width);
    draw_rect({left - m.px(20), at.y - m.px(10)}, {left - m.px(19), at.y + room.y}, frame.palette.line);
    draw_maps(*s, at, {room.x - m.px(block_width + 40), room.y});
    draw_time_block(*s, {{left, at.y}, {at.x + room.x, at.y + room.y}}, true);
    return;
  }
  const float top = at.y + room.y - m.px(218);
  draw_maps(*s, at, {room.x, top - at.y - m.px(12)});
  draw_rect({at.x - m.px(20), top - m.px(9)}, {at.x + room.x + m.px(20), top - m.px(8)}, frame.palette.line);
  draw_time_block(*s, {{at.x, top}, {at.x + room.x, at.y + room.y}}, false);
}

void draw_learning_results(const Frame& frame) {
  const auto s = shown_run(frame);
  if (!s) return;
  const float width = ImGui::GetContentRegionAvail().x, gap = frame.metrics.px(8);
  draw_what_to_see(*s, width);
  ImGui::Dummy({width, gap});
  draw_sequence(*s, width);
  ImGui::Dummy({width, gap});
  section_heading(frame, width, "RESULT");
  paragraph(frame.fonts.sans14, frame.palette.dim, width,
            "The displayed step is a whole model like any other: Layers, Stages and the next token show it.");
  action_button(frame, "learn/open", "Open as model");
  ImGui::SameLine();
  action_button(frame, "learn/export", "Export…");
  if (frame.document.of_run) action_button(frame, "learn/with_edits", "Learn on with its edits");
  ImGui::Dummy({width, gap});
  draw_selected(*s, width);
  draw_comparison(*s, width);
}

}  // namespace app::panels
