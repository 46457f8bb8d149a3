#include "app/ui/panels/stages/stages_panel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"

namespace app::panels {

namespace {

/// A picture on the screen, and the part of the matrix that it displays.
struct DisplayedPicture {
  ImVec2 min, max;
  CellWindow part;
};

/// Returns the cell whose row and column are displayed.
std::optional<CellRef> chosen_cell(const Frame& frame, const core::attention::StageInfo& stage) {
  for (const auto& cell : {frame.displayed.selection.pinned, frame.displayed.selection.hovered})
    if (cell && cell->stage == stage.stage)
      return cell;  // of any head: the same row and column are displayed in all
  return std::nullopt;
}

/// A row or a column of numbers as bars along a side of the picture.
struct Profile {
  const Frame& frame;
  ImVec2 min, max;  // of its background
  bool upright;     // numbers run down, bars to the right
  double from, to;  // displayed range of the numbers, in cells
  ValueRange range;

  float along(double cell) const {
    const float begin = upright ? min.y : min.x, end = upright ? max.y : max.x;
    return begin + (end - begin) * static_cast<float>((cell - from) / (to - from));
  }
  /// Returns how far a number is from the side where the bars begin, 0 … 1.
  float share(double v) const {
    const double low = std::min(0.0, range.smallest), high = std::max(0.0, range.largest);
    return high > low ? static_cast<float>((v - low) / (high - low)) : 0;
  }
  void bar(double first, double last, double v, ImU32 color) const {
    const float a = std::round(along(first)),
                b = std::max(a + 1, std::round(along(last)) - (along(last) - along(first) >= 4 ? 1 : 0));
    const float zero = share(0), end = share(v), low = std::min(zero, end), high = std::max(zero, end);
    if (upright) {
      const float w = max.x - min.x;
      draw_rect({min.x + w * low, a}, {std::max(min.x + w * high, min.x + w * low + 1), b}, color);
    } else {
      const float h = max.y - min.y;
      draw_rect({a, max.y - h * high}, {b, std::min(max.y - h * low, max.y)}, color);
    }
  }
};

/// Draws one bar per cell, or per pixel if there are more cells than pixels: then the one farthest from 0.
template <class NumberAt>
void draw_bars(const Profile& p, std::size_t count, std::size_t chosen, NumberAt number) {
  const float length = p.upright ? p.max.y - p.min.y : p.max.x - p.min.x;
  const double cells_per_pixel = std::max(1.0, std::ceil((p.to - p.from) / static_cast<double>(length)));
  const auto step = static_cast<std::size_t>(cells_per_pixel);
  const ImU32 plain = packed(p.frame.palette.faint), bright = packed(p.frame.palette.selection);
  const auto first = static_cast<std::size_t>(p.from) / step * step;
  const auto end = std::min(count, static_cast<std::size_t>(std::ceil(p.to)));
  ImGui::GetWindowDrawList()->PushClipRect(p.min, p.max, true);
  for (std::size_t k = first; k < end; k += step) {
    double v = 0;
    for (std::size_t i = k; i < std::min(k + step, count); ++i)
      if (std::isfinite(number(i)) && std::abs(number(i)) > std::abs(v)) v = number(i);
    const bool is_chosen = chosen >= k && chosen < k + step;
    if (v != 0 || is_chosen)
      p.bar(static_cast<double>(k), static_cast<double>(k + step), v, is_chosen ? bright : plain);
  }
  ImGui::GetWindowDrawList()->PopClipRect();
}

void draw_row(const Frame& frame, const core::attention::StageMatrix& stage, const DisplayedPicture& picture,
              float top, float room, const CellRef& cell) {
  const arma::rowvec numbers = stage.row(cell.row);
  const ValueRange range = value_range(numbers);
  const Profile p{frame, {picture.min.x, top}, {picture.max.x, top + room},
                  false, picture.part.left,    picture.part.right,
                  range};
  draw_rect(p.min, p.max, frame.palette.background.panel);
  draw_bars(p, numbers.n_elem, cell.column, [&](std::size_t j) { return numbers[j]; });
  const float right = picture.min.x - frame.metrics.px(6);
  const auto text = [&](float y, Rgb color, const std::string& words) {
    draw_text(frame.fonts.mono12, {right, y}, Align::right_middle, color, words);
  };
  text(top + frame.metrics.px(6), frame.palette.faint, end_text(std::max(0.0, range.largest)));
  text(top + room / 2, frame.palette.dim, "row " + std::to_string(cell.row));
  text(top + room - frame.metrics.px(5), frame.palette.faint, end_text(std::min(0.0, range.smallest)));
  frame.landmarks.mark("large/row", p.min, p.max);
}

void draw_column(const Frame& frame, const core::attention::StageMatrix& stage,
                 const DisplayedPicture& picture, float left, float room, const CellRef& cell) {
  arma::vec numbers(stage.n_rows());
  for (std::size_t i = 0; i < numbers.n_elem; ++i) numbers[i] = stage(i, cell.column);
  const ValueRange range = value_range(numbers);
  const Profile p{frame, {left, picture.min.y}, {left + room, picture.max.y},
                  true,  picture.part.top,      picture.part.bottom,
                  range};
  draw_rect(p.min, p.max, frame.palette.background.panel);
  draw_bars(p, numbers.n_elem, cell.row, [&](std::size_t i) { return numbers[i]; });
  const float y = picture.min.y - frame.metrics.px(9);
  draw_text(frame.fonts.mono12, {left, y}, Align::left_middle, frame.palette.faint,
            end_text(std::min(0.0, range.smallest)));
  draw_text(frame.fonts.mono12, {left + room, y}, Align::right_middle, frame.palette.faint,
            end_text(std::max(0.0, range.largest)));
  draw_text(frame.fonts.mono12, {left, y - frame.metrics.px(15)}, Align::left_middle, frame.palette.dim,
            "column " + std::to_string(cell.column));
  frame.landmarks.mark("large/column", p.min, p.max);
}

/// Draws the whole map in a corner, with a frame around the part that the large picture displays.
void draw_overview(const Frame& frame, const core::attention::StageInfo& stage,
                   const core::attention::StageMatrix& numbers, const CellWindow& part, ImVec2 at,
                   float room) {
  const CellWindow all{0, 0, static_cast<double>(numbers.n_cols()), static_cast<double>(numbers.n_rows())};
  if (part == all) return;
  Heatmap map;
  map.place = "large/overview";
  map.stage = stage.stage;
  map.head = frame.displayed.look.head;
  map.width = map.height = std::max(1, static_cast<int>(room));
  map.show_numbers = false;
  map.whole = true;
  draw_picture(frame, map, at);
  const auto x = [&](double column) { return at.x + room * static_cast<float>(column / all.right); };
  const auto y = [&](double row) { return at.y + room * static_cast<float>(row / all.bottom); };
  outline({std::round(x(part.left)) - 1, std::round(y(part.top)) - 1},
          {std::round(x(part.right)) + 1, std::round(y(part.bottom)) + 1}, frame.palette.selection, 1);
  frame.landmarks.mark("large/overview", at, {at.x + room, at.y + room});
}

/// Draws the row and the column of the pinned, else the hovered cell as bars, aligned with the picture: the
/// column right of it and room.x wide, the row below and room.y high, both starting at `at`; in the corner
/// between them, the whole map.
void draw_profiles(const Frame& frame, const core::attention::StageInfo& stage,
                   const core::attention::StageMatrix& numbers, const DisplayedPicture& picture, ImVec2 at,
                   ImVec2 room) {
  draw_overview(frame, stage, numbers, picture.part, at, std::min(room.x, room.y));
  if (const auto cell = chosen_cell(frame, stage)) {
    draw_row(frame, numbers, picture, at.y, room.y, *cell);
    draw_column(frame, numbers, picture, at.x, room.x, *cell);
    return;
  }
  draw_text(frame.fonts.sans13, {picture.min.x, at.y + frame.metrics.px(10)}, Align::left_middle,
            frame.palette.faint,
            "Hover over a cell or pin one to see its row here and its column at the right.");
}

using core::attention::Columns;
using core::attention::StageInfo;

// At scale 1.
constexpr float max_thumbnail_size = 64, thumbnail_gap = 12, title_height = 28, bar_height = 30,
                profile_room = 64, max_profile_width = 150, profile_heading = 32;

std::vector<const StageInfo*> shown_stages(const Frame& frame) {
  std::vector<const StageInfo*> shown;
  for (const StageInfo& stage : core::attention::stages())
    if (frame.displayed.has(stage.stage) &&
        (!frame.displayed.look.folded.contains(stage.stage) || frame.displayed.look.large == stage.stage))
      shown.push_back(&stage);
  return shown;
}

/// Draws one stage as a button; matrices of features are narrower.
void draw_thumbnail(const Frame& frame, const StageInfo& stage, ImVec2 at, float side) {
  const core::attention::StageMatrix& numbers =
      frame.displayed.trace.at(stage.stage, frame.displayed.look.head);
  const std::string name = std::string("large/stage/") + stage.name;
  const float wide = stage.columns == Columns::tokens
                         ? side
                         : std::max(side / 3, std::min(side, side * static_cast<float>(numbers.n_cols()) /
                                                                 static_cast<float>(numbers.n_rows())));
  Heatmap map;
  map.place = name;
  map.stage = stage.stage;
  map.head = frame.displayed.look.head;
  map.width = std::max(1, static_cast<int>(wide)), map.height = std::max(1, static_cast<int>(side));
  map.show_numbers = false;
  map.whole = true;
  platform::move_to(at);
  const bool pressed = hit_area(name.c_str(), {side, side + frame.metrics.px(18)});
  frame.landmarks.mark_item(name);
  const bool focused = has_keyboard_focus();
  tooltip(stage.title);
  if (pressed) frame.commands.add(set<&Look::large>(stage.stage));
  draw_picture(frame, map, at);
  const bool chosen = frame.displayed.look.large == stage.stage;
  if (chosen || focused)
    outline({at.x - 4, at.y - 4}, {at.x + static_cast<float>(map.width) + 4, at.y + side + 4},
            focused ? frame.palette.accent : frame.palette.selection, 2);
  draw_text(frame.fonts.sans12, {at.x, at.y + side + frame.metrics.px(12)}, Align::left_middle,
            chosen ? frame.palette.text : frame.palette.dim,
            shortened(frame.fonts.sans12, stage.title, side + frame.metrics.px(thumbnail_gap - 2)));
}

/// Draws the thumbnails in a row; returns its height.
float draw_thumbnails(const Frame& frame, ImVec2 origin, float width) {
  const auto& m = frame.metrics;
  const auto shown = shown_stages(frame);
  const float pitch = std::min(m.px(max_thumbnail_size + thumbnail_gap),
                               (width - m.px(8)) / static_cast<float>(shown.size()));
  const float side = std::floor(pitch - m.px(thumbnail_gap));
  float x = origin.x + 4;
  for (const StageInfo* stage : shown) {
    draw_thumbnail(frame, *stage, {std::round(x), origin.y + 4}, side);
    x += pitch;
  }
  return side + m.px(30);
}

/// Returns the size of the picture: all of the room, in whole-pixel cells if these leave little unused. Token
/// columns have cells no higher than wide, and wider only where that helps digits.
ImVec2 picture_size(const Frame& frame, const StageInfo& stage, const core::attention::StageMatrix& numbers,
                    ImVec2 room) {
  const auto& m = frame.metrics;
  constexpr float widest = 220, highest = 140, max_aspect_ratio = 2.5f, min_numbered_cell = 26;
  const auto columns = static_cast<float>(numbers.n_cols()), rows = static_cast<float>(numbers.n_rows());
  constexpr float min_used_share = 0.85f;
  const auto whole = [](float length, float count) {
    const float pixels = count * std::floor(length / count);
    return length < count * 2 || pixels < min_used_share * length ? std::floor(length) : pixels;
  };
  float wide = std::min(room.x / columns, m.px(widest)), high = std::min(room.y / rows, m.px(highest));
  if (stage.columns == Columns::tokens) {
    high = std::min(high, wide);
    wide = std::min(wide, wide < m.px(min_numbered_cell) ? high : max_aspect_ratio * high);
  }
  return {std::max(1.0f, whole(wide * columns, columns)), std::max(1.0f, whole(high * rows, rows))};
}

/// Draws title, formula and shape; at the right the scale of the picture and the buttons "fit" and "back".
void draw_title(const Frame& frame, const StageInfo& stage, float cell, ImVec2 at, float width) {
  const auto& f = frame.fonts;
  const float middle = at.y + frame.metrics.px(title_height) / 2;
  const float top = std::round(middle - platform::font_size(f.sans17) * 0.56f);
  draw_stage_title(frame, "large/title", stage.stage, f.sans17, {at.x, top});
  float x = at.x + text_width(f.sans17, stage_title(frame, stage.stage)) + frame.metrics.px(10);
  const auto lowered = [&](ImFont* small) { return top + baseline_drop(f.sans17, small); };
  std::string words = core::graph::formula(frame.displayed.graph, frame.displayed.model, stage.stage, false);
  x += draw_formula(f.sans14, {x, lowered(f.sans14)}, frame.palette.dim, words) + frame.metrics.px(10);
  if (stage.per_head) {
    words = head_words(frame.displayed.model, stage.stage, frame.displayed.look.head);
    x += draw_text(f.sans14, {x, lowered(f.sans14)}, frame.palette.dim, words) + frame.metrics.px(10);
  }
  draw_text(f.mono12, {x, lowered(f.mono12)}, Align::left_top, frame.palette.faint,
            core::attention::torch_shape(frame.displayed.model, stage.stage));
  const char *back_words = "all stages", *fit_words = "fit";
  const float right = at.x + width, back = button_width(frame, back_words),
              fit = button_width(frame, fit_words), gap = frame.metrics.px(8);
  const float button_top = std::round(middle - frame.metrics.frame / 2);
  platform::move_to({right - back, button_top});
  if (button(frame, "large/back", back_words, "Returns to all stages (Esc, L)"))
    frame.commands.add(set<&Look::large>(std::nullopt));
  platform::move_to({right - back - gap - fit, button_top});
  if (button(frame, "large/fit", fit_words, "Shows all cells again (F)"))
    frame.commands.add(set<&Look::zoomed>({}));
  const std::string measure = cell >= 1 ? "1 cell = " + fixed(cell, cell < 10 ? 1 : 0) + " px"
                                        : "1 px = " + fixed(1 / cell, 1) + " cells";
  draw_text(f.mono12, {right - back - fit - 2 * gap, middle}, Align::right_middle, frame.palette.dim,
            measure);
}

}  // namespace

void draw_large(const Frame& frame) {
  const auto& m = frame.metrics;
  const StageInfo& stage = core::attention::info(*frame.displayed.look.large);
  const core::attention::StageMatrix& numbers =
      frame.displayed.trace.at(stage.stage, frame.displayed.look.head);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const bool shows_rope_view = has_rope_view(frame, stage.stage);
  const ImVec2 room{ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize,
                    ImGui::GetContentRegionAvail().y - (shows_rope_view ? rope_view_height(frame) : 0)};
  const float thumbnails = draw_thumbnails(frame, origin, room.x);

  Heatmap map;
  map.place = std::string("large/") + stage.name;
  map.stage = stage.stage;
  map.of_gradient = shows_gradient(frame, stage.stage);
  map.head = frame.displayed.look.head;
  map.label_width = m.px(92);
  map.show_bar = stage.columns != Columns::single;
  if (frame.displayed.look.gutters && stage.columns == Columns::tokens) map.gutter_width = m.px(54);
  const float gutters = map.gutter_width * static_cast<float>(gutter_count(stage.stage));
  const float profile = m.px(profile_room), top = origin.y + thumbnails + m.px(title_height);
  const float across = room.x - map.label_width - gutters - profile - m.px(40);
  map.width = std::max(1, static_cast<int>(across));  // the height of the labels depends on it
  const float labels = std::max(column_label_height(frame, map), m.px(profile_heading));
  const float down = origin.y + room.y - top - labels - m.px(bar_height) - profile - m.px(16);
  const ImVec2 size =
      picture_size(frame, stage, numbers, {std::max(m.px(60), across), std::max(m.px(60), down)});
  map.width = static_cast<int>(size.x), map.height = static_cast<int>(size.y);
  // Room left by whole and square cells goes to the profiles.
  const float widest = m.px(max_profile_width);
  const ImVec2 profiles{std::clamp(std::floor(across - size.x) + profile, profile, widest),
                        std::clamp(std::floor(down - size.y) + profile, profile, widest)};

  const CellWindow part = displayed_window(frame.displayed.look, {numbers.n_rows(), numbers.n_cols()});
  draw_title(frame, stage, size.x / static_cast<float>(part.right - part.left),
             {origin.x, origin.y + thumbnails}, room.x);
  const float lowered = std::max(0.0f, m.px(profile_heading) - column_label_height(frame, map));
  draw_heatmap(frame, map, {origin.x, top + lowered});
  handle_stage(frame, stage.stage);
  const ImVec2 corner{std::round(origin.x + map.label_width),
                      std::round(top + lowered + column_label_height(frame, map))};
  const ImVec2 far{corner.x + size.x, corner.y + size.y};
  draw_profiles(frame, stage, numbers, {corner, far, part},
                {far.x + gutters + m.px(14), far.y + m.px(bar_height)}, profiles);
  const float bottom = far.y + m.px(bar_height) + profiles.y + m.px(8);
  if (shows_rope_view) draw_rope_view(frame, {origin.x, bottom}, room.x);
  reserve_room(origin,
               {room.x, std::max(1.0f, bottom + (shows_rope_view ? rope_view_height(frame) : 0) - origin.y)});
}

}  // namespace app::panels
