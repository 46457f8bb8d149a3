#pragma once

#include <optional>

#include "app/session/view.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// Pins a cell, or releases it when it is pinned already; shows its head.
void pin(View& view, const CellRef& cell);

/// Pins a cell that the pinned one is made of or leads to, and remembers the way back.
void follow(View& view, const CellRef& cell);

/// Pins the cell from which the last one was followed.
void go_back(View& view);

/// Whether single cells of a stage can be typed over: embeddings are edited where they stand, the mask is
/// switched.
bool can_be_typed_over(Stage stage);

/// The edit that hides a cell between two tokens from its query, or shows it when it is hidden; nothing for
/// other cells.
std::optional<core::editing::SwitchMaskCell> mask_switch(const std::optional<CellRef>& cell,
                                                         const core::attention::Trace& trace);

/// Whether the mouse is on something that is previewed elsewhere.
bool is_pointing(const Look& look, const Selection& selection);
void stop_pointing(View& view);

/// Pins a query of the token view, or releases it when it is pinned already.
void pin_query(View& view, std::size_t query);

/// Nothing is pinned any more and there is no way back.
void release(LookedAt& view);

}  // namespace app
