#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/session/presenting.hpp"
#include "app/session/tour.hpp"
#include "core/graph/address.hpp"
#include "core/graph/stages.hpp"

namespace app {

using core::attention::Stage;

/// One cell of one stage; head counts only for stages that have one a head.
using CellRef = core::explain::CellAddress;

/// Where the edit cursor stands in the matrix editor.
struct EditCursor {
  std::size_t row = 0, column = 0;
  bool waiting = false;   ///< the editor has yet to take the keyboard
  bool dragging = false;  ///< the mouse has moved far enough to mean a drag
  friend bool operator==(const EditCursor&, const EditCursor&) = default;
};

/// The step of a lesson that is shown.
struct LessonPlace {
  std::string name;
  std::size_t step = 0;
  int frames_shown = 0;               ///< until it arrived
  bool arrived = false;               ///< the strip has moved to what the step speaks of
  std::optional<CellRef> guess = {};  ///< the answer to the question that the step asks first
};

/// What is pointed at, pinned and followed at this moment; nothing of it changes a number.
struct Selection {
  std::optional<CellRef> hovered, pinned;
  std::vector<CellRef> trail;               ///< where following operands came from, the latest last
  std::optional<std::size_t> unfolded;      ///< the step of the worked cell all of whose terms are shown
  std::optional<std::size_t> hovered_head;  ///< in the view of heads
  std::optional<EditCursor> cursor;         ///< there as long as the matrix editor has the keyboard
  std::optional<std::pair<float, float>> scrolled_at;  ///< where the mouse was when the wheel last scrolled
  bool shows_a = false;  ///< a kept state stands in place of the live one as long as its key is held
  std::optional<CellRef> copied_cell;  ///< whose menu is open
  std::optional<Stage> sought;         ///< the stage to which the Compare view has yet to scroll
  std::uint64_t likeness_of = 0;       ///< the version of a large trace whose heads' likeness was asked for
  std::optional<LessonPlace> lesson;
  std::optional<bool>
      inspects;  ///< whether a narrow window has the inspector in EDIT's place; nothing: when pinned
  std::optional<Tour> tour;
  Presenting presenting;
};

}  // namespace app
