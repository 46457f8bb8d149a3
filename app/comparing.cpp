#include "app/comparing.hpp"

#include <algorithm>

namespace app {
namespace {

constexpr std::size_t quick_cells = 50'000;  // some ms for all stages

bool is_quick(const core::attention::Model& model) {
  return model.n_heads * model.n_tokens() * model.n_keys() <= quick_cells;
}

ComparedState state_of(const LiveTrace& trace) {
  return {trace.model(), trace.shared_trace(), trace.sequence(), trace.is_exact()};
}

/// Matrices of all stages: whoever owns them last leaves their end to the disposal.
std::shared_ptr<const Comparison> left(const Disposal& disposal,
                                       std::shared_ptr<const Comparison> comparison) {
  using Owned = std::shared_ptr<const Comparison>;
  const std::shared_ptr<Owned> owner = disposal.leave(std::make_unique<Owned>(std::move(comparison)));
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
  if (!comparisons_.needs(*wanted_)) return;
  const bool at_once = is_quick(kept_.model()) && is_quick(live.model());
  const auto* last = comparisons_.value();
  comparisons_.begin(*wanted_, at_once,
                     [this, key = *wanted_, revision = ++revision_, kept = state_of(kept_),
                      now = state_of(live), older = last ? *last : nullptr](const auto& goes_on) {
                       return left(disposal_, compared(key, revision, kept, now, older.get(), goes_on));
                     });
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
  comparisons_.begin(*wanted_, false,
                     [this, key = *wanted_, revision = ++revision_, check = *found,
                      now = state_of(live)](const auto& goes_on) {
                       return left(disposal_, compared_tensors(key, revision, check, now, goes_on));
                     });
}

void Comparing::begin_check(Beside<CheckKey, Check>& where, const CheckKey& key, const Reference& reference,
                            const LiveTrace& live) {
  if (!where.needs(key)) return;
  const auto tried = std::make_shared<std::atomic<std::size_t>>(0);
  if (key.searches) tried_ = tried;
  where.begin(key, false, [key, reference, model = live.model(), tried](const auto& goes_on) {
    return checked_tensors(key, reference, model, *tried, goes_on);
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
  work.tried = *tried_;
  return work;
}

bool Comparing::is_busy() const {
  return kept_.is_behind() || checks_.is_busy() || searches_.is_busy() || comparisons_.is_busy();
}

void Comparing::wait() {
  kept_.wait();
  checks_.wait();
  searches_.wait();
  comparisons_.wait();
}

void Comparing::when_done(const std::function<void()>& call) {
  kept_.when_done(call);
  checks_.when_done(call);
  searches_.when_done(call);
  comparisons_.when_done(call);
}

}  // namespace app
