#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/session/view.hpp"
#include "core/training/training_run.hpp"

namespace app {

/// A network at a step on one sequence that it is not trained on.
struct LearnedPicture {
  std::size_t step = 0;
  std::vector<std::vector<arma::mat>> weights;  ///< [layer][head]: n_tokens × n_tokens
  arma::mat visible;                            ///< 0 = masked; empty without a mask
  std::vector<std::string> tokens;              ///< [position]
  std::vector<std::string> targets;             ///< [position]: to be predicted there, or ""
  std::vector<std::string> predicted;           ///< [position]: the most probable token
  std::vector<double> probabilities;            ///< [position]: its probability
};

/// Returns the picture of a snapshot of a run on one of its fresh samples.
LearnedPicture learned_picture(const core::training::TrainingRun& run,
                               const core::training::Snapshot& snapshot, std::size_t sample);

/// How often a run goes on while it plays, and by how many steps.
struct LearningPace {
  double seconds = 0;
  std::size_t n_steps = 1;
};

/// A run of training in the background. What is displayed is a copy of the run from before the steps that are
/// being trained, so that nothing waits for them.
class Learning {
 public:
  explicit Learning(Jobs& jobs) : jobs_(jobs), queue_(jobs), picture_(jobs) {}

  /// Begins a run of a task of the table or, if task is "", of predicting a text. If only batch, learning
  /// rate and the number of steps differ from the current run, it goes on with them instead.
  ///
  /// Throws core::Error for an unknown task, a text that cannot be one, and a setup that cannot be trained.
  void set(const std::string& task, const std::string& text, const core::training::TrainingSetup& setup);
  /// Begins the same run again.
  void restart();
  /// Requests steps, in addition to those that are requested already.
  void add_steps(std::size_t n);
  /// Begins what was requested: steps, and the picture of the look. Once a frame.
  void follow(const LearningLook& look);

  /// Whether a run was begun.
  bool is_open() const { return data_ != nullptr; }
  const std::string& task() const { return task_; }  ///< or "" of a text
  const std::string& text() const { return text_; }
  /// Returns the setup, which batch, learning rate and number of steps of the next step are from.
  const core::training::TrainingSetup& setup() const { return setup_; }
  /// Returns the newest state of the run, or nullptr until it has begun.
  const std::shared_ptr<const core::training::TrainingRun>& run() const { return run_; }
  const std::vector<core::training::SnapshotRef>& snapshots() const { return snapshots_; }
  /// Returns the index of the displayed snapshot: the last one up to the step of the look.
  std::size_t shown(const LearningLook& look) const;
  /// Returns the picture of the look or, while that is computed, the one before; nullptr before the first.
  const LearnedPicture* picture() const { return picture_.value(); }
  /// Returns a number that changes with the picture.
  std::uint64_t picture_version() const { return picture_version_; }

  /// Whether steps, a new run or a picture are requested or being computed.
  bool is_busy() const { return n_requested_ > 0 || queue_.is_busy() || picture_.is_busy(); }
  /// Returns the number of requested steps that have not begun.
  std::size_t n_requested() const { return n_requested_; }
  /// Returns the steps of the last second.
  double steps_per_second() const;
  /// Returns the seconds since steps were requested last.
  double seconds_since_request() const;
  /// Returns the pace of a look: a picture for every step or at most 60 a second; with reduced motion one a
  /// second.
  LearningPace pace(const LearningLook& look, bool reduces_motion) const;

 private:
  struct PictureKey {
    core::training::SnapshotRef snapshot;
    std::size_t sample = 0;
    bool is_compatible(const PictureKey&) const { return true; }
    friend bool operator==(const PictureKey&, const PictureKey&) = default;
  };

  void begin();
  void begin_steps();
  void take(std::shared_ptr<const core::training::TrainingRun> run);

  Jobs& jobs_;
  std::string task_, text_;
  std::shared_ptr<const core::training::TaskData> data_;
  core::training::TrainingSetup setup_;
  std::shared_ptr<const core::training::TrainingRun> run_;
  std::vector<core::training::SnapshotRef> snapshots_;
  std::size_t n_requested_ = 0;
  double ms_per_step_ = 0;
  Clock::time_point requested_at_;
  std::deque<std::pair<Clock::time_point, std::size_t>> delivered_;  // of the last second
  std::uint64_t picture_version_ = 0;
  std::optional<PictureKey> seen_;
  JobQueue queue_;
  AsyncValue<PictureKey, LearnedPicture> picture_;
};

}  // namespace app
