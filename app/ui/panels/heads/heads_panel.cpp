#include "app/ui/panels/heads/heads_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {

namespace {

/// Layout of the pictures of heads: equal tiles, with names only left of the first column and above the first
/// row.
struct Tiling {
  std::size_t columns = 1;
  int width = 0, picture_height = 0;  ///< of one picture, in pixels
  bool names = true;                  ///< tokens and not only their indices
  float labels = 0, head = 0;         ///< room left of the first column and above the first row
  float gap = 0, row_gap = 0;         ///< between columns, and between rows
  float foot = 0;                     ///< below every picture
  float height = 0;                   ///< of all rows

  /// Returns the top left corner of a picture, relative to the grid.
  ImVec2 picture(std::size_t place) const;
};

}  // namespace

using core::attention::HeadMetric;

const std::vector<core::attention::HeadStatistics>& head_statistics(const Frame& frame) {
  return frame.work.statistics.heads(frame.displayed.trace, frame.displayed.version,
                                     frame.displayed.sequence().tokens);
}

std::string figure_text(HeadMetric figure, const std::optional<double>& value, std::size_t n_tokens) {
  if (!value) return "–";
  if (figure == HeadMetric::entropy) return fixed(*value, 2) + " bits";
  const int decimals =
      1 + static_cast<int>(std::ceil(std::log10(std::max<double>(10, static_cast<double>(n_tokens)))));
  return fraction_text(*value, decimals);
}

namespace {

/// Returns the largest possible value of a figure.
double figure_max(const Frame& frame, HeadMetric figure) {
  return figure == HeadMetric::entropy
             ? std::log2(std::max<double>(2, static_cast<double>(frame.displayed.model.n_tokens())))
             : 1;
}

/// Returns the description of a figure with its range: "mean entropy of the rows, 0 to 4 bits".
std::string figure_description(const Frame& frame, HeadMetric figure) {
  const double top = figure_max(frame, figure);
  if (figure == HeadMetric::entropy)
    return "mean entropy of the rows, 0 to " + fixed(top, top == std::floor(top) ? 0 : 2) + " bits";
  const std::string title = core::attention::info(figure).title;
  return "mean weight on " +
         (figure == HeadMetric::previous ? "previous token"
          : figure == HeadMetric::first  ? "the " + title
                                         : title) +
         ", 0 to 1";
}

}  // namespace

