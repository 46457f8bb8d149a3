#include "app/session/live_trace.hpp"

#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"

namespace app {

namespace {

using core::attention::Model;
using core::attention::fast::Engine;
using core::attention::fast::UpdateResult;

constexpr std::chrono::milliseconds reader_grace_time{4};  // for readers of a recalled trace

/// Whether attend() itself takes no more than a few milliseconds.
bool is_small(const Model& model) {
  const std::size_t n = model.n_tokens(), d = std::max({model.d_model(), model.d_out(), model.d_output()});
  return model.n_heads * n * n <= 50'000 && n * d * d <= 10'000'000;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool same_shape(const Model& a, const Model& b) {
  return a.n_tokens() == b.n_tokens() && a.d_model() == b.d_model() && a.d_out() == b.d_out() &&
         a.d_output() == b.d_output() && a.n_heads == b.n_heads;
}

/// Takes the computed matrices of stages that are not stored; the trace recomputes them on the next read.
std::deque<arma::mat> take_computed_stages(const core::attention::Trace& trace) {
  std::deque<arma::mat> made;  // as it grows, a vector would copy them
  for (const core::attention::StageInfo& stage : core::attention::stages())
    for (std::size_t h = 0; h < stage.count(trace.n_heads()); ++h)
      if (auto numbers = trace.at(stage.stage, h).release()) made.push_back(std::move(*numbers));
  return made;
}

}  // namespace

bool LiveTrace::State::compute(UpdateResult& change, const core::StopToken* token, const Engine::Plan* plan) {
  const auto start = Clock::now();
  core::graph::Graph next_graph = core::graph::attention(model);
  change = {};
  if (is_small(model)) {
    reference = core::attention::attend_checked(model, sequence);
  } else if (reference || !engine_holds_a_model) {
    if (!engine.compute(model, sequence, token)) return false;
    engine_holds_a_model = true;
    reference.reset();
  } else {
    change = engine.update(model, sequence, plan ? *plan : engine.plan(model, sequence), token);
    if (!change.completed) return false;
  }
  stages = existing_stages(next_graph, model);
  graph = std::move(next_graph);
  ms = ms_since(start);
  return true;
}

LiveTrace::LiveTrace(Jobs& jobs, const Model& model, double max_immediate_ms, std::function<void()> before)
    : jobs_(jobs),
      max_immediate_ms_(max_immediate_ms),
      before_(std::move(before)),
      changes_in_place_(true),
      next_(jobs) {
  auto first = new_state();
  first->model = model;
  compute(*first, change_, nullptr);
  show(std::move(first));
}

LiveTrace::LiveTrace(Jobs& jobs)
    : jobs_(jobs), max_immediate_ms_(frame_ms), changes_in_place_(false), shown_(new_state()), next_(jobs) {}

ReadLock LiveTrace::read_lock() const {
  const auto reader = std::make_shared<const BackgroundReader>(shown_);
  return {{reader, &shown_->trace()}, preempted_};
}

void LiveTrace::clear() {
  cancel();
  next_.clear();
  spare_.reset();
  shown_ = new_state();
}

bool LiveTrace::TraceKey::is_compatible(const TraceKey& newest) const {
  return sequence == newest.sequence && same_shape(model, newest.model);
}

void LiveTrace::follow(const Model& model, std::size_t sequence) {
  if (auto next = next_.take()) show(std::move(*next));
  if (shown_->matches(model, sequence)) {
    cancel();
    spare_.reset();
    return;
  }
  const bool fits = changes_in_place_ &&
                    same_shape(model, shown_->model);  // then a failed update leaves memory for the old trace
  const Engine::Plan plan = is_small(model) ? Engine::Plan() : shown_->engine.plan(model, sequence);
  const bool is_quick = is_small(model) || plan.ms <= max_immediate_ms_;
  if (is_quick && fits && may_change_in_place()) {
    cancel();
    update_in_place(model, sequence, plan);
  } else if (is_small(model) || (is_quick && changes_in_place_ && !fits)) {
    compute_immediately(model, sequence);
  } else {
    if (!behind_since_) behind_since_ = Clock::now();
    const TraceKey wanted{model, sequence};
    if (next_.needs(wanted)) begin(wanted);
    has_failed_ = next_.has_failed(wanted);
  }
  if (!behind_since_) spare_.reset();
}

double LiveTrace::seconds_behind() const {
  return behind_since_ ? std::chrono::duration<double>(Clock::now() - *behind_since_).count() : 0;
}

core::attention::fast::RowView LiveTrace::rows(core::attention::Stage stage, std::size_t head) const {
  if (shown_->reference) return {};
  return shown_->engine.rows(stage, head);
}

bool LiveTrace::may_change_in_place() {
  if (!changes_in_place_) return false;
  const auto is_free = [this] { return shown_->readers == 0; };
  if (is_free()) return true;
  *preempted_ = true;
  const auto end = Clock::now() + reader_grace_time;
  while (jobs_.end_stopped() && !is_free() && Clock::now() < end) {
  }
  preempted_ = std::make_shared<std::atomic<bool>>(false);
  return is_free();
}

bool LiveTrace::compute(State& state, UpdateResult& change, const core::StopToken* token,
                        const Engine::Plan* plan) const {
  if (before_) before_();
  return state.compute(change, token, plan);
}

void LiveTrace::cancel() {
  next_.cancel();
  behind_since_.reset();
}

void LiveTrace::compute_immediately(const Model& model, std::size_t sequence) {
  cancel();
  auto next = new_state();
  next->model = model;
  next->sequence = sequence;
  compute(*next, change_, nullptr);
  show(std::move(next));
}

void LiveTrace::update_in_place(const Model& model, std::size_t sequence, const Engine::Plan& plan) {
  jobs_.destroy_async(take_computed_stages(shown_->trace()));
  Model other = model;  // first, as it may throw
  std::swap(shown_->model, other);
  const std::size_t sequence_before = std::exchange(shown_->sequence, sequence);
  try {
    compute(*shown_, change_, nullptr, &plan);
    ++version_;
  } catch (...) {  // the trace stays that of the previous model, possibly recomputed
    std::swap(shown_->model, other);
    shown_->sequence = sequence_before;
    change_ = {};
    ++version_;
    throw;
  }
}

void LiveTrace::begin(const TraceKey& wanted) {
  if (spare_ && spare_->readers > 0) spare_.reset();  // somebody still reads it
  auto next = spare_ ? std::exchange(spare_, nullptr) : new_state();
  next->model = wanted.model;
  next->sequence = wanted.sequence;
  next_.begin(wanted, Schedule::background, [next, before = before_](const core::StopToken& token) {
    UpdateResult change;
    if (before) before();
    next->compute(change, &token, nullptr);  // a canceled result is dropped
    return next;
  });
}

void LiveTrace::show(std::shared_ptr<State> state) {
  spare_ = std::exchange(shown_, std::move(state));
  change_ = {};
  ++version_;
  if (behind_since_) behind_since_ = Clock::now();
}

using core::attention::StageMatrix;

void Changes::edit(const core::attention::Model& model, std::size_t sequence) {
  last_ = Clock::now();
  edits_ = true;
  if (is_under_way()) return;
  before_.reset();
  is_under_way_ = true;
  if (model.n_heads * model.n_tokens() * model.n_keys() > max_cells) return;
  try {
    before_ = core::attention::attend(model, sequence);
  } catch (const core::Error&) {  // a model that cannot be computed is not compared
    before_.reset();
  }
}

void Changes::follow(const core::attention::Model& model) {
  if (!before_) return;
  if (std::exchange(edits_, false)) {
    after_ = model;
  } else if (!after_ || !(*after_ == model)) {
    before_.reset();
    after_.reset();
    is_under_way_ = false;
  }
}

double Changes::seconds() const {
  if (!before_) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(Clock::now() - last_).count();
}

const StageMatrix* Changes::before(core::attention::Stage stage, std::size_t head,
                                   const StageMatrix& now) const {
  const auto& info = core::attention::info(stage);
  if (!before_ || (info.per_head && head >= before_->n_heads())) return nullptr;
  const StageMatrix& numbers = before_->at(info.stage, head);
  return numbers.n_rows() == now.n_rows() && numbers.n_cols() == now.n_cols() ? &numbers : nullptr;
}

bool differs(double before, double now) {
  if (std::isnan(before) || std::isnan(now)) return std::isnan(before) != std::isnan(now);
  if (before == now) return false;
  if (std::isinf(before) || std::isinf(now)) return true;
  constexpr double rounding = 1e-12;
  return !(std::abs(now - before) <= rounding * std::max(1.0, std::abs(before)));
}

}  // namespace app
