#include "app/ui/widgets/editor/matrix_grid.hpp"

#include <algorithm>
#include <cmath>

namespace app::widgets {
namespace {

MatrixGrid::Range visible(float from, float to, float pitch, std::size_t n) {
  const auto index = [n](float cells) {
    return static_cast<std::size_t>(std::clamp(cells, 0.0f, static_cast<float>(n)));
  };
  return {index(std::floor(from / pitch)), index(std::ceil(to / pitch))};
}

/// How far a stretch lies outside a window: negative before it, positive behind it.
float outside(float from, float to, float window_from, float window_to) {
  if (from < window_from || to - from > window_to - window_from) return from - window_from;
  return std::max(0.0f, to - window_to);
}

bool is_inside(ImVec2 pos, ImVec2 min, ImVec2 max) {
  return pos.x >= min.x && pos.x < max.x && pos.y >= min.y && pos.y < max.y;
}

}  // namespace

ImVec2 MatrixGrid::size() const {
  return {label_width + pitch.x * static_cast<float>(n_columns),
          header_height + pitch.y * static_cast<float>(n_rows)};
}

ImVec2 MatrixGrid::cell_min(std::size_t row, std::size_t column) const {
  return {origin.x + label_width + pitch.x * static_cast<float>(column),
          origin.y + header_height + pitch.y * static_cast<float>(row)};
}

MatrixGrid::Range MatrixGrid::visible_rows() const {
  const float first = origin.y + header_height;
  return visible(view_min.y + header_height - first, view_max.y - first, pitch.y, n_rows);
}

MatrixGrid::Range MatrixGrid::visible_columns() const {
  const float first = origin.x + label_width;
  return visible(view_min.x + label_width - first, view_max.x - first, pitch.x, n_columns);
}

std::optional<MatrixGrid::Cell> MatrixGrid::cell_at(ImVec2 pos) const {
  if (!is_inside(pos, {view_min.x + label_width, view_min.y + header_height}, view_max)) return std::nullopt;
  const float x = std::floor((pos.x - origin.x - label_width) / pitch.x);
  const float y = std::floor((pos.y - origin.y - header_height) / pitch.y);
  if (x < 0 || y < 0 || x >= static_cast<float>(n_columns) || y >= static_cast<float>(n_rows))
    return std::nullopt;
  return Cell{static_cast<std::size_t>(y), static_cast<std::size_t>(x)};
}

std::optional<std::size_t> MatrixGrid::label_at(ImVec2 pos) const {
  const ImVec2 min(view_min.x, view_min.y + header_height), max(view_min.x + label_width, view_max.y);
  const float y = std::floor((pos.y - origin.y - header_height) / pitch.y);
  if (!is_inside(pos, min, max) || y < 0 || y >= static_cast<float>(n_rows)) return std::nullopt;
  return static_cast<std::size_t>(y);
}

ImVec2 MatrixGrid::scroll_to(std::size_t row, std::size_t column) const {
  const ImVec2 min = cell_min(row, column);
  return {outside(min.x, min.x + pitch.x, view_min.x + label_width, view_max.x),
          outside(min.y, min.y + pitch.y, view_min.y + header_height, view_max.y)};
}

MatrixGrid matrix_grid(const Metrics& metrics, std::size_t n_rows, std::size_t n_columns, float label_width,
                       float width, float numbers_width) {
  MatrixGrid grid;
  grid.n_rows = n_rows, grid.n_columns = n_columns;
  grid.label_width = label_width, grid.header_height = metrics.px(20), grid.gap = metrics.px(2);
  const float fitting = std::floor((width - label_width) / static_cast<float>(n_columns));
  const float least = std::max(metrics.px(44), std::ceil(numbers_width));
  grid.pitch = {std::clamp(fitting, least, std::max(least, metrics.px(72))), metrics.px(26)};
  // Of more columns than fit, whole ones are seen: half of a number would be another number.
  if (const float whole = std::floor((width - label_width) / grid.pitch.x); fitting < least && whole >= 1)
    grid.pitch.x = std::floor((width - label_width) / whole);
  return grid;
}

}  // namespace app::widgets
