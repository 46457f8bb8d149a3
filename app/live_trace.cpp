#include "app/live_trace.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "core/attention/attend.hpp"
#include "core/attention/stages.hpp"

namespace app {
namespace {

using core::attention::Model;

using core::attention::fast::Change;

/// Where attend() itself takes no more than a few milliseconds.
bool is_small(const Model& model) {
  const std::size_t n = model.n_tokens(), d = std::max(model.d_model(), model.d_out());
  return model.n_heads * n * n <= 50'000 && n * d * d <= 10'000'000;
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

bool same_shape(const Model& a, const Model& b) {
  return a.n_tokens() == b.n_tokens() && a.d_model() == b.d_model() && a.d_out() == b.d_out() &&
         a.n_heads == b.n_heads;
}

/// What was made of stages that are not kept: the trace makes them anew when they are read again.
std::deque<arma::mat> made_stages(const core::attention::Trace& trace) {
  std::deque<arma::mat> made;  // as it grows, a vector would copy them
  for (const core::attention::StageInfo& stage : core::attention::stages())
    for (std::size_t h = 0; h < (stage.per_head ? trace.heads.size() : 1); ++h)
      if (auto numbers = stage.matrix(trace, h).give_away()) made.push_back(std::move(*numbers));
  return made;
}

}  // namespace

bool LiveTrace::State::compute(Change& change, Progress* progress) {
  const auto start = Clock::now();
  change = {};
  if (is_small(model)) {
    reference = core::attention::attend(model, sequence);
  } else if (reference || !engine_holds_a_model) {
    if (!engine.compute(model, sequence, progress)) return false;
    engine_holds_a_model = true;
    reference.reset();
  } else {
    change = engine.update(model, sequence, progress);
    if (!change.completed) return false;
  }
  ms = ms_since(start);
  return true;
}

LiveTrace::LiveTrace(const Model& model, double at_once_ms) : at_once_ms_(at_once_ms) {
  auto first = new_state();
  first->model = model;
  first->compute(change_, nullptr);
  show(std::move(first));
}

LiveTrace::LiveTrace() : at_once_ms_(frame_ms), shown_(new_state()) {
  before_change([] { return false; });
}

void LiveTrace::clear() {
  worker_.cancel();
  asked_.reset();
  spare_.reset();
  shown_ = new_state();
}

void LiveTrace::follow(const Model& model, std::size_t sequence) {
  const auto is_of = [&](const auto& state) { return state.sequence == sequence && state.model == model; };
  worker_.deliver();
  if (is_of(*shown_)) {
    if (asked_) worker_.cancel();
    asked_.reset();
  } else if ((is_small(model) || shown_->engine.estimated_ms(model, sequence) <= at_once_ms_) &&
             may_change_in_place()) {
    if (asked_) worker_.cancel();
    asked_.reset();
    update_in_place(model, sequence);
  } else if (is_small(model)) {
    compute_at_once(model, sequence);
  } else {
    if (!asked_ || !is_of(*asked_)) ask_for(model, sequence);
    if (!worker_.is_busy()) begin();
  }
  if (!asked_) spare_.reset();
}

void LiveTrace::catch_up(const Model& model, std::size_t sequence) {
  for (follow(model, sequence); is_behind(); follow(model, sequence)) worker_.wait();
}

double LiveTrace::seconds_behind() const {
  return asked_ ? std::chrono::duration<double>(Clock::now() - asked_->since).count() : 0;
}

double LiveTrace::share_done() const {
  return progress_ ? std::min(progress_->fraction.load(), 0.99) : 0;
}

core::attention::fast::RowView LiveTrace::rows(core::attention::Stage stage, std::size_t head) const {
  if (shown_->reference) return {};
  return shown_->engine.rows(stage, head);
}

void LiveTrace::compute_at_once(const Model& model, std::size_t sequence) {
  if (asked_) worker_.cancel();
  asked_.reset();
  auto next = new_state();
  next->model = model;
  next->sequence = sequence;
  next->compute(change_, nullptr);
  show(std::move(next));
}

void LiveTrace::update_in_place(const Model& model, std::size_t sequence) {
  disposal_.take(made_stages(shown_->trace()));
  const Model before = std::exchange(shown_->model, model);
  const std::size_t sequence_before = std::exchange(shown_->sequence, sequence);
  try {
    shown_->compute(change_, nullptr);
    ++version_;
  } catch (...) {  // the trace is what it was
    shown_->model = before;
    shown_->sequence = sequence_before;
    throw;
  }
}

void LiveTrace::ask_for(const Model& model, std::size_t sequence) {
  if (asked_ && (asked_->sequence != sequence || !same_shape(asked_->model, model))) worker_.cancel();
  asked_ = Asked{model, sequence, asked_ ? asked_->since : Clock::now()};
}

void LiveTrace::begin() {
  if (std::exchange(asked_->begun, true)) {  // and it has ended without a trace
    asked_->failed = true;
    return;
  }
  if (spare_.use_count() > 1) spare_.reset();  // somebody still reads it
  auto next = spare_ ? std::exchange(spare_, nullptr) : new_state();
  next->model = asked_->model;
  next->sequence = asked_->sequence;
  const auto progress = std::make_shared<Progress>();
  progress_ = progress;
  worker_.start([this, next, progress](const std::stop_token& stop) -> Worker::Delivery {
    const std::stop_callback call_off(stop, [&] { progress->cancelled = true; });
    Change change;
    if (!next->compute(change, progress.get())) return {};
    return [this, next] { show(next); };
  });
}

void LiveTrace::show(std::shared_ptr<State> state) {
  spare_ = std::exchange(shown_, std::move(state));
  change_ = {};
  ++version_;
  if (asked_) asked_->since = Clock::now();
}

}  // namespace app
