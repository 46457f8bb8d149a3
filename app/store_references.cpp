// The part of the store that keeps states of attention and compares one of them with the live one.
#include <algorithm>

#include "app/store.hpp"
#include "core/compare/switches.hpp"
#include "core/error.hpp"
#include "core/formats/session.hpp"

namespace app {

void Store::keep(core::attention::Model model, std::string title) {
  const std::uint64_t id = ++last_reference_;
  references_.push_back({"A" + std::to_string(id), std::move(title), std::move(model), id});
  view_.reference = references_.size() - 1;
}

void Store::carry_out(const KeepReference&) {
  keep(model_, document().title);
  say("Kept as " + references_.back().name +
      ". Change something: the Compare tab shows what follows from it.");
}

void Store::carry_out(const KeepSwitched& command) {
  const core::compare::Switch& way = core::compare::switches()[command.index];
  core::attention::Model other = way.flipped(model_);
  if (const auto problem = core::attention::check(other))
    throw core::Error(problem->path + ": " + problem->message);
  const std::string state = way.state(other);
  keep(std::move(other), state + " · " + document().title);
  view_.tab = Tab::compare;
  say(references_.back().name + " is the model with " + state + "; B is the live one, with " +
      way.state(model_) + ".");
}

void Store::carry_out(const DropReference&) {
  if (references_.empty()) return;
  say("Dropped " + references_[view_.reference].name);
  references_.erase(references_.begin() + static_cast<std::ptrdiff_t>(view_.reference));
  keep_view_within_model();
}

void Store::carry_out(const LoadReference& command) {
  core::formats::Session session = core::formats::load_session(command.path);
  keep(std::move(session.model), command.path.filename().string());
  view_.dialog = Dialog::none;
  view_.tab = Tab::compare;
  say("Opened " + command.path.string() + " as " + references_.back().name);
}

void Store::run_comparison() {
  if (view_.tab != Tab::compare || references_.empty()) return comparison_.reset();
  const Reference& a = references_[view_.reference];
  const std::size_t head = std::min(view_.head, shown_model().n_heads - 1);
  const ComparisonKey key{a.id, version(), live_.sequence(), head, view_.difference};
  if (comparison_ && comparison_->key == key) return;
  const bool other_numbers = !comparison_ || comparison_->key.reference != key.reference ||
                             comparison_->key.sequence != key.sequence;
  if (!comparison_) comparison_.emplace();
  comparison_->revision = ++comparison_revision_;
  if (other_numbers) {
    trace_reference(*comparison_, a.model, key.sequence);
    comparison_->trace_revision = comparison_revision_;
  }
  comparison_->key = key;
  work_out(*comparison_, shown_model(), trace());
}

}  // namespace app
