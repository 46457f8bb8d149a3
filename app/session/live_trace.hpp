#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "app/session/jobs.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// Read access to a trace in the background. While one is held, the trace is not changed in place.
struct ReadLock {
  std::shared_ptr<const core::attention::Trace> trace;
  /// Becomes true when an edit needs the trace; a job should then stop, so that the edit need not wait.
  core::StopToken::PreemptFlag preempted;
};

/// Trace of the newest model, or of the latest one whose trace is complete.
///
/// Small models are computed by attend() immediately. For others, updates that fit into a frame are done in
/// place, the rest in the background by a second engine; meanwhile model(), sequence() and trace() stay those
/// of one earlier state.
class LiveTrace {
 public:
  static constexpr double frame_ms = 12;

  /// Computes the first trace immediately; later, work longer than max_immediate_ms runs in the background.
  /// Calls `before` ahead of each trace, in any thread; it may take its time or throw. Throws core::Error.
  LiveTrace(Jobs& jobs, const core::attention::Model& model, double max_immediate_ms = frame_ms,
            std::function<void()> before = {});

  /// Has no trace until follow() is called; never changes one in place.
  explicit LiveTrace(Jobs& jobs);

  /// Updates the trace for a sequence of a model that has passed check().
  ///
  /// A running computation for an older model of the same shape is finished and shown, so that a drag moves
  /// visibly; others are canceled. Throws core::Error.
  void follow(const core::attention::Model& model, std::size_t sequence);
  /// Drops the trace and cancels its computation; there is none until follow() is called.
  void clear();

  const core::attention::Model& model() const { return shown_->model; }
  std::size_t sequence() const { return shown_->sequence; }
  const core::attention::Trace& trace() const { return shown_->trace(); }
  /// Returns the graph of the model, and the stages that it has.
  const core::graph::Graph& graph() const { return shown_->graph; }
  const core::attention::StageSet& stages() const { return shown_->stages; }
  /// Returns the trace for reading in the background.
  ReadLock read_lock() const;
  std::uint64_t version() const { return version_; }  ///< changes with the trace's numbers
  double compute_ms() const { return shown_->ms; }
  /// Whether the trace equals attend()'s to the bit; else it may differ by rounding.
  bool is_exact() const { return shown_->reference || !core::attention::fast::supports(shown_->model); }

  /// Returns a stage as the engine stores it, or nothing; valid as long as the trace.
  core::attention::fast::RowView rows(core::attention::Stage stage, std::size_t head) const;
  /// Returns the changes since the previous version of the trace.
  const core::attention::fast::UpdateResult& change() const { return change_; }

  /// Whether the trace is of that model and sequence.
  bool matches(const core::attention::Model& model, std::size_t sequence) const {
    return shown_->matches(model, sequence);
  }
  /// Whether the trace of the last followed model is pending.
  bool is_behind() const { return behind_since_ && !has_failed_; }
  /// Returns for how long it has been pending, in seconds.
  double seconds_behind() const;
  /// Returns the estimated share of the work that is done, 0 … 0.99.
  double share_done() const { return std::min(next_.share(), 0.99); }

 private:
  struct State {
    core::attention::Model model;
    std::size_t sequence = 0;
    core::graph::Graph graph;
    core::attention::StageSet stages;
    std::optional<core::attention::Trace> reference;  // of a small model, by attend()
    core::attention::fast::Engine engine;
    bool engine_holds_a_model = false;
    double ms = 0;
    mutable std::atomic<int> readers = 0;  // in the background

    const core::attention::Trace& trace() const { return reference ? *reference : engine.trace(); }
    bool matches(const core::attention::Model& m, std::size_t s) const { return sequence == s && model == m; }
    /// Computes the whole trace, or only what changed; returns false when canceled.
    bool compute(core::attention::fast::UpdateResult& change, const core::StopToken* token,
                 const core::attention::fast::Engine::Plan* plan);
  };
  /// Model and sequence of a trace.
  struct TraceKey {
    core::attention::Model model;
    std::size_t sequence = 0;
    /// Whether its trace may be shown before the newest one, so that a drag moves visibly.
    bool is_compatible(const TraceKey& newest) const;
    friend bool operator==(const TraceKey&, const TraceKey&) = default;
  };

  /// A background reader of a state.
  struct BackgroundReader {
    std::shared_ptr<const State> state;
    explicit BackgroundReader(std::shared_ptr<const State> s) : state(std::move(s)) { ++state->readers; }
    ~BackgroundReader() { --state->readers; }
    BackgroundReader(const BackgroundReader&) = delete;
    BackgroundReader& operator=(const BackgroundReader&) = delete;
  };

  bool may_change_in_place();
  void compute_immediately(const core::attention::Model& model, std::size_t sequence);
  void update_in_place(const core::attention::Model& model, std::size_t sequence,
                       const core::attention::fast::Engine::Plan& plan);
  void begin(const TraceKey& wanted);
  void cancel();
  bool compute(State& state, core::attention::fast::UpdateResult& change, const core::StopToken* token,
               const core::attention::fast::Engine::Plan* plan = nullptr) const;
  void show(std::shared_ptr<State> state);
  std::shared_ptr<State> new_state() const { return jobs_.with_async_deleter(std::make_unique<State>()); }

  Jobs& jobs_;
  double max_immediate_ms_;
  std::function<void()> before_;
  bool changes_in_place_;
  // spare_ provides memory for the next state while more traces are requested.
  std::shared_ptr<State> shown_, spare_;
  std::shared_ptr<std::atomic<bool>> preempted_ = std::make_shared<std::atomic<bool>>(false);
  core::attention::fast::UpdateResult change_;
  std::uint64_t version_ = 0;
  std::optional<Clock::time_point>
      behind_since_;  // when the last trace was shown, or the first pending one requested
  bool has_failed_ = false;
  AsyncValue<TraceKey, std::shared_ptr<State>> next_;
};

constexpr double flash_seconds = 0.6;  ///< duration of the highlight of a changed cell

/// Stages as they were before the last edit, to show what it changed.
///
/// Known only for models with at most max_cells weights.
class Changes {
 public:
  static constexpr std::size_t max_cells = std::size_t{1} << 14;  ///< of the weights of all heads

  /// Stores the stages before an edit is applied; edits of one gesture count as one.
  void edit(const core::attention::Model& model, std::size_t sequence);
  void end_gesture() { is_under_way_ = false; }
  /// Forgets the stages if anything but an edit has changed the model; must be called after all commands of a
  /// frame.
  void follow(const core::attention::Model& model);

  /// Whether a gesture is in progress, such as dragging a number.
  bool is_under_way() const { return is_under_way_ && before_; }
  /// Returns the seconds since the last edit; infinite where nothing is known.
  double seconds() const;
  /// Returns a stage before the edit, if it has the shape of `now`, or nullptr.
  const core::attention::StageMatrix* before(core::attention::Stage stage, std::size_t head,
                                             const core::attention::StageMatrix& now) const;
  const std::optional<core::attention::Trace>& trace() const { return before_; }

 private:
  std::optional<core::attention::Trace> before_;
  std::optional<core::attention::Model> after_;  // the last edit
  bool edits_ = false;                           // in this frame
  bool is_under_way_ = false;
  Clock::time_point last_;
};

/// Whether two numbers differ by more than the rounding of a sum.
bool differs(double before, double now);

}  // namespace app