std::vector<std::size_t> sorted_heads(const Frame& frame) {
  if (frame.displayed.look.heads_order)
    return core::attention::sort_heads(*frame.displayed.look.heads_order, head_statistics(frame));
  std::vector<std::size_t> order(frame.displayed.trace.n_heads());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

namespace {

using core::attention::Columns;
using core::attention::StageInfo;

// At scale 1.
constexpr float smallest_picture = 64, foot_height = 34, max_extra_row_gap = 24, widest_cell = 110,
                highest_cell = 76;

constexpr std::size_t max_named_tokens = 64;

/// Fits one picture to a room: cells of tokens are square, or wider where they can hold numbers.
void fit_picture(const Frame& frame, const StageInfo& stage, const core::attention::StageMatrix& numbers,
                 float width, float height, Tiling& t) {
  const Metrics& m = frame.metrics;
  float wide = std::min(width / static_cast<float>(numbers.n_cols()), m.px(widest_cell));
  float high = std::min(height / static_cast<float>(numbers.n_rows()), m.px(highest_cell));
  if (stage.columns == Columns::tokens) {
    const float numbered =
        cell_width_for(frame, digit_needs(frame, stage.stage, 0), {.decimals = core::text::min_decimals});
    const bool holds_numbers = std::floor(wide) >= numbered && high >= m.px(16);
    high = std::min(high, wide);
    wide = std::min(wide, holds_numbers ? std::max(2 * high, numbered) : high);
  }
  constexpr float least = 4;  // whole pixels would leave much of the room of smaller cells
  t.width =
      cells_length(wide * static_cast<float>(numbers.n_cols()), numbers.n_cols(), m.px(widest_cell), least);
  t.picture_height =
      cells_length(high * static_cast<float>(numbers.n_rows()), numbers.n_rows(), m.px(highest_cell), least);
}

float label_width(const Frame& frame, const StageInfo& stage, bool names) {
  const core::attention::Sequence& sequence = frame.displayed.sequence();
  const auto& tokens = row_tokens(stage, sequence);
  const float index =
      text_width(frame.fonts.mono12, std::to_string(std::max<std::size_t>(1, tokens.size()) - 1)) +
      frame.metrics.px(8);
  if (!names) return index;
  float widest = 0;
  for (const std::string& token : tokens) widest = std::max(widest, text_width(frame.fonts.sans13, token));
  return index + frame.metrics.px(6) + std::min(std::ceil(widest), frame.metrics.px(76));
}

/// Returns the height of the labels above the first row.
float column_header_height(const Frame& frame, const StageInfo& stage, const Tiling& t) {
  Heatmap map;
  map.stage = stage.stage;
  map.width = t.width;
  map.columns = t.names ? ColumnLabels::tokens : ColumnLabels::indices;
  return column_label_height(frame, map);
}

ImVec2 Tiling::picture(std::size_t place) const {
  const auto column = static_cast<float>(place % columns), row = static_cast<float>(place / columns);
  return {labels + column * (static_cast<float>(width) + gap),
          head + row * (static_cast<float>(picture_height) + foot + row_gap)};
}

/// Returns the tiling with the largest pictures that are all visible at once; if they would be too small, one
/// that scrolls as little as possible.
Tiling tile_heads(const Frame& frame, const StageInfo& stage, std::size_t n_pictures, ImVec2 room) {
  const Metrics& m = frame.metrics;
  const core::attention::StageMatrix& numbers = frame.displayed.trace.at(stage.stage, 0);
  const float min_size = m.px(smallest_picture);
  Tiling best;
  float best_rank = -1;
  for (std::size_t columns = n_pictures > 1 ? 2 : 1; columns <= std::max<std::size_t>(1, n_pictures);
       ++columns) {
    Tiling t;
    t.columns = columns;
    t.names = numbers.n_rows() <= max_named_tokens;
    t.labels = label_width(frame, stage, t.names);
    t.gap = m.px(columns > 8 ? 8 : columns > 4 ? 14 : 20);
    t.row_gap = t.gap;
    t.foot = m.px(foot_height);
    const auto across = static_cast<float>(columns);
    const float rows = std::ceil(static_cast<float>(n_pictures) / across);
    const float width = std::floor((room.x - t.labels - t.gap * (across - 1)) / across);
    if (width < min_size && best_rank >= 0) break;
    t.width = std::max(1, static_cast<int>(width));
    t.head = column_header_height(frame, stage, t);
    const float height = std::floor((room.y - t.head - rows * t.foot - (rows - 1) * t.gap) / rows);
    const bool scrolls = height < min_size;
    fit_picture(frame, stage, numbers, std::max(width, 1.0f), scrolls ? std::max(width, min_size) : height,
                t);
    t.head = column_header_height(frame, stage, t);
    t.height = t.head + rows * (static_cast<float>(t.picture_height) + t.foot) + (rows - 1) * t.gap;
    // Tilings without scrolling come first, by the size of a picture; the others by how little they scroll.
    const float area = static_cast<float>(t.width) * static_cast<float>(t.picture_height);
    const float rank = scrolls ? 1 / t.height : 1 + area;
    if (rank > best_rank * 1.001f) best = t, best_rank = rank;
  }
  // The height that whole cells leave goes between the rows, and as much above the legend.
  const std::size_t n_rows = (n_pictures + best.columns - 1) / best.columns;
  const float over =
      std::floor((room.y - best.height) / static_cast<float>(std::max<std::size_t>(1, n_rows)));
  if (over > 0) {
    const float more = std::min(over, m.px(max_extra_row_gap));
    best.row_gap += more, best.height += more * static_cast<float>(n_rows);
  }
  return best;
}

/// Returns the heads with a picture: all in their order, or the first of each group that shares a matrix.
std::vector<std::size_t> pictured_heads(const Frame& frame, const StageInfo& stage) {
  const auto& model = frame.displayed.model;
  const std::size_t n = core::attention::n_matrices(model, stage.stage);
  if (stage.per_head && n == model.n_heads) return sorted_heads(frame);
  std::vector<std::size_t> heads;
  for (std::size_t k = 0; k < n; ++k) heads.push_back(core::attention::head_of_matrix(model, stage.stage, k));
  return heads;
}

/// Returns the figure under every head: the one that they are sorted by, else the entropy.
HeadMetric shown_figure(const Frame& frame) {
  return frame.displayed.look.heads_order.value_or(HeadMetric::entropy);
}

/// Draws name and figure under a picture, and the figure as a bar.
void draw_caption(const Frame& frame, Stage stage, std::size_t h, bool chosen, ImVec2 at, float width) {
  const Rgb ink = chosen ? frame.palette.text : frame.palette.dim;
  const float middle = at.y + frame.metrics.px(16);
  if (core::attention::n_matrices(frame.displayed.model, stage) < frame.displayed.model.n_heads) {
    draw_text(frame.fonts.sans14, {at.x, middle}, Align::left_middle, ink,
              head_words(frame.displayed.model, stage, h));
    return;  // only single heads have figures
  }
  const auto& value = head_statistics(frame)[h].*core::attention::info(shown_figure(frame)).value;
  const std::string number = figure_text(shown_figure(frame), value, frame.displayed.model.n_keys()),
                    name =
                        fmt::format("head {}{}", h, frame.displayed.model.is_ablated(h) ? " · ablated" : "");
  draw_text(frame.fonts.sans14, {at.x, middle}, Align::left_middle, ink, name);
  const float room = width - text_width(frame.fonts.sans14, name) - frame.metrics.px(6);
  if (text_width(frame.fonts.mono12, number) <= room)
    draw_text(frame.fonts.mono12, {at.x + width, middle}, Align::right_middle, ink, number);
  const float top = at.y + frame.metrics.px(27), bottom = top + frame.metrics.px(3);
  const double share = value ? std::clamp(*value / figure_max(frame, shown_figure(frame)), 0.0, 1.0) : 0;
  draw_fraction_bar(frame, {at.x, top}, {at.x + width, bottom}, share,
                    chosen ? frame.palette.accent : frame.palette.faint);
}

void draw_tile(const Frame& frame, const StageInfo& stage, const Tiling& t, std::size_t h, std::size_t place,
               ImVec2 origin) {
  const auto& m = frame.metrics;
  const std::size_t column = place % t.columns, row = place / t.columns;
  Heatmap map;
  map.place = "heads/" + std::to_string(h);
  map.stage = stage.stage;
  map.of_gradient = shows_gradient(frame, stage.stage);
  map.head = h;
  map.width = t.width, map.height = t.picture_height;
  map.row_tokens = t.names;
  map.label_width = column == 0 ? t.labels : 0;
  map.columns = row > 0 ? ColumnLabels::none : t.names ? ColumnLabels::tokens : ColumnLabels::indices;
  map.show_bar = false;
  const ImVec2 picture = t.picture(place);
  const ImVec2 corner{origin.x + picture.x - map.label_width,
                      origin.y + picture.y - column_label_height(frame, map)};
  const float left = std::round(corner.x + map.label_width);
  const float top = std::round(origin.y + picture.y);
  const float bottom = top + static_cast<float>(t.picture_height), width = static_cast<float>(t.width),
              right = left + width;
  const float margin = std::min(m.px(8), std::floor(t.gap / 2));
  const ImVec2 tile_min{left - margin, top - margin}, tile_max{right + margin, bottom + m.px(34)};
  if (stage.per_head && h == frame.displayed.selection.hovered_head)
    draw_rect(tile_min, tile_max, frame.palette.background.raised, m.px(3));
  draw_heatmap(frame, map, corner);
  if (!stage.per_head) {
    draw_text(frame.fonts.sans14, {left, bottom + m.px(16)}, Align::left_middle, frame.palette.dim,
              "all heads");
    draw_title_area(frame, "heads/name/all", stage.stage, 0, {left, bottom + m.px(6)},
                    {text_width(frame.fonts.sans14, "all heads"), m.px(20)});
    return;
  }
  const auto& model = frame.displayed.model;
  const bool chosen =
      matrix_of_head(model, stage.stage, h) == matrix_of_head(model, stage.stage, frame.displayed.look.head);
  if (chosen) outline({left - 2, top - 2}, {right + 1, bottom + 1}, frame.palette.selection, 2);
  draw_caption(frame, stage.stage, h, chosen, {left, bottom}, width);
  platform::move_to({left, bottom + m.px(6)});
  const bool pressed = hit_area(("select head " + std::to_string(h)).c_str(), {width, m.px(26)});
  frame.landmarks.mark_item("heads/name/" + std::to_string(h));
  draw_focus(frame, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (pressed) frame.commands.add(set<&Look::head>(h));
  if (ImGui::IsItemHovered()) {
    if (ImGui::IsMouseDoubleClicked(0)) frame.commands.add(set<&Look::head>(h), set<&Look::tab>(Tab::stages));
    tooltip("Click to select the head, double-click for its stages, right-click for more.");
  }
  draw_stage_menu(frame, "heads", stage.stage, h);
  if (ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
      ImGui::IsMouseHoveringRect(tile_min, tile_max))
    frame.commands.add(set<&Selection::hovered_head>(h));
}

/// Draws the legend below all pictures: their colors, if shared, and the meaning of the bars under the heads.
void draw_legend(const Frame& frame, const StageInfo& stage, const std::vector<std::size_t>& heads, ImVec2 at,
                 float room) {
  const auto ends = [&](std::size_t h) { return color_limits(frame, stage.stage, h); };
  std::string words;
  if (std::ranges::all_of(heads, [&](std::size_t h) { return ends(h) == ends(heads.front()); })) {
    const ColorScale scale{chosen_map(frame.displayed.look.colors, stage.coloring), frame.palette.dark,
                           ends(heads.front())};
    const float width = draw_plain_bar(frame, scale, at, frame.metrics.px(180));
    frame.landmarks.mark("heads/bar", {at.x, at.y - 4}, {at.x + width, at.y + 4});
    at.x += width + frame.metrics.px(16), room -= width + frame.metrics.px(16);
    if (const float link = scale_link_width(frame, stage.stage, heads.front()); link > 0) {
      draw_scale_link(frame, "heads", {at.x + link - frame.metrics.px(12), at.y});
      at.x += link + frame.metrics.px(8), room -= link + frame.metrics.px(8);
    }
  } else {
    words = "each map has its own range of colors";
  }
  if (stage.per_head && heads.size() == frame.displayed.model.n_heads) {
    const std::string figure = figure_description(frame, shown_figure(frame)),
                      before = words.empty() ? "" : words + "; ";
    words = before + "bar: " + figure;
    if (text_width(frame.fonts.sans13, words) > room) words = before + figure;
  }
  draw_text(frame.fonts.sans13, at, Align::left_middle, frame.palette.faint,
            shortened(frame.fonts.sans13, words, room));
}

}  // namespace

void draw_heads(const Frame& frame) {
  const StageInfo& stage = core::attention::info(frame.displayed.look.heads_stage);
  const float scrollbar = ImGui::GetStyle().ScrollbarSize;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float padding = origin.x - ImGui::GetWindowPos().x;
  const ImVec2 room{std::floor(ImGui::GetWindowWidth() - 2 * padding - scrollbar),
                    ImGui::GetContentRegionAvail().y - frame.metrics.px(26)};
  const std::vector<std::size_t> order = pictured_heads(frame, stage);
  const Tiling t = tile_heads(frame, stage, order.size(), room);
  for (std::size_t place = 0; place < order.size(); ++place)
    draw_tile(frame, stage, t, order[place], place, origin);
  draw_legend(frame, stage, order, {origin.x + t.labels, origin.y + t.height + frame.metrics.px(12)},
              room.x - t.labels);
  reserve_room(origin, {std::min(room.x, ImGui::GetContentRegionAvail().x),
                        std::max(1.0f, t.height + frame.metrics.px(24))});
}

}  // namespace app::panels
