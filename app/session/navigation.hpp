#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/session/command.hpp"
#include "app/session/document.hpp"
#include "app/session/view.hpp"
#include "core/graph/explain.hpp"

namespace app {

/// Whether single cells of a stage can be overridden by typing; embeddings are edited directly instead, the
/// mask is toggled.
bool can_be_overridden(Stage stage);

/// Returns the edit that masks a cell of a token × token stage, or unmasks it if it is masked; nothing for
/// other cells.
std::optional<core::editing::SwitchMaskCell> mask_switch(const std::optional<CellRef>& cell,
                                                         const core::attention::Trace& trace);

/// Whether the mouse is over something that is previewed elsewhere.
bool is_pointing(const Look& look, const Selection& selection);

/// Unpins the cell and forgets the way back.
void unpin_cell(ModelView& view);

CellWindow all_cells(MatrixShape shape);

/// Returns the displayed part of matrices of that shape: all of it, unless it is zoomed.
CellWindow displayed_window(const Look& look, MatrixShape shape);

/// Whether the wheel over a cell of a matrix of that shape zooms instead of scrolling: with Ctrl, over the
/// large stage, over a zoomed matrix, and over the map whose cell is pinned.
bool wheel_zooms(const Look& look, const Selection& selection, const CellRef& over, MatrixShape shape,
                 bool ctrl);

/// Whether the wheel keeps scrolling instead of zooming: it began to scroll outside a picture and the mouse
/// has not moved since.
bool wheel_scrolls(const Selection& selection, float mouse_x, float mouse_y);

/// Resets or clamps every part of the view that a model does not have: heads, cells, tokens, stages,
/// matrices. The pinned cell and its animation are of the displayed head.
void clamp_view(ModelView& view, const core::attention::Model& model);

/// Returns the matrix that the editor shows: the chosen one, or the embeddings if the model lacks it.
core::editing::MatrixRef edited_place(const Look& look, const core::attention::Model& model);

/// Returns why decoding token by token would give numbers other than the model's, or "" if row i of every
/// stage depends only on tokens up to i: with a mask of −∞ on every later key and concatenated heads, without
/// cross-attention, dropout, injected bugs and overridden stages.
std::string decoding_problem(const core::attention::Model& model);

constexpr double animation_step_seconds = 1.6;  ///< of one step of an animation at speed 1

/// Returns the cells that the animation of a cell computes in order, the cell itself last; cells without
/// operands are left out.
std::vector<CellRef> animated_cells(const core::explain::Computation& of, const CellRef& cell);

/// One step of the animation under way.
struct AnimationStep {
  std::size_t index = 0, count = 0;
  CellRef to;
  double share = 0;  ///< of this step that is done, 0 … 1
};
/// Returns the current step, or the last one shown if paused between two; nothing without an animation of
/// the pinned cell.
std::optional<AnimationStep> current_animation_step(const Displayed& shown);

/// One task of the tour, and whether it is done.
struct TourStep {
  const char* title;
  const char* words;
  const char* place;  ///< the landmark that it points at
  bool (*done)(const Selection& now, const Look& look, Dialog dialog, const core::attention::Model& model);
};
std::span<const TourStep> tour_steps();

/// Starts the tour and prepares the view for it.
void start_tour(View& view, const core::attention::Model& model);
/// Moves to the next step, or ends the tour after the last.
void advance_tour(View& view, const core::attention::Model& model);
/// Ends the tour, which is not offered again automatically.
void leave_tour(View& view);

/// Returns the commands that go back to the k-th cell of LayersLook::path.
std::vector<Command> commands_back(const LayersLook& look, std::size_t k);

}  // namespace app
