#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/view.hpp"
#include "core/training/training_run.hpp"

namespace app {

/// A network at a step on one sequence that it is not trained on.
struct LearnedPicture {
  std::size_t step = 0;
  std::vector<std::vector<arma::mat>> weights;      ///< [layer][head]: n_tokens × n_tokens
  std::vector<std::vector<std::size_t>> heads_off;  ///< [layer]: ablated heads
  arma::mat visible;                                ///< 0 = masked; empty without a mask
  std::vector<std::string> tokens;                  ///< [position]
  std::vector<std::string> targets;                 ///< [position]: to be predicted there, or ""
  std::vector<std::string> predicted;               ///< [position]: the most probable token
  std::vector<double> probabilities;                ///< [position]: its probability
};

/// State that undo restores.
struct LearningState {
  std::shared_ptr<const core::training::TrainingRun> run;
};
/// Returns the models that count towards the memory budget of undo.
std::vector<const core::attention::Model*> models_in(const LearningState& state);

/// A run as a document, with its history.
struct LearningDocument {
  std::shared_ptr<const core::training::TrainingRun> run = nullptr, saved = nullptr;
  core::editing::HistoryOf<LearningState> history = core::editing::HistoryOf<LearningState>();
  std::optional<std::filesystem::path> path = {};  ///< where it is saved
  std::string stamp = {};                          ///< of that file when it was read or written, or ""
  core::training::SnapshotRef baseline = nullptr;  ///< A
  bool is_lesson = false;                          ///< it is not the user's work
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
  explicit Learning(Jobs& jobs) : jobs_(jobs), queue_(jobs), picture_(jobs), baseline_picture_(jobs) {}

  /// Begins a run of a task of the table or, if task is "", of predicting a text. If the current run
  /// learns_on() with the setup, it does so instead. Either is an undo step, except for another number of
  /// steps.
  ///
  /// Throws core::Error for an unknown task, a text that cannot be one, and a setup that cannot be trained.
  void set(const std::string& task, const std::string& text, const core::training::TrainingSetup& setup);
  /// Begins a run with the same setup again.
  void restart();
  /// Ablates a head, or sets matrices, before the next step: one undo step.
  void change(std::vector<core::training::NetworkChange> whats);
  /// Begins the run again in the background, and learns up to a step as it did.
  void go_back_to(std::size_t step);
  /// Makes a run the document, as an undo step, or as it was before a lesson.
  void open(std::shared_ptr<const core::training::TrainingRun> run,
            const std::optional<std::filesystem::path>& path, const std::string& stamp);
  LearningDocument exchange(LearningDocument document);
  /// Marks a run as saved in a file.
  void mark_saved(std::shared_ptr<const core::training::TrainingRun> run, const std::filesystem::path& path);
  /// Restores the run from before a change, or after it; the steps since then are undone with it.
  void undo() { restore(document_.history.undo({document_.run})); }
  void redo() { restore(document_.history.redo({document_.run})); }
  void end_gesture() { document_.history.end_gesture(); }
  /// Keeps a snapshot as A, or none.
  void keep(core::training::SnapshotRef baseline) { document_.baseline = std::move(baseline); }
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
  const std::shared_ptr<const core::training::TrainingRun>& run() const { return document_.run; }
  const LearningDocument& document() const { return document_; }
  /// Returns its title, the name of its file or "Watch it learn: induction", and its undo, for the window.
  DocumentState state(const std::vector<std::filesystem::path>& recent) const;
  /// Whether it has learned or changed anything that is not saved.
  bool is_modified() const;
  /// Returns the session to recover it from, at most some steps old while it plays; "" if it is saved.
  const std::string& recovery_text() const { return recovery_text_; }
  const std::vector<core::training::SnapshotRef>& snapshots() const { return snapshots_; }
  /// Returns the index of the displayed snapshot: the last one up to the step of the look.
  std::size_t shown(const LearningLook& look) const;
  /// Returns the picture of the look or, while that is computed, the one before; nullptr before the first.
  const LearnedPicture* picture() const { return picture_.value(); }
  /// Returns the picture of A, or nullptr.
  const LearnedPicture* baseline_picture() const {
    return document_.baseline ? baseline_picture_.value() : nullptr;
  }
  /// Returns a number that changes with the picture.
  std::uint64_t picture_version() const { return picture_version_; }

  /// Whether steps, a new run or a picture are requested or being computed.
  bool is_busy() const {
    return n_requested_ > 0 || !pending_.empty() || queue_.is_busy() || picture_.is_busy() ||
           baseline_picture_.is_busy();
  }
  /// Returns the share of the steps that a run has learned again up to where it goes on, or 0.
  double share_learned_again() const { return is_training_ ? 0 : queue_.share(); }
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

  using RunMaker = std::function<std::shared_ptr<const core::training::TrainingRun>(const core::StopToken&)>;
  /// Makes another run in the background, as an undo step; replaces what is being computed.
  void begin(const std::string& target, const std::string& words, const RunMaker& make);
  void begin_again(const std::string& words);
  void stop();
  void begin_changes();
  void begin_steps();
  void take(std::shared_ptr<const core::training::TrainingRun> run);
  void follow_recovery(bool plays);
  void restore(const LearningState& state);
  void adopt_setup();

  Jobs& jobs_;
  std::string task_, text_;
  std::shared_ptr<const core::training::TaskData> data_;
  core::training::TrainingSetup setup_;
  LearningDocument document_;
  std::vector<core::training::NetworkChange> pending_;
  bool is_training_ = false;
  std::string recovery_text_;
  std::shared_ptr<const core::training::TrainingRun> recovered_;
  std::vector<core::training::SnapshotRef> snapshots_;
  std::size_t n_requested_ = 0;
  double ms_per_step_ = 0;
  Clock::time_point requested_at_;
  std::deque<std::pair<Clock::time_point, std::size_t>> delivered_;  // of the last second
  std::uint64_t picture_version_ = 0;
  std::pair<std::optional<PictureKey>, std::optional<PictureKey>> seen_;
  JobQueue queue_;
  AsyncValue<PictureKey, LearnedPicture> picture_, baseline_picture_;
};

}  // namespace app
