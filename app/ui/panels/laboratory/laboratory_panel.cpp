#include "app/ui/panels/laboratory/laboratory_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {

namespace {

constexpr double max_masks = 1024;

/// Logarithmic axes: masks from 1 to 1024, distances over two to five decades.
struct Axes {
  ImVec2 min, max;
  double top, bottom;  // powers of ten
  float x(double masks) const {
    return min.x + (max.x - min.x) * static_cast<float>(std::log(masks) / std::log(max_masks));
  }
  float y(double distance) const {
    const double share = (top - std::log10(std::max(distance, std::pow(10.0, bottom)))) / (top - bottom);
    return min.y + (max.y - min.y) * static_cast<float>(std::clamp(share, 0.0, 1.0));
  }
};

Axes axes_for(const Frame& frame, const Laboratory& lab, ImVec2 at, ImVec2 size) {
  double largest = 0, smallest = 0;
  for (const double d : lab.distances) {
    largest = std::max(largest, d);
    if (d > 0 && (smallest == 0 || d < smallest)) smallest = d;
  }
  const double top = largest > 0 ? std::ceil(std::log10(largest) - 1e-9) : 0;
  const double min_power = smallest > 0 ? std::floor(std::log10(smallest)) : top;
  return {{at.x + frame.metrics.px(66), at.y},
          {at.x + size.x, at.y + size.y - frame.metrics.px(22)},
          top,
          std::clamp(min_power, top - 5, top - 2)};
}

void draw_grid(const Frame& frame, const Axes& a) {
  draw_rect(a.min, a.max, frame.palette.background.panel);
  const ImU32 line = packed(frame.palette.line);
  for (const double n : std::array<double, 6>{1, 4, 16, 64, 256, 1024}) {
    const float x = std::round(a.x(n));
    draw_rect({x, a.min.y}, {x + 1, a.max.y}, line);
    draw_text(frame.fonts.mono12, {x, a.max.y + frame.metrics.px(11)}, Align::middle, frame.palette.dim,
              std::to_string(static_cast<int>(n)));
  }
  for (double power = a.bottom; power <= a.top + 0.5; ++power) {
    const float y = std::round(a.y(std::pow(10.0, power)));
    draw_rect({a.min.x, y}, {a.max.x, y + 1}, line);
    const int decimals = std::max(0, static_cast<int>(-power));
    draw_text(frame.fonts.mono12, {a.min.x - frame.metrics.px(6), y}, Align::right_middle, frame.palette.dim,
              decimals > 5 ? scientific(std::pow(10.0, power)) : fixed(std::pow(10.0, power), decimals));
  }
}

/// Draws words where the curve leaves room for them: at the first of the places that it crosses least.
void draw_curve_label(const Frame& frame, const std::vector<ImVec2>& curve, std::span<const ImVec2> middles,
                      ImFont* font, Rgb ink, const std::string& words) {
  const float half_width = text_width(font, words) / 2 + frame.metrics.px(3),
              half_height = platform::font_size(font) / 2 + frame.metrics.px(1);
  const auto crossed = [&](ImVec2 at) {
    return std::ranges::count_if(curve, [&](ImVec2 p) {
      return std::abs(p.x - at.x) < half_width && std::abs(p.y - at.y) < half_height;
    });
  };
  const ImVec2 best = *std::ranges::min_element(middles, {}, crossed);
  draw_text(font, best, Align::middle, ink, words);
}

/// Draws the line of 1/√N from the first distance.
void draw_expected(const Frame& frame, const Axes& a, const std::vector<ImVec2>& curve, double first) {
  ImGui::GetWindowDrawList()->AddLine(
      {a.x(1), a.y(first)}, {a.x(max_masks), a.y(first / std::sqrt(max_masks))}, packed(frame.palette.faint));
  std::vector<ImVec2> places;
  for (const double n : {6.0, 3.0, 24.0, 96.0, 400.0})
    for (const float side : {-1.0f, 1.0f})
      places.emplace_back(a.x(n) - side * frame.metrics.px(8),
                          a.y(first / std::sqrt(n)) + side * frame.metrics.px(14));
  std::erase_if(places, [&](ImVec2 p) { return p.y > a.max.y - frame.metrics.px(10); });
  draw_curve_label(frame, curve, places, frame.fonts.sans12, frame.palette.dim, "1/√N");
}

void choose_masks(const Frame& frame, const Axes& a) {
  platform::move_to(a.min);
  hit_area("laboratory/curve", {a.max.x - a.min.x, a.max.y - a.min.y});
  frame.landmarks.mark_item("laboratory/curve");
  if (!ImGui::IsItemActive()) return;
  const double share = (ImGui::GetIO().MousePos.x - a.min.x) / (a.max.x - a.min.x);
  const double masks = std::round(std::pow(max_masks, std::clamp(share, 0.0, 1.0)));
  frame.commands.add(set<&Look::laboratory_masks>(static_cast<std::size_t>(masks)));
}

/// Draws the distance of the mean from the weights after N masks, on logarithmic axes; a click selects N.
void draw_laboratory_curve(const Frame& frame, ImVec2 at, ImVec2 size) {
  const Laboratory& lab = *frame.work.laboratory;
  const Axes a = axes_for(frame, lab, at, size);
  draw_grid(frame, a);
  choose_masks(frame, a);
  const std::vector<double>& distances = lab.distances;
  if (distances.empty()) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  std::vector<ImVec2> points;
  for (std::size_t k = 0; k < distances.size(); ++k)
    points.emplace_back(a.x(static_cast<double>(k + 1)), a.y(distances[k]));
  std::vector<ImVec2> dense;  // with points between those of long steps
  for (std::size_t k = 0; k + 1 < points.size(); ++k) {
    const int n = 1 + static_cast<int>((points[k + 1].x - points[k].x) / 4);
    for (int i = 0; i < n; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(n);
      dense.emplace_back(points[k].x + (points[k + 1].x - points[k].x) * t,
                         points[k].y + (points[k + 1].y - points[k].y) * t);
    }
  }
  if (distances.front() > 0) draw_expected(frame, a, dense, distances.front());
  list->AddPolyline(points.data(), static_cast<int>(points.size()), packed(frame.palette.accent), 0, 1.5f);
  const std::size_t n = std::min(frame.displayed.look.laboratory_masks, distances.size());
  const ImVec2 chosen = points[n - 1];
  draw_rect({std::round(chosen.x), a.min.y}, {std::round(chosen.x) + 1, a.max.y}, frame.palette.selection);
  list->AddCircleFilled(chosen, frame.metrics.px(4), packed(frame.palette.selection));
  const std::string number = fixed(distances[n - 1], 4);
  const float away = text_width(frame.fonts.mono12, number) / 2 + frame.metrics.px(9),
              aside = chosen.x > (a.min.x + a.max.x) / 2 ? -away : away;
  std::vector<ImVec2> places;
  for (const float x : {aside, -aside})
    for (const float y : {-16.0f, 16.0f, -32.0f, 32.0f})
      places.emplace_back(chosen.x + x, chosen.y + frame.metrics.px(y));
  std::erase_if(places, [&](ImVec2 p) {
    return p.y < a.min.y + frame.metrics.px(8) || p.y > a.max.y - frame.metrics.px(8) ||
           p.x - away < a.min.x || p.x + away > a.max.x;
  });
  if (places.empty()) places.emplace_back(chosen.x + aside, chosen.y);
  draw_curve_label(frame, dense, places, frame.fonts.mono12, frame.palette.text, number);
}

/// Returns for how many masks draw_row_sum_ticks() draws a tick: all n_masks, or fewer where there are many
/// rows.
std::size_t n_displayed_ticks(const Laboratory& lab, std::size_t n_masks) {
  constexpr std::size_t max_ticks = 6000;  // more are slow to draw and indistinguishable
  return std::min({n_masks, lab.count(), std::max<std::size_t>(1, max_ticks / lab.n_rows())});
}

/// Draws a tick for each mask's sum of each row, and the mean; the rows share the height of size.
void draw_row_sum_ticks(const Frame& frame, ImVec2 at, ImVec2 size, std::size_t n_masks) {
  const Laboratory& lab = *frame.work.laboratory;
  const std::size_t rows = lab.n_rows(), n = std::min(n_masks, lab.count());
  if (n == 0) return;
  double largest = 2;
  for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, lab.row_sums[k].max());
  const float from = at.x + frame.metrics.px(24), to = at.x + size.x - frame.metrics.px(52);
  const auto x = [&](double sum) {
    return from + (to - from) * static_cast<float>(std::clamp(sum / largest, 0.0, 1.0));
  };
  for (double tick = 0; tick <= largest; tick += largest > 8 ? std::ceil(largest / 8) : 1) {
    draw_rect({std::round(x(tick)), at.y}, {std::round(x(tick)) + 1, at.y + size.y}, frame.palette.line);
    draw_text(frame.fonts.mono12, {x(tick), at.y - frame.metrics.px(9)}, Align::middle, frame.palette.faint,
              fixed(tick, 0));
  }
  const float pitch = size.y / static_cast<float>(rows);
  draw_text(frame.fonts.mono12,
            {at.x + size.x, std::min(at.y - frame.metrics.px(9), at.y + pitch / 2 - frame.metrics.px(15))},
            Align::right_middle, frame.palette.faint, "mean");
  const float half = std::max(1.0f, pitch * 0.32f);
  const std::size_t step = label_step(pitch, frame.metrics.px(14));
  const std::size_t ticks = n_displayed_ticks(lab, n);
  const float strength = std::clamp(3.0f / std::sqrt(static_cast<float>(n)), 0.08f, 0.8f);
  for (std::size_t i = 0; i < rows; ++i) {
    const float middle = at.y + (static_cast<float>(i) + 0.5f) * pitch;
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double s = lab.row_sums[k][i];
      sum += s;
      if (k < ticks)
        draw_rect({std::round(x(s)), middle - half}, {std::round(x(s)) + 2, middle + half},
                  packed(frame.palette.accent, strength));
    }
    const double mean = sum / static_cast<double>(n);
    draw_rect({std::round(x(mean)) - 1, middle - half - 1}, {std::round(x(mean)) + 2, middle + half + 1},
              frame.palette.selection);
    if (i % step != 0) continue;
    draw_text(frame.fonts.mono12, {at.x + frame.metrics.px(10), middle}, Align::right_middle,
              frame.palette.faint, std::to_string(i));
    draw_text(frame.fonts.mono13, {at.x + size.x, middle}, Align::right_middle, frame.palette.text,
              fixed(mean, 3));
  }
}

