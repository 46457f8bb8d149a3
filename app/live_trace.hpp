#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "app/disposal.hpp"
#include "app/worker.hpp"
#include "core/attention/fast/engine.hpp"
#include "core/attention/model.hpp"
#include "core/attention/trace.hpp"

namespace app {

/// The trace of the newest model, or of the latest whose trace is complete.
///
/// Small models go to attend() at once. Of the others, what takes no longer than a frame is done in place,
/// the rest beside the window, by a second engine. Meanwhile model(), sequence() and trace() stay those of
/// one state, which was true a moment ago.
class LiveTrace {
 public:
  static constexpr double frame_ms = 12;

  /// Computes the first trace at once; later what takes longer than at_once_ms is done beside the window.
  /// Throws core::Error.
  explicit LiveTrace(const core::attention::Model& model, double at_once_ms = frame_ms);

  /// Without a trace until a model is followed; nothing that somebody holds is ever changed in place.
  LiveTrace();

  /// Takes over what was finished beside the window, then goes after the trace of a model.
  ///
  /// What is under way for an older model is finished and shown when it is of the same shape, so that a drag
  /// is seen to move; else it is dropped. Throws core::Error, also that of a computation beside the window.
  void follow(const core::attention::Model& model, std::size_t sequence);
  /// Follows, and waits until the trace is of this model.
  void catch_up(const core::attention::Model& model, std::size_t sequence);
  /// Until nothing is computed beside the window; what was, the next follow() takes over.
  void wait() { worker_.wait(); }
  /// Lets go of the trace and of what is under way; there is none until a model is followed.
  void clear();

  const core::attention::Model& model() const { return shown_->model; }
  std::size_t sequence() const { return shown_->sequence; }
  const core::attention::Trace& trace() const { return shown_->trace(); }
  /// The same, for those who read it beside the window until before_change() calls them.
  std::shared_ptr<const core::attention::Trace> shared_trace() const { return {shown_, &shown_->trace()}; }
  std::uint64_t version() const { return version_; }  ///< of the trace: another number, other numbers
  double compute_ms() const { return shown_->ms; }
  /// Whether the trace is attend()'s own, to the bit; else it may differ from it by rounding.
  bool is_exact() const { return shown_->reference || !core::attention::fast::covers(shown_->model); }

  /// A stage as the engine keeps it, or nothing; valid as long as the trace.
  core::attention::fast::RowView rows(core::attention::Stage stage, std::size_t head) const;
  /// What makes this version of the trace another than the one before.
  const core::attention::fast::Change& change() const { return change_; }

  /// Whether the trace of the last model that was followed is still to come.
  bool is_behind() const { return asked_ && !asked_->failed; }
  /// How long that has been so, in seconds.
  double seconds_behind() const;
  /// How much of the work is done, as far as can be foreseen: 0 … 1.
  double share_done() const;

  /// Is called from another thread whenever there is something to take over.
  void when_done(std::function<void()> call) { worker_.when_done(std::move(call)); }
  /// Is called before the trace would change in place; where it says that somebody still reads, the change is
  /// made elsewhere.
  void before_change(std::function<bool()> call) { before_change_ = std::move(call); }

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    core::attention::Model model;
    std::size_t sequence = 0;
    std::optional<core::attention::Trace> reference;  // of a small model, by attend()
    core::attention::fast::Engine engine;
    bool engine_holds_a_model = false;
    double ms = 0;

    const core::attention::Trace& trace() const { return reference ? *reference : engine.trace(); }
    /// The whole trace, or only what changed; false when it was called off.
    bool compute(core::attention::fast::Change& change, core::attention::fast::Progress* progress);
  };
  struct Asked {
    core::attention::Model model;
    std::size_t sequence = 0;
    Clock::time_point since;  // when the last trace was shown, or nothing else was asked for
    bool begun = false, failed = false;
  };

  using Progress = core::attention::fast::Progress;

  bool may_change_in_place() const { return !before_change_ || before_change_(); }
  void compute_at_once(const core::attention::Model& model, std::size_t sequence);
  void update_in_place(const core::attention::Model& model, std::size_t sequence);
  void ask_for(const core::attention::Model& model, std::size_t sequence);
  void begin();
  void show(std::shared_ptr<State> state);

  std::shared_ptr<State> new_state() const { return disposal_.leave(std::make_unique<State>()); }

  double at_once_ms_;
  Disposal disposal_;  // of states, and of what was made of them
  std::shared_ptr<State> shown_,
      spare_;  // the spare one has memory for the next, as long as more is asked for
  core::attention::fast::Change change_;
  std::uint64_t version_ = 0;
  std::optional<Asked> asked_;
  std::shared_ptr<Progress> progress_;  // of what is under way
  std::function<bool()> before_change_;
  Worker worker_;
};

}  // namespace app
