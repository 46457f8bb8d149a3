#include "app/ui/panels/lessons/exhibit_panel.hpp"

#include <algorithm>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::lessons::Picture;
using core::lessons::Shading;

// At scale 1.
constexpr float title_height = 26, labels_height = 18, note_height = 22, largest_row = 24, smallest_row = 3,
                edge = 10, picture_gap = 32;

/// The stage in whose manner a picture is drawn.
Stage manner(const Picture& picture) {
  switch (picture.shading) {
    case Shading::weights:
    case Shading::bars:
      return Stage::weights;
    case Shading::mask:
      return Stage::mask;
    case Shading::signed_values:
      break;
  }
  return Stage::scores;
}

Ends ends_of(const Picture& picture) {
  if (picture.shading != Shading::signed_values) return {0, 1};
  const Extent e = extent_of(picture.numbers);
  const double most = std::max(-e.smallest, e.largest);
  return {-most, most};
}

float widest(ImFont* font, const std::vector<std::string>& words) {
  float width = 0;
  for (const std::string& word : words) width = std::max(width, widgets::text_width(font, word));
  return width;
}

/// A picture with the room that its parts take, in pixels.
struct Placed {
  const Picture* picture;
  float labels, cells, ends, title;
  float width() const { return std::max(labels + cells + ends, title); }
};

Placed placed(const Frame& frame, const Picture& p, float room, float row) {
  const float most_words = frame.metrics.px(frame.metrics.compact ? 90 : 150);
  Placed place{&p, 0, 0, 0, 0};
  place.labels = std::min(widest(frame.fonts.sans13, p.rows), most_words) + frame.metrics.px(32);
  place.ends =
      p.ends.empty() ? 0 : std::min(widest(frame.fonts.sans14, p.ends), most_words) + frame.metrics.px(12);
  const float n = static_cast<float>(std::max<arma::uword>(1, p.numbers.n_cols));
  const float named =
      p.columns.empty()
          ? 0
          : std::min(widest(frame.fonts.sans12, p.columns) + frame.metrics.px(6), frame.metrics.px(72));
  const float wished = p.shading == Shading::bars
                           ? frame.metrics.px(220)
                           : n * std::clamp(std::max(row * 1.9f, named), 1.0f, frame.metrics.px(72));
  place.cells = std::floor(std::max(n, std::min(wished, room - place.labels - place.ends)));
  place.title = widgets::text_width(frame.fonts.sans15, p.title);
  return place;
}

/// Lengths instead of colors alone: one column as bars.
void draw_bars(const Frame& frame, const Placed& place, ImVec2 at, float row) {
  const Picture& p = *place.picture;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < p.numbers.n_rows; ++i) {
    const double v = p.numbers(i, 0);
    const float middle = at.y + (static_cast<float>(i) + 0.5f) * row,
                half = std::max(1.0f, row / 2 - frame.metrics.px(3));
    const float from = at.x + place.labels, to = from + place.cells;
    widgets::draw_text(
        frame.fonts.sans13, {from - frame.metrics.px(8), middle}, widgets::Align::right_middle,
        packed(frame.palette.dim),
        widgets::shortened(frame.fonts.sans13, p.rows[i], place.labels - frame.metrics.px(10)));
    list->AddRectFilled({from, middle - half}, {to, middle + half}, packed(frame.palette.control.rest));
    if (std::isfinite(v) && v > 0)
      list->AddRectFilled(
          {from, middle - half}, {from + (to - from) * static_cast<float>(std::min(v, 1.0)), middle + half},
          packed(render::color_at(render::ColorMap::weights, frame.palette.dark, std::max(v, 0.15))));
    widgets::draw_text(frame.fonts.mono13, {to - frame.metrics.px(6), middle}, widgets::Align::right_middle,
                       packed(frame.palette.text), widgets::fixed(v, 2));
  }
}