// At scale 1.
constexpr float heading_height = 30, title_height = 28, below_map = 30, largest_cell = 64;
constexpr std::size_t max_numbered_columns = 16;  // columns of a map with numbers

/// Returns the gap between maps, in pixels; below, the width of the row sums next to them.
float map_gap(const Metrics& m) {
  return m.px(m.compact ? 12 : 20);
}

float row_sums_width(const Metrics& m) {
  return m.px(m.compact ? 102 : 112);
}

/// Positions of the four columns of the laboratory, and the size of a map, in pixels.
struct LaboratoryLayout {
  ImVec2 origin;
  float width, label, index, sums;  // label: room for tokens left of the first map; index: left of the others
  int map_width, map_height;
};

LaboratoryLayout laboratory_layout(const Frame& frame) {
  const Metrics& m = frame.metrics;
  LaboratoryLayout l{ImGui::GetCursorScreenPos(),
                     ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize,
                     0,
                     0,
                     0,
                     0,
                     0};
  const float n = static_cast<float>(frame.displayed.model.n_tokens());
  l.index = text_width(frame.fonts.mono12, std::to_string(frame.displayed.model.n_tokens() - 1)) + m.px(9);
  l.label = m.compact ? l.index : m.px(66);
  l.sums = row_sums_width(m);
  const float room = (l.width - l.sums - l.label - 2 * l.index - 3 * map_gap(m)) / 3;
  const float cell =
      std::min({m.px(largest_cell), std::floor(room / n), std::max(1.0f, std::floor(m.px(400) / n))});
  if (cell < 1) {  // several cells in one pixel
    l.map_width = l.map_height = static_cast<int>(std::max(1.0f, room));
    return l;
  }
  l.map_width = static_cast<int>(cell * n);
  l.map_height = static_cast<int>((cell >= m.px(26) ? m.px(24) : std::min(cell, m.px(24))) * n);
  return l;
}

