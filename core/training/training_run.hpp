#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/random.hpp"
#include "core/base/token.hpp"
#include "core/training/network.hpp"
#include "core/training/optimizer.hpp"
#include "core/training/task.hpp"

namespace core::training {

/// Numbers of a network that is measured, every 10 steps.
struct Measurement {
  std::size_t step = 0;          ///< steps before it
  double loss = 0;               ///< of the batch that comes next, in nats
  double training_accuracy = 0;  ///< on that batch, with dropout; 0 to 1
  double fresh_loss = 0;         ///< on sequences that are never trained on
  double accuracy = 0;           ///< on the same
  PatternScores patterns;        ///< on the same
};

/// Something that one should see, once it is there: "an induction head has formed", "99 % are right".
struct Milestone {
  std::size_t step = 0;
  std::string words;
  std::string detail = {};  ///< "head 1.1, 20 steps later", or ""
};

/// Returns the words of the milestones that a run of a task can reach: a head for each of its patterns, in
/// their order, the accuracy and, if there are several heads, one that takes over from an ablated one.
std::vector<std::string> milestone_words(const Task& task, std::size_t n_heads);

/// A head that is ablated, or enabled again.
struct HeadToggle {
  std::size_t layer = 0, head = 0;
  bool on = false;
  friend bool operator==(const HeadToggle&, const HeadToggle&) = default;
};
/// A learned matrix with other numbers.
struct MatrixChange {
  std::string parameter;  ///< as Network::parameters() names it
  SharedMatrix numbers;
  friend bool operator==(const MatrixChange&, const MatrixChange&) = default;
};
/// A change of a network that learns; a setup must be one with which it learns_on().
using NetworkChange = std::variant<TrainingSetup, HeadToggle, MatrixChange>;
/// A change before a step.
struct RunChange {
  NetworkChange what;
  std::size_t step = 0;
  bool diverged = false;  ///< the step was tried before, and its numbers were none
  friend bool operator==(const RunChange&, const RunChange&) = default;
};

/// Smallest share of attention with which a head of a pattern has formed; largest accuracy without a
/// milestone.
inline constexpr double formed = 0.5, solved = 0.99;

/// A network after some steps, in float32. Immutable, so runs share it.
struct Snapshot {
  struct NamedNumbers {
    std::string name;  ///< of the parameter
    arma::fmat numbers;
  };
  std::size_t step = 0;
  std::vector<NamedNumbers> parameters;
  std::vector<std::vector<std::size_t>> heads_off;  ///< [layer]: ablated heads
  TrainingSetup setup;
  std::size_t n_bytes() const;
};
using SnapshotRef = std::shared_ptr<const Snapshot>;

inline constexpr std::size_t max_snapshot_bytes = std::size_t{16} << 20;

/// A network that learns a task. A value: a copy goes on as the original would, so a change is undone by the
/// copy from before it. Copies share matrices and snapshots. Its first setup and its changes determine it.
class TrainingRun {
 public:
  /// Throws core::Error for a setup that cannot be trained. Snapshots take at most max_bytes bytes.
  TrainingRun(const TrainingSetup& setup, std::shared_ptr<const TaskData> data,
              std::size_t max_bytes = max_snapshot_bytes);

  /// Learns from one batch; does nothing once it has diverged.
  void step();
  /// Measures now, if the last measurement is of an earlier step.
  void measure();

  std::size_t n_steps() const { return n_steps_; }
  bool is_done() const { return diverged_at_ || n_steps_ >= network_.setup.n_steps; }
  /// Returns the step at which the loss or a gradient was no longer a number, if so; the network is then that
  /// of the last step before it at which both were.
  std::optional<std::size_t> diverged_at() const { return diverged_at_; }

  const TaskData& data() const { return *data_; }
  const std::shared_ptr<const TaskData>& shared_data() const { return data_; }
  const Network& network() const { return network_; }
  /// Changes the network, and measures it; the next step learns on from there, also after a divergence.
  /// Another optimizer begins with its warmup. Throws core::Error, and changes nothing, for a setup with
  /// which it cannot learn on and a place that the network lacks.
  void change(const NetworkChange& what);
  /// Returns the changes so far, and the setup before them.
  const std::vector<RunChange>& changes() const { return changes_; }
  const TrainingSetup& first_setup() const { return first_setup_; }
  /// Returns the run that begins with a setup and learns up to a step, with the changes up to there; reports
  /// the share that is done. It ends where it diverges. Throws core::Error as change() does, and Stopped.
  static std::shared_ptr<TrainingRun> learned_again(const TrainingSetup& first,
                                                    std::shared_ptr<const TaskData> data,
                                                    std::span<const RunChange> changes, std::size_t n_steps,
                                                    const StopToken& progress);

  /// Returns [step]: the training loss of the batch of each step.
  const std::vector<double>& losses() const { return losses_; }
  const std::vector<Measurement>& measurements() const { return measurements_; }
  const std::vector<Milestone>& milestones() const { return milestones_; }
  /// Returns the kept snapshots by step: the first, the last, and those between that the memory allows, at
  /// equal distances of snapshot_interval() steps.
  std::vector<SnapshotRef> snapshots() const;
  std::size_t snapshot_interval() const { return interval_; }
  std::size_t snapshot_bytes() const;
  /// Returns the network of a snapshot.
  Network restored(const Snapshot& snapshot) const;
  /// Returns the samples that measurements are made on, the same in every run of a task.
  const std::vector<Sample>& fresh_samples() const { return *fresh_; }

 private:
  std::vector<Sample> next_batch(random::Generator& generator) const;
  std::uint64_t dropout_seed() const;
  void keep_snapshot();
  void add_milestones(const Measurement& measured);
  void add_takeover(const Measurement& measured);
  void diverge(const Network& good);

  std::shared_ptr<const TaskData> data_;
  TrainingSetup first_setup_;
  std::vector<RunChange> changes_;
  Network network_;
  Network before_;  ///< one step before network_
  Optimizer optimizer_;
  random::Generator generator_;
  std::shared_ptr<const std::vector<Sample>> training_, fresh_;  ///< training_ is empty if batches are new
  std::size_t n_steps_ = 0;
  std::optional<std::size_t> diverged_at_;
  std::vector<double> losses_;
  std::vector<Measurement> measurements_;
  std::vector<Milestone> milestones_;
  std::size_t max_bytes_, interval_ = 1;
  std::vector<SnapshotRef> snapshots_;  ///< at multiples of interval_
  SnapshotRef last_;
};

}  // namespace core::training