void draw_cells(const Frame& frame, const Placed& place, const std::string& name, ImVec2 at, float row) {
  const Picture& p = *place.picture;
  const widgets::OtherNumbers numbers{.numbers = &p.numbers,
                                      .version = frame.lesson->version,
                                      .ends = ends_of(p),
                                      .rows = &p.rows,
                                      .columns = p.columns.empty() ? nullptr : &p.columns};
  widgets::Heatmap map;
  map.place = name;
  map.stage = manner(p);
  map.width = static_cast<int>(place.cells);
  map.height = static_cast<int>(std::max(1.0f, row * static_cast<float>(p.numbers.n_rows)));
  map.label_width = place.labels;
  map.show_bar = false;
  map.other = &numbers;
  widgets::draw_heatmap(frame, map, at);
}

void draw_picture(const Frame& frame, const Placed& place, const std::string& name, ImVec2 at, float row) {
  const Picture& p = *place.picture;
  widgets::draw_text(frame.fonts.sans15,
                     {at.x, widgets::centred_y(frame.fonts.sans15, at.y, frame.metrics.px(title_height))},
                     frame.palette.text, p.title);
  const ImVec2 labels(at.x, at.y + frame.metrics.px(title_height)),
      cells(at.x, labels.y + frame.metrics.px(labels_height));
  if (p.shading == Shading::bars)
    draw_bars(frame, place, cells, row);
  else
    draw_cells(frame, place, name, labels, row);
  const float bottom = cells.y + row * static_cast<float>(p.numbers.n_rows);
  if (row >= frame.metrics.px(13))
    for (std::size_t i = 0; i < p.ends.size(); ++i)
      widgets::draw_text(frame.fonts.sans14,
                         {at.x + place.labels + place.cells + frame.metrics.px(12),
                          cells.y + (static_cast<float>(i) + 0.5f) * row},
                         widgets::Align::left_middle, packed(frame.palette.text),
                         widgets::shortened(frame.fonts.sans14, p.ends[i], place.ends));
  frame.landmarks.mark(name, {at.x, at.y}, {at.x + place.width(), bottom});
  if (p.note.empty()) return;
  widgets::draw_text(frame.fonts.sans14,
                     {at.x + place.labels, bottom + frame.metrics.px(note_height) / 2 + frame.metrics.px(2)},
                     widgets::Align::left_middle, packed(frame.palette.dim), p.note);
}

std::size_t most_rows(const std::vector<Picture>& pictures) {
  std::size_t rows = 0;
  for (const Picture& p : pictures) rows = std::max<std::size_t>(rows, p.numbers.n_rows);
  return rows;
}

float around_cells(const Frame& frame) {
  return frame.metrics.px(2 * edge + title_height + labels_height + note_height);
}

}  // namespace

float exhibit_height(const Frame& frame, float most) {
  if (!frame.lesson || frame.lesson->pictures.empty()) return 0;
  const float rows = static_cast<float>(most_rows(frame.lesson->pictures));
  return std::min(around_cells(frame) + rows * frame.metrics.px(largest_row), most);
}

void draw_exhibit(const Frame& frame) {
  const std::vector<Picture>& pictures = frame.lesson->pictures;
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const ImVec2 window = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(window, {window.x + size.x, window.y + size.y});
  list->AddRectFilled({window.x, window.y + size.y - 1}, {window.x + size.x, window.y + size.y},
                      packed(frame.palette.line));
  list->PopClipRect();
  const float rows = static_cast<float>(std::max<std::size_t>(1, most_rows(pictures)));
  const float row = std::clamp(std::floor((size.y - around_cells(frame)) / rows),
                               frame.metrics.px(smallest_row), frame.metrics.px(largest_row));
  const float gap = frame.metrics.px(picture_gap), n = static_cast<float>(pictures.size());
  const float share = (room.x - gap * (n - 1)) / n;
  float x = at.x;
  for (std::size_t k = 0; k < pictures.size(); ++k) {
    const Placed place = placed(frame, pictures[k], share, row);
    draw_picture(frame, place, "exhibit/" + std::to_string(k), {x, at.y}, row);
    x += place.width() + gap;
  }
  platform::move_to(at);
  ImGui::Dummy({room.x, std::max(1.0f, room.y)});
}

}  // namespace app::panels