float map_left(const Frame& frame, const LaboratoryLayout& l, int k) {
  const float maps = static_cast<float>(k) * (static_cast<float>(l.map_width) + map_gap(frame.metrics));
  return l.origin.x + maps + (k > 0 ? l.label + static_cast<float>(k - 1) * l.index : 0);
}

void draw_heading(const Frame& frame, const LaboratoryLayout& l, float& y, const char* number,
                  const std::string& words) {
  const float middle = y + frame.metrics.px(heading_height) / 2;
  draw_text(frame.fonts.mono12, {l.origin.x, middle}, Align::left_middle, frame.palette.faint, number);
  draw_text(frame.fonts.sans14, {l.origin.x + frame.metrics.px(18), middle}, Align::left_middle,
            frame.palette.dim, words);
  y += frame.metrics.px(heading_height);
}

/// Draws a title above column k, with a remark where there is room for it.
void draw_column_title(const Frame& frame, const LaboratoryLayout& l, int k, float y,
                       const std::string& words, const std::string& remark, float shift = 0,
                       std::optional<Stage> stage = {}) {
  float x = map_left(frame, l, k) + shift;
  const float end = k < 2 ? map_left(frame, l, k + 1) - frame.metrics.px(8) : l.origin.x + l.width;
  const float middle = y + frame.metrics.px(title_height) / 2;
  draw_text(frame.fonts.sans17, {x, middle}, Align::left_middle, frame.palette.text, words);
  const float named = text_width(frame.fonts.sans17, words);
  if (stage)
    draw_title_area(frame, std::string("laboratory/title/") + core::attention::info(*stage).name, *stage,
                    frame.displayed.look.head, {x, y + frame.metrics.px(4)},
                    {named, frame.metrics.px(title_height - 8)});
  x += named + frame.metrics.px(10);
  if (x + text_width(frame.fonts.sans14, remark) > end) return;
  draw_text(frame.fonts.sans14, {x, middle + frame.metrics.px(1)}, Align::left_middle, frame.palette.dim,
            remark);
}

