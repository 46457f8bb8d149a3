#pragma once

#include <cstddef>

#include "app/session/view.hpp"

namespace app {

/// Rows and columns of a matrix.
using Shape = std::pair<std::size_t, std::size_t>;

CellWindow whole(Shape shape);

/// The part of matrices of that shape which their pictures show: all of it, unless it is zoomed.
CellWindow shown_part(const Look& look, Shape shape);

/// Shows factor times as many cells in each direction, at least one; the given point, in cells, stays where
/// it is.
void zoom(View& view, Shape shape, double row, double column, double factor);

/// Moves the shown part by so many cells, as far as there are any.
void move_part(View& view, Shape shape, double rows, double columns);

/// Whether the wheel over a cell of a matrix of that shape zooms and does not scroll: with Ctrl, over a stage
/// that is shown large, over what is zoomed already, and over the map whose cell is pinned.
bool wheel_zooms(const Look& look, const Selection& selection, const CellRef& over, Shape shape, bool ctrl);

/// Whether the wheel scrolls and does not zoom: it began to beside a picture and the mouse has rested since.
bool wheel_scrolls(const Selection& selection, float mouse_x, float mouse_y);

/// Moves the shown part so that the cell is in it.
void bring_into_part(View& view, Shape shape, std::size_t row, std::size_t column);

}  // namespace app
