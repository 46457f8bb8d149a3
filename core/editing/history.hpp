#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/graph/model.hpp"

namespace core::editing {

/// Memory of a collection of models, with shared blocks counted once.
///
/// The time to add or remove a model depends on its number of matrices, not on their sizes or other models.
class Footprint {
 public:
  /// Memory of a model when it was added, for remove(); later allocations are not counted.
  struct ModelMemory {
    std::vector<const void*> blocks;
    std::size_t other_bytes = 0;
  };
  ModelMemory add(const attention::Model& model);
  void remove(const ModelMemory& memory);
  std::size_t bytes() const { return bytes_; }

 private:
  struct MemoryBlock {
    std::size_t n_references = 0, bytes = 0;
  };
  std::unordered_map<const void*, MemoryBlock> blocks_;  // by address
  std::size_t bytes_ = 0;
};

/// Returns the models in a value, for its memory use.
inline std::vector<const attention::Model*> models_in(const attention::Model& model) {
  return {&model};
}

/// Undo and redo by stored old values, within a budget of bytes.
///
/// Matrices that their models share are counted once. Beyond the budget the oldest steps are forgotten, but
/// never the last one. A value is a model, or any type with an overload of models_in().
template <class Value>
class HistoryOf {
 public:
  explicit HistoryOf(std::size_t byte_budget = std::size_t{256} << 20) : byte_budget_(byte_budget) {}

  /// Stores the value before an edit; edits with the same target in one gesture become one step.
  ///
  /// An empty target never joins. Discards the steps that could be redone.
  void record(const Value& before, const std::string& target, const std::string& description) {
    if (!target.empty() && target == gesture_target_) return;  // the current step already has its old value
    for (const UndoStep& step : future_) release(step);
    future_.clear();
    push(past_, {before, description, {}});
    gesture_target_ = target;
  }
  /// Ends the gesture: the next record() starts a new step.
  void end_gesture() { gesture_target_.clear(); }
  bool is_in_gesture() const { return !gesture_target_.empty(); }

  bool can_undo() const { return !past_.empty(); }
  bool can_redo() const { return !future_.empty(); }
  /// Returns the description of the step to undo or redo, or "".
  std::string undo_description() const { return can_undo() ? past_.back().description : ""; }
  std::string redo_description() const { return can_redo() ? future_.back().description : ""; }

  /// Returns the value one step back or forward; stores current for the opposite step.
  ///
  /// Both end the gesture; there must be a step.
  Value undo(const Value& current) { return step(past_, future_, current); }
  Value redo(const Value& current) { return step(future_, past_, current); }

  /// Returns a stored value of any step for which predicate returns true, or nullptr.
  template <class Predicate>
  const Value* find(const Predicate& predicate) const {
    for (const UndoSteps* steps : {&past_, &future_})
      for (const UndoStep& step : *steps)
        if (predicate(step.value)) return &step.value;
    return nullptr;
  }

  /// Returns the number of steps recorded and not undone, including forgotten ones.
  std::size_t n_applied() const { return past_.size() + n_forgotten_; }
  /// Returns how many of those are forgotten because of the budget.
  std::size_t n_forgotten() const { return n_forgotten_; }

  /// Returns the bytes of all steps; those outside matrices are estimated.
  std::size_t bytes() const { return footprint_.bytes(); }

  std::size_t byte_budget() const { return byte_budget_; }

  /// Forgets everything.
  void clear() { *this = HistoryOf(byte_budget_); }

 private:
  struct UndoStep {
    Value value;
    std::string description;
    std::vector<Footprint::ModelMemory> memory;
  };
  using UndoSteps = std::deque<UndoStep>;

  void release(const UndoStep& step) {
    for (const Footprint::ModelMemory& memory : step.memory) footprint_.remove(memory);
  }
  Value step(UndoSteps& from, UndoSteps& to, const Value& current) {
    end_gesture();
    UndoStep popped = std::move(from.back());
    from.pop_back();
    release(popped);
    push(to, {current, popped.description, {}});
    return std::move(popped.value);
  }
  void push(UndoSteps& steps, UndoStep step) {
    for (const attention::Model* model : models_in(step.value)) step.memory.push_back(footprint_.add(*model));
    steps.push_back(std::move(step));
    while (footprint_.bytes() > byte_budget_ && past_.size() + future_.size() > 1) {
      UndoSteps& oldest = past_.empty() ? future_ : past_;
      if (&oldest == &past_) ++n_forgotten_;
      release(oldest.front());
      oldest.pop_front();
    }
  }

  UndoSteps past_, future_;     // the next step is at the back
  std::string gesture_target_;  // of the current gesture; empty if there is none
  Footprint footprint_;         // of all steps
  std::size_t byte_budget_;
  std::size_t n_forgotten_ = 0;
};

using History = HistoryOf<attention::Model>;

}  // namespace core::editing
