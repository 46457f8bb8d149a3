#include "app/session/zoom.hpp"

#include <algorithm>
#include <cmath>

namespace app {
namespace {

/// Puts a span of that length, begun at a place, into 0 … most.
double begin_within(double begin, double length, double most) {
  return std::clamp(begin, 0.0, std::max(0.0, most - length));
}

void show_part(View& view, Shape shape, CellWindow part) {
  const CellWindow all = whole(shape);
  const double width = std::clamp(part.right - part.left, std::min(1.0, all.right), all.right);
  const double height = std::clamp(part.bottom - part.top, std::min(1.0, all.bottom), all.bottom);
  part.left = begin_within(part.left, width, all.right);
  part.top = begin_within(part.top, height, all.bottom);
  part.right = part.left + width, part.bottom = part.top + height;
  if (part == all)
    view.look.zoomed.erase(shape);
  else
    view.look.zoomed[shape] = part;
}

}  // namespace

CellWindow whole(Shape shape) {
  return {0, 0, static_cast<double>(shape.second), static_cast<double>(shape.first)};
}

CellWindow shown_part(const Look& look, Shape shape) {
  const auto zoomed = look.zoomed.find(shape);
  return zoomed == look.zoomed.end() ? whole(shape) : zoomed->second;
}

void zoom(View& view, Shape shape, double row, double column, double factor) {
  const CellWindow now = shown_part(view.look, shape);
  const double width = now.right - now.left, height = now.bottom - now.top;
  // One factor for both directions, so that cells keep their form until an edge of the matrix is met.
  const double least = std::min(1.0, std::max(1 / width, 1 / height));
  const double by = std::max(factor, least);
  show_part(view, shape,
            {column - (column - now.left) * by, row - (row - now.top) * by,
             column + (now.right - column) * by, row + (now.bottom - row) * by});
}

void move_part(View& view, Shape shape, double rows, double columns) {
  const CellWindow now = shown_part(view.look, shape);
  show_part(view, shape, {now.left + columns, now.top + rows, now.right + columns, now.bottom + rows});
}

bool wheel_zooms(const Look& look, const Selection& selection, const CellRef& over, Shape shape, bool ctrl) {
  const bool large = look.tab == Tab::stages && look.large == over.stage;
  const bool clicked =
      selection.pinned && selection.pinned->stage == over.stage && selection.pinned->head == over.head;
  return ctrl || large || clicked || look.zoomed.contains(shape);
}

bool wheel_scrolls(const Selection& selection, float mouse_x, float mouse_y) {
  constexpr float rest = 3;  // pixels
  return selection.scrolled_at && std::abs(selection.scrolled_at->first - mouse_x) <= rest &&
         std::abs(selection.scrolled_at->second - mouse_y) <= rest;
}

void bring_into_part(View& view, Shape shape, std::size_t row, std::size_t column) {
  const CellWindow now = shown_part(view.look, shape);
  const auto step = [](double from, double to, std::size_t cell) {
    const auto at = static_cast<double>(cell);
    if (to - from <= 1) return at - from;
    return at < from ? at - from : at + 1 > to ? at + 1 - to : 0.0;
  };
  move_part(view, shape, step(now.top, now.bottom, row), step(now.left, now.right, column));
}

}  // namespace app
