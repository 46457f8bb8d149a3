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
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// The right to read a trace in the background. As long as one is held, the trace is not changed in place.
struct ReadLock {
  std::shared_ptr<const core::attention::Trace> trace;
  /// Becomes true when the trace is wanted back: a job that is not to keep an edit waiting obeys it.
  core::Token::Recalled recalled;
};

/// The trace of the newest model, or of the latest whose trace is complete.
///
/// Small models go to attend() at once. Of the others, what takes no longer than a frame is done in place,
/// the rest in the background, by a second engine. Meanwhile model(), sequence() and trace() stay those of
/// one state, which was true a moment ago.
class LiveTrace {
 public:
  static constexpr double frame_ms = 12;

  /// Computes the first trace at once; later what takes longer than at_once_ms is done in the background.
  /// Before a trace is computed, in any thread, before is called, which may take its time or throw. Throws
  /// core::Error.
  LiveTrace(Jobs& jobs, const core::attention::Model& model, double at_once_ms = frame_ms,
            std::function<void()> before = {});

  /// Without a trace until a model is followed; nothing is ever changed in place.
  explicit LiveTrace(Jobs& jobs);

  /// Goes after the trace of a model, which has passed check(), for a sequence that it has.
  ///
  /// What is under way for an older model is finished and shown when it is of the same shape, so that a drag
  /// is seen to move; else it is dropped. Throws core::Error.
  void follow(const core::attention::Model& model, std::size_t sequence);
  /// Drops the trace and of what is under way; there is none until a model is followed.
  void clear();

  const core::attention::Model& model() const { return shown_->model; }
  std::size_t sequence() const { return shown_->sequence; }
  const core::attention::Trace& trace() const { return shown_->trace(); }
  /// The same, to be read in the background.
  ReadLock read_lock() const;
  std::uint64_t version() const { return version_; }  ///< of the trace: another number, other numbers
  double compute_ms() const { return shown_->ms; }
  /// Whether the trace is attend()'s own, to the bit; else it may differ from it by rounding.
  bool is_exact() const { return shown_->reference || !core::attention::fast::covers(shown_->model); }

  /// A stage as the engine keeps it, or nothing; valid as long as the trace.
  core::attention::fast::RowView rows(core::attention::Stage stage, std::size_t head) const;
  /// What makes this version of the trace another than the one before.
  const core::attention::fast::Change& change() const { return change_; }

  /// Whether the trace is of that model and sequence.
  bool is_of(const core::attention::Model& model, std::size_t sequence) const {
    return shown_->is_of(model, sequence);
  }
  /// Whether the trace of the last model that was followed is still to come.
  bool is_behind() const { return behind_since_ && !has_failed_; }
  /// How long that has been so, in seconds.
  double seconds_behind() const;
  /// How much of the work is done, as far as can be foreseen: 0 … 1.
  double share_done() const { return std::min(next_.share(), 0.99); }

 private:
  using Clock = Jobs::Clock;
  struct State {
    core::attention::Model model;
    std::size_t sequence = 0;
    std::optional<core::attention::Trace> reference;  // of a small model, by attend()
    core::attention::fast::Engine engine;
    bool engine_holds_a_model = false;
    double ms = 0;
    mutable std::atomic<int> readers = 0;  // in the background

    const core::attention::Trace& trace() const { return reference ? *reference : engine.trace(); }
    bool is_of(const core::attention::Model& m, std::size_t s) const { return sequence == s && model == m; }
    /// The whole trace, or only what changed; false when it was called off.
    bool compute(core::attention::fast::Change& change, const core::Token* token,
                 const core::attention::fast::Engine::Plan* plan);
  };
  /// What a trace is of.
  struct Wanted {
    core::attention::Model model;
    std::size_t sequence = 0;
    /// Whether its trace may be shown on the way to the newest, so that a drag is seen to move.
    bool is_near(const Wanted& newest) const;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };

  /// Reads a state in the background.
  struct Reader {
    std::shared_ptr<const State> state;
    explicit Reader(std::shared_ptr<const State> s) : state(std::move(s)) { ++state->readers; }
    ~Reader() { --state->readers; }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
  };

  bool may_change_in_place();
  void compute_at_once(const core::attention::Model& model, std::size_t sequence);
  void update_in_place(const core::attention::Model& model, std::size_t sequence,
                       const core::attention::fast::Engine::Plan& plan);
  void begin(const Wanted& wanted);
  void cancel();
  bool compute(State& state, core::attention::fast::Change& change, const core::Token* token,
               const core::attention::fast::Engine::Plan* plan = nullptr) const;
  void show(std::shared_ptr<State> state);
  std::shared_ptr<State> new_state() const { return jobs_.destroyed_async(std::make_unique<State>()); }

  Jobs& jobs_;
  double at_once_ms_;
  std::function<void()> before_;
  bool changes_in_place_;
  // The spare one has memory for the next, as long as more is asked for.
  std::shared_ptr<State> shown_, spare_;
  std::shared_ptr<std::atomic<bool>> recalled_ = std::make_shared<std::atomic<bool>>(false);
  core::attention::fast::Change change_;
  std::uint64_t version_ = 0;
  std::optional<Clock::time_point>
      behind_since_;  // when the last trace was shown, or nothing else was wanted
  bool has_failed_ = false;
  AsyncValue<Wanted, std::shared_ptr<State>> next_;
};

constexpr double flash_seconds = 0.6;  ///< for so long a changed cell is lit

/// What the last edit made other: the stages as they were before it.
///
/// Only of models that are computed in no time; of others nothing is known.
class Changes {
 public:
  static constexpr std::size_t max_cells = std::size_t{1} << 14;  ///< of the weights of all heads

  /// To be called before an edit is carried out; edits of one gesture count as one.
  void edit(const core::attention::Model& model, std::size_t sequence);
  void end_gesture() { is_under_way_ = false; }
  /// To be called when all commands of a frame were carried out, with the model as it is then: where
  /// something else than an edit has changed it, nothing is known any more.
  void follow(const core::attention::Model& model);

  /// Whether a gesture goes on: a number is being dragged.
  bool is_under_way() const { return is_under_way_ && before_; }
  /// Since the last edit; very long where nothing is known.
  double seconds() const;
  /// A stage as it was, of that many rows and columns, or nullptr.
  const core::attention::StageMatrix* before(core::attention::Stage stage, std::size_t head,
                                             const core::attention::StageMatrix& now) const;
  const std::optional<core::attention::Trace>& trace() const { return before_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<core::attention::Trace> before_;
  std::optional<core::attention::Model> after_;  // the last edit
  bool edits_ = false;                           // in this frame
  bool is_under_way_ = false;
  Clock::time_point last_;
};

/// Whether two numbers differ by more than the rounding of a sum.
bool differs(double before, double now);

}  // namespace app