/// Returns the heatmap in column k.
Heatmap make_heatmap(const Frame& frame, const LaboratoryLayout& l, const char* place, Stage stage, int k) {
  Heatmap map;
  map.place = place;
  map.stage = stage;
  map.head = frame.displayed.look.head;
  map.width = l.map_width, map.height = l.map_height;
  map.label_width = k == 0 ? l.label : l.index;
  if (frame.metrics.compact) map.columns = ColumnLabels::indices;
  map.row_tokens = k == 0 && !frame.metrics.compact;
  return map;
}

float map_block(const Frame& frame, const LaboratoryLayout& l) {
  return column_label_height(frame, make_heatmap(frame, l, "", Stage::weights, 0)) +
         static_cast<float>(l.map_height) + frame.metrics.px(below_map);
}

/// Draws the sign between two maps of an equation.
void draw_operator_sign(const Frame& frame, const LaboratoryLayout& l, int after, float y,
                        const char* words) {
  const float x = map_left(frame, l, after) - map_gap(frame.metrics) / 2;
  const float middle = y + map_block(frame, l) / 2 - frame.metrics.px(6);
  draw_text(frame.fonts.sans17, {x, middle}, Align::middle, frame.palette.dim, words);
}

/// Draws each row's sum before and after dropout, and how many rows have only dropped weights.
void row_sums(const Frame& frame, const LaboratoryLayout& l, float y) {
  const arma::vec &sums_before = frame.work.laboratory->sums_before,
                  &sums_after = frame.work.laboratory->sums_after;
  const float left = map_left(frame, l, 3), right = l.origin.x + l.width;
  const float top = y + column_label_height(frame, make_heatmap(frame, l, "", Stage::weights, 0));
  const float pitch = static_cast<float>(l.map_height) / static_cast<float>(sums_before.n_elem);
  // Rows lower than a line of text have their first number at the top edge: the headings go above it.
  const float first = left + frame.metrics.px(frame.metrics.compact ? 38 : 46),
              label_y = std::min(top - frame.metrics.px(9), top + pitch / 2 - frame.metrics.px(15));
  draw_text(frame.fonts.mono12, {first, label_y}, Align::right_middle, frame.palette.faint, "before");
  draw_text(frame.fonts.mono12, {right, label_y}, Align::right_middle, frame.palette.faint, "after");
  const std::size_t step = label_step(pitch, frame.metrics.px(15));
  std::size_t lost = 0;
  for (std::size_t i = 0; i < sums_before.n_elem; ++i) {
    const double before = sums_before[i], after = sums_after[i];
    if (after == 0 && before > 0) ++lost;
    if (i % step != 0) continue;
    const float middle = top + (static_cast<float>(i) + 0.5f) * pitch;
    draw_text(frame.fonts.mono13, {first, middle}, Align::right_middle, frame.palette.dim, fixed(before, 3));
    draw_text(frame.fonts.mono13, {first + frame.metrics.px(18), middle}, Align::middle, frame.palette.faint,
              "→");
    const std::string sum = after == 0 ? "0" : fixed(after, 3);
    draw_text(frame.fonts.mono13, {right, middle}, Align::right_middle,
              after == 0 && before > 0 ? frame.palette.status.warning : frame.palette.text, sum);
  }
  if (lost == 0) return;
  const std::string words = lost == 1 ? "1 row sums to 0" : fmt::format("{} rows sum to 0", lost);
  draw_text(frame.fonts.sans13, {left, top + static_cast<float>(l.map_height) + frame.metrics.px(13)},
            Align::left_middle, frame.palette.status.warning, words);
}

