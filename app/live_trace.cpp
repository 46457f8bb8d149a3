#include "app/live_trace.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/attention/attend.hpp"

namespace app {
namespace {

using core::attention::Model;

constexpr double quick_ms = 12;

/// What a trace takes on a machine of today; it decides where it is computed, not what.
double expected_ms(const Model& model) {
  const auto n = static_cast<double>(model.n_tokens()), d = static_cast<double>(model.d_model()),
             d_out = static_cast<double>(model.d_out()), heads = static_cast<double>(model.n_heads);
  const double products = 2 * n * d_out * (3 * d + d_out + 2 * n), cells = heads * n * n;
  return products / 1e8 + cells / 1e5;
}

bool same_shape(const Model& a, const Model& b) {
  return a.n_tokens() == b.n_tokens() && a.d_model() == b.d_model() && a.d_out() == b.d_out() &&
         a.n_heads == b.n_heads;
}

}  // namespace

bool is_quick(const Model& model) {
  return expected_ms(model) <= quick_ms;
}

LiveTrace::LiveTrace(const Model& model) {
  State first{model, 0, nullptr, 0};
  compute(first);
  show(std::move(first));
}

void LiveTrace::follow(const Model& model, std::size_t sequence) {
  const auto is_of = [&](const auto& state) { return state.sequence == sequence && state.model == model; };
  worker_.deliver();
  if (is_of(shown_)) {
    if (asked_) worker_.cancel();
    asked_.reset();
  } else if (asked_ && is_of(*asked_)) {
    if (!worker_.is_busy()) asked_->failed = true;
  } else if (is_quick(model)) {
    worker_.cancel();
    State next{model, sequence, nullptr, 0};
    compute(next);
    asked_.reset();
    show(std::move(next));
  } else {
    if (asked_ && (asked_->sequence != sequence || !same_shape(asked_->model, model))) worker_.cancel();
    compute_beside(model, sequence);
  }
}

void LiveTrace::catch_up(const Model& model, std::size_t sequence) {
  follow(model, sequence);
  if (!asked_) return;
  worker_.wait();
  follow(model, sequence);
}

double LiveTrace::seconds_behind() const {
  return asked_ ? std::chrono::duration<double>(Clock::now() - asked_->since).count() : 0;
}

double LiveTrace::share_done() const {
  if (!asked_) return 1;
  // The last trace of this shape says more of this machine than a guess.
  const double expected = same_shape(asked_->model, shown_.model) ? shown_.ms : expected_ms(asked_->model);
  return std::min(seconds_behind() * 1e3 / std::max(expected, 1.0), 0.99);
}

void LiveTrace::compute(State& state) {
  const auto start = Clock::now();
  state.trace =
      std::make_shared<const core::attention::Trace>(core::attention::attend(state.model, state.sequence));
  state.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void LiveTrace::compute_beside(const Model& model, std::size_t sequence) {
  asked_ = Asked{model, sequence, asked_ ? asked_->since : Clock::now()};
  const auto next = std::make_shared<State>(State{model, sequence, nullptr, 0});
  worker_.start([this, next](const std::stop_token&) {
    compute(*next);
    return [this, next] { show(std::move(*next)); };
  });
}

void LiveTrace::show(State state) {
  shown_ = std::move(state);
  ++version_;
  if (asked_) asked_->since = Clock::now();
}

}  // namespace app
