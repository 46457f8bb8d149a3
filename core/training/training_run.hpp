#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.hpp"
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
};

/// Returns the words of the milestones that a run of a task can reach: a head for each of its patterns, in
/// their order, and the accuracy.
std::vector<std::string> milestone_words(const Task& task);

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
  std::size_t n_bytes() const;
};
using SnapshotRef = std::shared_ptr<const Snapshot>;

/// A network that learns a task. A value: a copy goes on as the original would, so an edit is undone by the
/// copy from before it. Copies share matrices and snapshots.
class TrainingRun {
 public:
  /// Throws core::Error for a setup that cannot be trained. Snapshots take at most max_bytes bytes.
  TrainingRun(const TrainingSetup& setup, std::shared_ptr<const TaskData> data,
              std::size_t max_bytes = std::size_t{16} << 20);

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
  const Network& network() const { return network_; }
  /// Returns the network for an edit: of numbers, masks, ablated heads, the learning rate. The next step
  /// learns on from there.
  Network& edit() { return network_; }

  /// Returns [step]: the training loss of the batch of each step.
  const std::vector<double>& losses() const { return losses_; }
  const std::vector<Measurement>& measurements() const { return measurements_; }
  const std::vector<Milestone>& milestones() const { return milestones_; }
  /// Returns the kept snapshots by step: the first, the last, and those between that the memory allows, at
  /// equal distances of snapshot_interval() steps.
  std::vector<SnapshotRef> snapshots() const;
  std::size_t snapshot_interval() const { return interval_; }
  std::size_t snapshot_bytes() const;
  /// Returns the network of a snapshot, with the options that it has now.
  Network restored(const Snapshot& snapshot) const;
  /// Returns the samples that measurements are made on, the same in every run of a task.
  const std::vector<Sample>& fresh_samples() const { return *fresh_; }

 private:
  std::vector<Sample> next_batch(random::Generator& generator) const;
  std::uint64_t dropout_seed() const;
  void keep_snapshot();
  void add_milestones(const Measurement& measured);
  void diverge(const Network& good);

  std::shared_ptr<const TaskData> data_;
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
