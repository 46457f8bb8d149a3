#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/attention/model.hpp"

namespace core::editing {

/// Undo and redo by old values: it keeps models as they were, within a budget of bytes.
///
/// Matrices that models share are counted once.
class History {
 public:
  explicit History(std::size_t byte_budget = std::size_t{256} << 20);

  /// Remembers how the model was before an edit; edits with one target in one gesture become one step.
  void record(const attention::Model& before, const std::string& target, const std::string& description);
  /// Ends the gesture: the next record() is a step of its own.
  void end_gesture();

  bool can_undo() const { return !past_.empty(); }
  bool can_redo() const { return !future_.empty(); }
  /// The words of the step that undo or redo would take, or "".
  std::string undo_description() const;
  std::string redo_description() const;

  /// The model one step back or forward; current is kept for the way back. Must not be called without a step.
  attention::Model undo(const attention::Model& current);
  attention::Model redo(const attention::Model& current);

  /// Forgets everything.
  void clear();

 private:
  struct Step {
    attention::Model model;
    std::string description;
  };
  void keep_within_budget();

  std::vector<Step> past_, future_;
  std::string open_target_;  // of the gesture under way; empty when none is
  std::size_t byte_budget_;
};

}  // namespace core::editing