void draw_one_mask(const Frame& frame, const LaboratoryLayout& l, float& y) {
  const auto& dropout = frame.displayed.model.dropout;
  draw_heading(
      frame, l, y, "1",
      dropout.active()
          ? "One mask: each weight is kept with probability 1 − p, kept weights are scaled by 1/(1 − p)"
      : dropout.rate == 0 ? "At a rate of 0 nothing is dropped"
                          : "In evaluation mode nothing is dropped; D switches to training mode");
  draw_column_title(frame, l, 0, y, "Weights", "softmax", 0, Stage::weights);
  draw_column_title(frame, l, 1, y, "Mask", "p = " + fixed(dropout.rate, 2), 0, Stage::dropout_mask);
  draw_column_title(frame, l, 2, y, "Weights after dropout", "", 0, Stage::dropped_weights);
  draw_column_title(frame, l, 3, y, "Row sums", "");
  y += frame.metrics.px(title_height);
  draw_operator_sign(frame, l, 1, y, "×");
  draw_operator_sign(frame, l, 2, y, "=");
  draw_heatmap(frame, make_heatmap(frame, l, "laboratory/weights", Stage::weights, 0),
               {map_left(frame, l, 0), y});
  draw_heatmap(frame, make_heatmap(frame, l, "laboratory/mask", Stage::dropout_mask, 1),
               {map_left(frame, l, 1), y});
  draw_heatmap(frame, make_heatmap(frame, l, "laboratory/dropped", Stage::dropped_weights, 2),
               {map_left(frame, l, 2), y});
  row_sums(frame, l, y);
  y += map_block(frame, l);
}

/// Returns the width of the map of differences, widened at the expense of the row sums if the digits need it.
int difference_map_width(const Frame& frame, const LaboratoryLayout& l) {
  const arma::mat& numbers = frame.work.laboratory->difference;
  if (numbers.empty() || numbers.n_cols > max_numbered_columns) return l.map_width;
  const DigitNeeds needs{core::text::measure_numbers(numbers, {0, numbers.n_rows, 0, numbers.n_cols})};
  const float cell = cell_width_for(frame, needs, {.decimals = core::text::min_decimals});
  const int wide = static_cast<int>(cell) * static_cast<int>(numbers.n_cols);
  return static_cast<float>(wide - l.map_width) < l.width / 6 ? std::max(wide, l.map_width) : l.map_width;
}

