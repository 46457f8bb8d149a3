#include "app/session/comparing.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/graph/graph.hpp"
#include "core/system/process.hpp"

namespace app {

namespace {

using core::attention::Stage;
using core::attention::StageInfo;
using core::attention::Trace;

// Relative, of two ways to compute the same numbers; float32 against float64 counts as a difference.
constexpr double rounding = 1e-12, float32_rounding = 2e-6;

bool is_float32(const core::attention::Model& model) {
  return model.arithmetic.precision == core::attention::Precision::float32;
}

/// Returns the displayed comparison of a stage, from its difference over all heads.
ComparedStage seen(const core::compare::StageDifference& all, const Trace& a, const Trace& b,
                   const ComparisonKey& key) {
  ComparedStage result;
  result.all = all;
  result.within = !all.differs();
  if (!all.same_shape || !all.differs()) return result;
  const StageInfo& stage = core::attention::info(all.stage);
  result.numbers_a = a.at(stage.stage, key.head);
  result.numbers_b = b.at(stage.stage, key.head);
  result.shown = core::compare::max_difference(result.numbers_a, result.numbers_b);
  result.difference = core::compare::difference(key.kind, result.numbers_a, result.numbers_b);
  result.a = value_range(result.numbers_a), result.b = value_range(result.numbers_b);
  result.difference_range = value_range(result.difference);
  return result;
}

/// Sets the formulas, the first stage that differs, and the masks that explain zeros.
void finish(ReferenceComparison& c, const Trace& kept, const Trace& live) {
  const core::graph::Graph graph = core::graph::attention(c.model),
                           live_graph = core::graph::attention(c.live);
  for (ComparedStage& stage : c.stages) {
    const StageInfo& info = core::attention::info(stage.all.stage);
    stage.formula =
        stage.all.in_b ? formula_of(live_graph, c.live, info, true) : formula_of(graph, c.model, info, true);
  }
  const auto first = std::ranges::find_if(c.stages, [](const ComparedStage& s) { return !s.within; });
  c.first = first == c.stages.end() ? nullptr : &*first;
  c.visible_live = live.at(Stage::mask);
  const bool of_tensors = c.tensors != nullptr;
  c.visible_reference = of_tensors ? c.visible_live : arma::mat(kept.at(Stage::mask));
  if (of_tensors)
    c.visible = c.visible_live;
  else if (arma::size(c.visible_reference) == arma::size(c.visible_live))
    c.visible = arma::max(c.visible_reference, c.visible_live);
  const bool drops = std::ranges::any_of(c.stages, [](const ComparedStage& s) {
    return !s.difference.empty() &&
           (s.all.stage == Stage::dropout_mask || s.all.stage == Stage::dropped_weights);
  });
  if (!drops) return;
  c.dropout_mask_live = live.at(Stage::dropout_mask, c.key.head);
  c.dropout_mask_reference =
      of_tensors ? c.dropout_mask_live : arma::mat(kept.at(Stage::dropout_mask, c.key.head));
}

constexpr std::size_t quick_comparison_cells = 50'000;  // some ms for all stages

bool is_quick(const core::attention::Model& model) {
  return model.n_heads * model.n_tokens() * model.n_keys() <= quick_comparison_cells;
}

ComparedState state_of(const LiveTrace& trace) {
  return {trace.model(), trace.read_lock().trace, trace.sequence(), trace.is_exact()};
}

/// Returns the comparison so that its last owner has its matrices destroyed in the background.
std::shared_ptr<const ReferenceComparison> share_with_deleter(
    const Jobs& jobs, std::shared_ptr<const ReferenceComparison> comparison) {
  using Owned = std::shared_ptr<const ReferenceComparison>;
  const std::shared_ptr<Owned> owner =
      jobs.with_async_deleter(std::make_unique<Owned>(std::move(comparison)));
  return {owner, owner->get()};
}

}  // namespace

bool ComparisonKey::same_numbers(const ComparisonKey& other) const {
  return reference == other.reference && trace == other.trace && version == other.version &&
         sequence == other.sequence;
}

const core::attention::Sequence& live_sequence(const ReferenceComparison& comparison) {
  return comparison.live.sequences[comparison.key.sequence];
}

std::string replacement_problem(const core::attention::Model& a, const core::attention::Model& b) {
  const auto size = [](const core::attention::Model& m) {
    return fmt::format("{}×{} to {}{} with {}{}", m.n_tokens(), m.d_model(), m.d_out(),
                       m.d_output() == m.d_out() ? "" : " and " + std::to_string(m.d_output()), m.n_heads,
                       m.n_heads == 1 ? " head" : " heads");
  };
  if (size(a) != size(b)) return "A is " + size(a) + ", B " + size(b);
  const auto parts = [](const core::attention::Model& m) {
    std::array<bool, 6> there{m.projections.has_value()};
    if (!m.projections) return there;
    const auto& p = *m.projections;
    return std::array<bool, 6>{true,
                               p.query.bias.has_value(),
                               p.key.bias.has_value(),
                               p.value.bias.has_value(),
                               p.output.has_value(),
                               p.output && p.output->bias};
  };
  return parts(a) == parts(b) ? "" : "A and B have other projections or biases";
}

std::shared_ptr<const ReferenceComparison> compare_states(const ComparisonKey& key, std::uint64_t revision,
                                                          const ComparedState& kept,
                                                          const ComparedState& live,
                                                          const ReferenceComparison* older,
                                                          const core::StopToken& token) {
  auto c = std::make_shared<ReferenceComparison>();
  c->key = key;
  c->revision = revision;
  c->model = kept.model, c->live = live.model;
  c->sequence = kept.sequence;
  c->trace = kept.trace;
  c->is_exact = kept.is_exact && live.is_exact;
  std::vector<core::compare::StageDifference> all;
  if (older && older->key.same_numbers(key))
    for (const ComparedStage& stage : older->stages) all.push_back(stage.all);
  else
    all = core::compare::compare(kept.model, *kept.trace, live.model, *live.trace,
                                 c->is_exact                                        ? 0
                                 : is_float32(kept.model) && is_float32(live.model) ? float32_rounding
                                                                                    : rounding,
                                 token);
  for (const auto& stage : all) {
    if (!token.should_continue()) return c;
    c->stages.push_back(seen(stage, *kept.trace, *live.trace, key));
  }
  finish(*c, *kept.trace, *live.trace);
  return c;
}

std::shared_ptr<const ReferenceComparison> compare_tensors(const ComparisonKey& key, std::uint64_t revision,
                                                           std::shared_ptr<const TensorCheck> check,
                                                           const ComparedState& live,
                                                           const core::StopToken& token) {
  auto c = std::make_shared<ReferenceComparison>();
  c->key = key;
  c->revision = revision;
  c->model = c->live = live.model;
  c->sequence = live.sequence;
  c->trace = {check, &check->observed};
  const auto& results = check->report.stages;
  c->tensors = std::move(check);
  const core::attention::StageSet existing = existing_stages(c->model);
  for (const Stage stage : c->tensors->stages) {
    if (!token.should_continue()) return c;
    const StageInfo& info = core::attention::info(stage);
    if (!contains(existing, stage)) continue;
    c->stages.push_back(
        seen(core::compare::compare_stage(info, *live.trace, *c->trace), *live.trace, *c->trace, key));
    c->stages.back().within = std::ranges::none_of(
        results, [&](const core::check::StageResult& r) { return r.stage == stage && !r.agreement.within; });
  }
  finish(*c, *c->trace, *live.trace);
  return c;
}

std::shared_ptr<const TensorCheck> check_tensors(const CheckKey& key, const Reference& reference,
                                                 const core::attention::Model& live,
                                                 const core::StopToken& token) {
  auto check = std::make_shared<TensorCheck>();
  try {
    check->matched =
        core::check::match(live, *reference.tensors, reference.by_hand,
                           {key.sequence, core::check::find_layout(reference.layout), reference.layer});
  } catch (const core::Error& error) {
    check->problem = error.what();
    return check;
  }
  core::StopToken no_search;
  no_search.stop();
  check->report = core::check::check(live, check->matched, {}, key.searches ? token : no_search);
  if (key.searches) core::system::trim_heap();  // of the hundreds of models that were tried
  check->searched = key.searches && token.should_continue();
  core::check::ObservedTrace observed =
      core::check::observed_trace(live, check->matched, check->report, key.sequence);
  check->observed = std::move(observed.trace);
  check->stages = std::move(observed.stages);
  return check;
}

void LiveComparison::follow(const Reference& reference, const LiveTrace& live, std::size_t head,
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

void LiveComparison::stop() {
  if (!reference_) return;
  reference_.reset();
  snapshot_.clear();
  snapshot_model_ = {};
  checks_.clear();
  stop_search();
  searches_.clear();
  comparisons_.clear();
  wanted_.reset();
}

void LiveComparison::stop_search() {
  wants_search_ = false;
  search_for_.reset();
  searches_.cancel();
}

void LiveComparison::follow_kept(const Reference& reference, const LiveTrace& live, const ComparisonKey& key,
                                 bool compares) {
  snapshot_model_ = reference.model;
  const std::size_t sequence = std::min(live.sequence(), snapshot_model_.sequences.size() - 1);
  snapshot_.follow(snapshot_model_, sequence);
  wanted_.reset();
  if (!compares) return comparisons_.clear();
  wanted_ = key;
  if (snapshot_.sequence() != sequence || !(snapshot_.model() == snapshot_model_)) return;
  wanted_->trace = snapshot_.version();
  const Schedule when =
      is_quick(snapshot_.model()) && is_quick(live.model()) ? Schedule::immediate : Schedule::background;
  if (!comparisons_.needs(*wanted_, when)) return;
  const auto* last = comparisons_.value();
  comparisons_.begin(
      *wanted_, when,
      [&jobs = jobs_, key = *wanted_, revision = ++revision_, kept = state_of(snapshot_),
       now = state_of(live), older = last ? *last : nullptr](const core::StopToken& token) {
        return share_with_deleter(jobs, compare_states(key, revision, kept, now, older.get(), token));
      },
      live.read_lock().preempted);
}

void LiveComparison::follow_tensors(const Reference& reference, const LiveTrace& live,
                                    const ComparisonKey& key, bool compares) {
  wanted_.reset();
  if (!compares) {
    checks_.cancel(), searches_.cancel();
    return comparisons_.clear();
  }
  wanted_ = key;
  wanted_->trace = 2 * reference.mapping_version;
  CheckKey check{reference.id, live.version(), live.sequence(), reference.mapping_version};
  if (std::exchange(wants_search_, false)) search_for_ = check;
  begin_check(checks_, check, reference, live);
  const TensorCheckRef* found = checks_.matches(check) ? checks_.value() : nullptr;
  if (found && search_for_ == check && (*found)->problem.empty() && !(*found)->report.agrees) {
    check.searches = true;
    begin_check(searches_, check, reference, live);
    if (searches_.matches(check)) {
      found = searches_.value();
      ++wanted_->trace;
    }
  } else {
    searches_.cancel();
  }
  if (!found || !comparisons_.needs(*wanted_)) return;
  comparisons_.begin(
      *wanted_, Schedule::background,
      [&jobs = jobs_, key = *wanted_, revision = ++revision_, check = *found,
       now = state_of(live)](const core::StopToken& token) {
        return share_with_deleter(jobs, compare_tensors(key, revision, check, now, token));
      },
      live.read_lock().preempted);
}

void LiveComparison::begin_check(AsyncValue<CheckKey, TensorCheckRef>& where, const CheckKey& key,
                                 const Reference& reference, const LiveTrace& live) {
  if (!where.needs(key)) return;
  where.begin(key, Schedule::background,
              [key, reference, model = live.model()](const core::StopToken& token) {
                return check_tensors(key, reference, model, token);
              });
}

const ReferenceComparison* LiveComparison::comparison() const {
  const auto* last = comparisons_.value();
  return last && wanted_ && (*last)->key.reference == wanted_->reference ? last->get() : nullptr;
}

const LiveTrace* LiveComparison::snapshot() const {
  const bool is_there = reference_ && !is_of_tensors_ && snapshot_.model() == snapshot_model_;
  return is_there ? &snapshot_ : nullptr;
}

ComparisonProgress LiveComparison::work() const {
  ComparisonProgress work;
  const bool lacks_trace = reference_ && !is_of_tensors_ && !snapshot();
  work.is_updating = lacks_trace || (wanted_ && !comparisons_.matches(*wanted_));
  work.seconds = std::max(
      {snapshot_.is_behind() ? snapshot_.seconds_behind() : 0, checks_.seconds(), comparisons_.seconds()});
  work.is_searching = searches_.is_busy();
  work.seconds_searched = searches_.seconds();
  work.n_tried = searches_.done();
  return work;
}

bool LiveComparison::is_busy() const {
  return snapshot_.is_behind() || checks_.is_busy() || searches_.is_busy() || comparisons_.is_busy();
}

}  // namespace app
