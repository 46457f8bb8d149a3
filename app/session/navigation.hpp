#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/view.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// Whether single cells of a stage can be typed over: embeddings are edited where they stand, the mask is
/// switched.
bool can_be_typed_over(Stage stage);

/// The edit that hides a cell between two tokens from its query, or shows it when it is hidden; nothing for
/// other cells.
std::optional<core::editing::SwitchMaskCell> mask_switch(const std::optional<CellRef>& cell,
                                                         const core::attention::Trace& trace);

/// Whether the mouse is on something that is previewed elsewhere.
bool is_pointing(const Look& look, const Selection& selection);

/// Nothing is pinned any more and there is no way back.
void release(LookedAt& view);

CellWindow whole(Shape shape);

/// The part of matrices of that shape which their pictures show: all of it, unless it is zoomed.
CellWindow shown_part(const Look& look, Shape shape);

/// Whether the wheel over a cell of a matrix of that shape zooms and does not scroll: with Ctrl, over a stage
/// that is shown large, over what is zoomed already, and over the map whose cell is pinned.
bool wheel_zooms(const Look& look, const Selection& selection, const CellRef& over, Shape shape, bool ctrl);

/// Whether the wheel scrolls and does not zoom: it began to outside of a picture and the mouse has rested
/// since.
bool wheel_scrolls(const Selection& selection, float mouse_x, float mouse_y);

/// Drops everything that is looked at and that a model does not have: heads, cells, tokens, stages,
/// matrices.
void keep_within(LookedAt& view, const core::attention::Model& model);

/// The matrix that the editor shows: the one that was chosen, or the embeddings where the model has no such.
core::editing::MatrixPlace edited_place(const Look& look, const core::attention::Model& model);

/// Why decoding token by token would give other numbers than the model shows, or "" where row i of every
/// stage depends on tokens up to i alone: without dropout, mistakes, given numbers and keys of their own,
/// with a mask that hides every later key.
std::string why_not_decoded(const core::attention::Model& model);

constexpr double leg_seconds = 1.6;  ///< of one step of an animation at speed 1

/// The cells that the animation of a cell makes one after the other, the cell itself last; none for what is
/// made of nothing.
std::vector<CellRef> flown_cells(const core::attention::Model& model, const core::attention::Trace& trace,
                                 const CellRef& cell);

/// One step of the animation under way.
struct AnimationLeg {
  std::size_t index = 0, count = 0;
  CellRef to;
  double share = 0;  ///< of it that is done, 0 … 1
};
/// Nothing where no animation of the pinned cell is under way; where it has stopped between two steps, the
/// one that was shown last.
std::optional<AnimationLeg> leg_under_way(const Displayed& shown);

/// One thing to do in the window, and whether it was done.
struct TourStep {
  const char* title;
  const char* words;
  const char* place;  ///< the landmark that it points at
  bool (*done)(const Selection& now, Dialog dialog, const core::attention::Model& model);
};
std::span<const TourStep> tour_steps();

/// Begins the tour, with the window as it needs it.
void start_tour(View& view, const core::attention::Model& model);
/// Goes on to the next step, or ends the tour after the last.
void go_on_in_tour(View& view, const core::attention::Model& model);
/// Ends it; it is not offered again by itself.
void leave_tour(View& view);

}  // namespace app