void draw_many_masks(const Frame& frame, const LaboratoryLayout& l, float& y) {
  const Laboratory& lab = *frame.work.laboratory;
  const std::size_t n = std::min(lab.n_masks, lab.count());
  const bool is_scaled = core::attention::dropout_scale(frame.displayed.model.dropout) > 1;
  draw_heading(frame, l, y, "2",
               is_scaled ? "Many masks: because kept weights are scaled, the mean does not change"
                         : "Many masks: kept weights are not scaled, so the mean becomes smaller");
  draw_column_title(frame, l, 0, y, "Mean of " + std::to_string(n), "weights after dropout");
  draw_column_title(frame, l, 1, y, "Mean − weights", "");
  const std::size_t ticks = n_displayed_ticks(lab, n);
  const float shift = static_cast<float>(difference_map_width(frame, l) - l.map_width);
  draw_column_title(frame, l, 2, y, fmt::format("Row sums of {} masks", n),
                    ticks < n ? "ticks of the first " + std::to_string(ticks) : "one tick per mask", shift);
  y += frame.metrics.px(title_height);
  if (lab.mean.empty()) return;
  const double max_abs = std::max(-lab.difference_range.smallest, lab.difference_range.largest);
  const OtherNumbers mean{.numbers = &lab.mean,
                          .version = lab.revision,
                          .ends = {0, std::max(1.0, lab.mean_range.largest)},
                          .has_token_axes = true,
                          .number_range = &lab.mean_range};
  const OtherNumbers difference{.numbers = &lab.difference,
                                .version = lab.revision,
                                .ends = {-max_abs, max_abs},
                                .has_token_axes = true,
                                .number_range = &lab.difference_range};
  Heatmap left = make_heatmap(frame, l, "laboratory/mean", Stage::weights, 0);
  Heatmap right = make_heatmap(frame, l, "laboratory/difference", Stage::scores, 1);
  left.other = &mean, right.other = &difference;
  // A difference needs a sign and two decimals; one would only say 0.0.
  right.width = difference_map_width(frame, l);
  draw_heatmap(frame, left, {map_left(frame, l, 0), y});
  draw_heatmap(frame, right, {map_left(frame, l, 1), y});
  const float top = y + column_label_height(frame, left), x = map_left(frame, l, 2) + shift;
  draw_row_sum_ticks(frame, {x, top}, {l.origin.x + l.width - x, static_cast<float>(l.map_height)}, n);
  y += map_block(frame, l);
}

void draw_ten_ones(const Frame& frame, const LaboratoryLayout& l, ImVec2 at, float width) {
  const arma::rowvec& after = frame.work.laboratory->ones;
  draw_column_title(frame, l, 2, at.y, "Dropout applied to ten ones", "the same rule for a vector");
  const float cell = std::floor(std::min(frame.metrics.px(32), width / static_cast<float>(after.n_elem)));
  const float height = frame.metrics.px(24);
  const double top = std::max(1.0, after.max());
  float y = at.y + frame.metrics.px(title_height);
  const arma::rowvec before(after.n_elem, arma::fill::ones);
  const std::array<std::pair<const char*, const arma::rowvec*>, 2> lines{
      {{"before", &before}, {"after", &after}}};
  for (const auto& [words, numbers] : lines) {
    const float middle = y + frame.metrics.px(12);
    draw_text(frame.fonts.sans13, {at.x, middle}, Align::left_middle, frame.palette.dim, words);
    draw_text(frame.fonts.mono12, {at.x + cell * static_cast<float>(after.n_elem), middle},
              Align::right_middle, frame.palette.dim, "sum " + inspector_text(arma::accu(*numbers)));
    const ImVec2 end(at.x + cell * static_cast<float>(after.n_elem), y + frame.metrics.px(24));
    if (hovers({at.x, y}, end)) ImGui::SetTooltip("sum %s", number_text(arma::accu(*numbers)).c_str());
    y += frame.metrics.px(24);
    for (std::size_t k = 0; k < numbers->n_elem; ++k) {
      const double v = (*numbers)[k];
      const ImVec2 a(at.x + cell * static_cast<float>(k), y), b(a.x + cell - 1, y + height - 1);
      const Rgb background = render::color_at(render::ColorMap::mask, frame.palette.dark, v / top);
      draw_rect(a, b, background);
      draw_text(frame.fonts.mono13, {(a.x + b.x) / 2, (a.y + b.y) / 2}, Align::middle,
                readable_on(background),
                v == 0               ? "×"
                : v == std::round(v) ? fixed(v, 0)
                                     : fixed(v, 2));
    }
    y += height + frame.metrics.px(6);
  }
  frame.landmarks.mark("laboratory/ones", at, {at.x + cell * static_cast<float>(after.n_elem), y});
}

void draw_explanation(const Frame& frame, ImVec2 at, float width) {
  platform::move_to(at);
  paragraph(
      frame.fonts.sans14, frame.palette.dim, width,
      "Why does a row no longer sum to 1? It does before dropout; after dropout only the mean over many masks does. In evaluation mode nothing is dropped.");
}

