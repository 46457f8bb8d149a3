#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/lessons/lesson.hpp"

/// Guesses that a step asks for: which cell will change most.
namespace core::lessons {

/// A cell that changed, and by how much.
struct Moved {
  std::size_t row = 0, column = 0;
  double by = 0;  ///< its size; infinite where one of both numbers is not finite
};

/// The cells of a stage of one head that differ from the start of a step, the largest change first; none
/// where the stage has another shape than before.
std::vector<Moved> moved_cells(const Moment& moment, attention::Stage stage, std::size_t head);

/// "Which cell of Weights will change most? Click it.", for a step that asks.
std::string question(const Step& step);

/// What became of a guess: right when no cell changed more, to rounding; "" where nothing changed.
std::string verdict(const std::vector<Moved>& moved, std::size_t row, std::size_t column);

}  // namespace core::lessons
