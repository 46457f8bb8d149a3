#include "app/session/comparing.hpp"

#include <algorithm>

namespace app {
namespace {

constexpr std::size_t quick_comparison_cells = 50'000;  // some ms for all stages

bool is_quick(const core::attention::Model& model) {
  return model.n_heads * model.n_tokens() * model.n_keys() <= quick_comparison_cells;
}

ComparedState state_of(const LiveTrace& trace) {
  return {trace.model(), trace.lease().trace, trace.sequence(), trace.is_exact()};
}

/// Matrices of all stages: whoever owns them last lets them go beside the window.
std::shared_ptr<const Comparison> left(const Jobs& jobs, std::shared_ptr<const Comparison> comparison) {
  using Owned = std::shared_ptr<const Comparison>;
  const std::shared_ptr<Owned> owner = jobs.leave(std::make_unique<Owned>(std::move(comparison)));
  return {owner, owner->get()};
}

}  // namespace

void Comparing::follow(const Reference& reference, const LiveTrace& live, std::size_t head,
                       core::compare::DifferenceKind kind, bool compares) {
  if (reference_ != reference.id) {
    const bool wants_search = wants_search_;
    stop();
    wants_search_ = wants_search;
  }
  reference_ = reference.id;
  is_of_tensors_ = reference.tensors != nullptr;
  const ComparisonKey key{reference.id, 0, live.version(), live.sequence(), head, kind};
  if (is_of_tensors_)
    follow_tensors(reference, live, key, compares);
  else
    follow_kept(reference, live, key, compares);
}

void Comparing::stop() {
  if (!reference_) return;
  reference_.reset();
  kept_.clear();
  kept_model_ = {};
  checks_.clear();
  stop_search();
  searches_.clear();
  comparisons_.clear();
  wanted_.reset();
}

void Comparing::stop_search() {
  wants_search_ = false;
  search_for_.reset();
  searches_.cancel();
}

void Comparing::follow_kept(const Reference& reference, const LiveTrace& live, const ComparisonKey& key,
                            bool compares) {
  kept_model_ = reference.model;
  const std::size_t sequence = std::min(live.sequence(), kept_model_.sequences.size() - 1);
  kept_.follow(kept_model_, sequence);
  wanted_.reset();
  if (!compares) return comparisons_.clear();
  wanted_ = key;
  if (kept_.sequence() != sequence || !(kept_.model() == kept_model_)) return;
  wanted_->trace = kept_.version();
  const When when = is_quick(kept_.model()) && is_quick(live.model()) ? When::at_once : When::beside;
  if (!comparisons_.needs(*wanted_, when)) return;
  const auto* last = comparisons_.value();
  comparisons_.begin(
      *wanted_, when,
      [&jobs = jobs_, key = *wanted_, revision = ++revision_, kept = state_of(kept_), now = state_of(live),
       older = last ? *last : nullptr](const core::Token& token) {
        return left(jobs, compared(key, revision, kept, now, older.get(), token));
      },
      live.lease().recalled);
}

void Comparing::follow_tensors(const Reference& reference, const LiveTrace& live, const ComparisonKey& key,
                               bool compares) {
  wanted_.reset();
  if (!compares) {
    checks_.cancel(), searches_.cancel();
    return comparisons_.clear();
  }
  wanted_ = key;
  wanted_->trace = 2 * reference.mapped;
  CheckKey check{reference.id, live.version(), live.sequence(), reference.mapped};
  if (std::exchange(wants_search_, false)) search_for_ = check;
  begin_check(checks_, check, reference, live);
  const Check* found = checks_.is_of(check) ? checks_.value() : nullptr;
  if (found && search_for_ == check && (*found)->problem.empty() && !(*found)->report.agrees) {
    check.searches = true;
    begin_check(searches_, check, reference, live);
    if (searches_.is_of(check)) {
      found = searches_.value();
      ++wanted_->trace;
    }
  } else {
    searches_.cancel();
  }
  if (!found || !comparisons_.needs(*wanted_)) return;
  comparisons_.begin(
      *wanted_, When::beside,
      [&jobs = jobs_, key = *wanted_, revision = ++revision_, check = *found,
       now = state_of(live)](const core::Token& token) {
        return left(jobs, compared_tensors(key, revision, check, now, token));
      },
      live.lease().recalled);
}

void Comparing::begin_check(Slot<CheckKey, Check>& where, const CheckKey& key, const Reference& reference,
                            const LiveTrace& live) {
  if (!where.needs(key)) return;
  where.begin(key, When::beside, [key, reference, model = live.model()](const core::Token& token) {
    return checked_tensors(key, reference, model, token);
  });
}

const Comparison* Comparing::comparison() const {
  const auto* last = comparisons_.value();
  return last && wanted_ && (*last)->key.reference == wanted_->reference ? last->get() : nullptr;
}

const LiveTrace* Comparing::kept() const {
  const bool is_there = reference_ && !is_of_tensors_ && kept_.model() == kept_model_;
  return is_there ? &kept_ : nullptr;
}

ComparisonWork Comparing::work() const {
  ComparisonWork work;
  const bool lacks_trace = reference_ && !is_of_tensors_ && !kept();
  work.is_renewing = lacks_trace || (wanted_ && !comparisons_.is_of(*wanted_));
  work.seconds =
      std::max({kept_.is_behind() ? kept_.seconds_behind() : 0, checks_.seconds(), comparisons_.seconds()});
  work.is_searching = searches_.is_busy();
  work.seconds_searched = searches_.seconds();
  work.tried = searches_.done();
  return work;
}

bool Comparing::is_busy() const {
  return kept_.is_behind() || checks_.is_busy() || searches_.is_busy() || comparisons_.is_busy();
}

}  // namespace app
