#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "core/attention/model.hpp"
#include "core/editing/footprint.hpp"

namespace core::editing {

/// Undo and redo by old values: it keeps models as they were, within a budget of bytes.
///
/// Matrices that models share are counted once. Beyond the budget the oldest steps are forgotten, but never
/// the last one.
class History {
 public:
  explicit History(std::size_t byte_budget = std::size_t{256} << 20);

  /// Remembers how the model was before an edit; edits with one target in one gesture become one step.
  ///
  /// An empty target joins nothing. What was undone before can no longer be redone.
  void record(const attention::Model& before, const std::string& target, const std::string& description);
  /// Ends the gesture: the next record() is a step of its own.
  void end_gesture();

  bool can_undo() const { return !past_.empty(); }
  bool can_redo() const { return !future_.empty(); }
  /// The words of the step that undo or redo would take, or "".
  std::string undo_description() const;
  std::string redo_description() const;

  /// The model one step back or forward; current is kept for the way back.
  ///
  /// Both end the gesture; must not be called without a step.
  attention::Model undo(const attention::Model& current);
  attention::Model redo(const attention::Model& current);

  /// The bytes that all steps hold, estimated for what is not a matrix.
  std::size_t bytes() const { return footprint_.bytes(); }

  /// Forgets everything.
  void clear();

 private:
  struct Step {
    attention::Model model;
    std::string description;
    Footprint::Held held = {};
  };
  using Steps = std::deque<Step>;
  attention::Model step(Steps& from, Steps& to, const attention::Model& current);
  void push(Steps& steps, Step step);

  Steps past_, future_;      // the next one to take at the back
  std::string open_target_;  // of the gesture under way; empty when none is
  Footprint footprint_;      // of all steps
  std::size_t byte_budget_;
};

}  // namespace core::editing
