#include "core/editing/history.hpp"

#include <utility>

namespace core::editing {

History::History(std::size_t byte_budget) : byte_budget_(byte_budget) {}

void History::record(const attention::Model& before, const std::string& target,
                     const std::string& description) {
  if (!target.empty() && target == open_target_) return;  // the step under way already knows how it began
  for (const Step& step : future_) footprint_.remove(step.held);
  future_.clear();
  push(past_, {before, description});
  open_target_ = target;
}

void History::end_gesture() {
  open_target_.clear();
}

std::string History::undo_description() const {
  return can_undo() ? past_.back().description : "";
}

std::string History::redo_description() const {
  return can_redo() ? future_.back().description : "";
}

attention::Model History::undo(const attention::Model& current) {
  return step(past_, future_, current);
}

attention::Model History::redo(const attention::Model& current) {
  return step(future_, past_, current);
}

void History::clear() {
  *this = History(byte_budget_);
}

attention::Model History::step(Steps& from, Steps& to, const attention::Model& current) {
  end_gesture();
  Step taken = std::move(from.back());
  from.pop_back();
  footprint_.remove(taken.held);
  push(to, {current, taken.description});
  return std::move(taken.model);
}

void History::push(Steps& steps, Step step) {
  step.held = footprint_.add(step.model);
  steps.push_back(std::move(step));
  while (footprint_.bytes() > byte_budget_ && past_.size() + future_.size() > 1) {
    Steps& oldest = past_.empty() ? future_ : past_;
    footprint_.remove(oldest.front().held);
    oldest.pop_front();
  }
}

}  // namespace core::editing