void draw_convergence(const Frame& frame, const LaboratoryLayout& l, float& y) {
  const Laboratory& lab = *frame.work.laboratory;
  std::string words = "Convergence of the mean: largest difference from the weights after N masks";
  if (lab.version != frame.displayed.version)
    words += " · updating";
  else if (!lab.is_complete())
    words += fmt::format(" · {} of {} sampled", lab.count(), Laboratory::max_masks);
  draw_heading(frame, l, y, "3", words);
  const float height = frame.metrics.px(180), x = map_left(frame, l, 2);
  draw_laboratory_curve(frame, {l.origin.x, y + frame.metrics.px(8)},
                        {x - l.origin.x - map_gap(frame.metrics), height});
  draw_ten_ones(frame, l, {x, y}, l.origin.x + l.width - x);
  draw_explanation(frame, {x, y + frame.metrics.px(146)}, l.origin.x + l.width - x);
  y += height + frame.metrics.px(24);
}

/// Draws a hint in place of means over masks that are all ones, which would color only rounding errors.
void draw_nothing_dropped(const Frame& frame, const LaboratoryLayout& l, float& y) {
  const auto& dropout = frame.displayed.model.dropout;
  draw_heading(frame, l, y, "2",
               "Nothing is dropped: every mask is all ones, and every mean equals the weights");
  platform::move_to({l.origin.x + frame.metrics.px(18), y + frame.metrics.px(4)});
  if (dropout.rate == 0 && button(frame, "laboratory/rate", "Set dropout to 0.5",
                                  "Sets the dropout rate of the model to 0.5 (Ctrl+Z undoes it)"))
    frame.commands.edit(core::editing::SetDropoutRate{0.5});
  if (dropout.rate == 0 && !dropout.training) ImGui::SameLine();
  if (!dropout.training && button(frame, "laboratory/training", "Switch to training mode", "D does the same"))
    frame.commands.edit(core::editing::SetTraining{true});
  y += 2 * frame.metrics.frame;
}

void draw_laboratory_header(const Frame& frame, const LaboratoryLayout& l, float& y) {
  platform::move_to({l.origin.x, y});
  if (button(frame, "laboratory/back", "‹ Stages", "Esc")) frame.commands.add(set<&Look::tab>(Tab::stages));
  const float x = ImGui::GetItemRectMax().x + frame.metrics.px(16), middle = y + frame.metrics.frame / 2;
  draw_text(frame.fonts.sans19, {x, middle}, Align::left_middle, frame.palette.text, "Dropout laboratory");
  const float field = frame.metrics.px(64), right = l.origin.x + l.width;
  const char* again = "resample";
  const float again_width = button_width(frame, again);
  platform::move_to({right - again_width, y});
  if (button(frame, "laboratory/again", again, "Samples a mask with the next seed (Space)"))
    frame.commands.edit(core::editing::SetDropoutSeed{frame.displayed.model.dropout.seed + 1});
  platform::move_to({right - again_width - frame.metrics.px(16) - field, y});
  const auto step = [](std::uint64_t n, int by) {
    return by > 0 ? std::min<std::uint64_t>(2 * n, Laboratory::max_masks) : std::max<std::uint64_t>(n / 2, 1);
  };
  if (const auto n = count_field(frame, "laboratory/masks", "masks", frame.displayed.look.laboratory_masks,
                                 field, step)) {
    if (*n >= 1 && *n <= Laboratory::max_masks)
      frame.commands.add(set<&Look::laboratory_masks>(static_cast<std::size_t>(*n)));
    else
      frame.commands.add(
          ShowMessage{"masks: expected a number from 1 to 1024, found " + std::to_string(*n), true});
  }
  draw_text(frame.fonts.sans15, {right - again_width - frame.metrics.px(26) - field, middle},
            Align::right_middle, frame.palette.dim, "masks");
  y += frame.metrics.frame + frame.metrics.px(6);
}

}  // namespace

void draw_laboratory(const Frame& frame) {
  const LaboratoryLayout l = laboratory_layout(frame);
  float y = l.origin.y;
  draw_laboratory_header(frame, l, y);
  if (!frame.work.laboratory) return draw_heading(frame, l, y, "", "Sampling the first masks…");
  draw_one_mask(frame, l, y);
  if (frame.displayed.model.dropout.active()) {
    draw_many_masks(frame, l, y);
    draw_convergence(frame, l, y);
  } else {
    draw_nothing_dropped(frame, l, y);
  }
  reserve_room(l.origin, {l.width, y - l.origin.y});
}

}  // namespace app::panels
