#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/view.hpp"
#include "core/graph/gradients.hpp"

namespace app {

/// Gradients of a number of the displayed trace; of up to max_immediate tokens in the frame, of more in the
/// background.
class LiveGradient {
 public:
  static constexpr std::size_t max_immediate = 128;

  explicit LiveGradient(Jobs& jobs) : gradients_(jobs), value_after_step_(jobs) {}

  /// Follows the trace, and the number and the step of the look. Throws core::Error if the model does not
  /// have the number.
  void follow(const LiveTrace& live, const Look& look);

  /// Returns the newest gradients, or nullptr; they are those of the displayed trace if is_current().
  const core::graph::Gradients* gradients() const { return gradients_.value(); }
  bool is_current() const { return key_ && gradients_.matches(*key_); }
  /// Returns the number that a step along the gradient leads to; nothing while it is computed.
  std::optional<double> value_after_step() const;
  /// Returns a number that changes with the gradients.
  std::uint64_t version() const { return version_; }

  bool is_busy() const { return gradients_.is_busy(); }
  double seconds() const { return gradients_.seconds(); }
  double share() const { return gradients_.share(); }

 private:
  struct Key {
    std::uint64_t version = 0;  ///< of the trace
    std::optional<core::graph::Target> of;
    friend bool operator==(const Key&, const Key&) = default;
  };

  struct StepKey {
    Key gradients;
    double step = 0;
    std::vector<core::attention::MatrixRef> changed;
    friend bool operator==(const StepKey&, const StepKey&) = default;
  };

  void begin(const LiveTrace& live, const core::graph::Target& of, Schedule when);
  void follow_step(const LiveTrace& live, const Look& look, Schedule when);

  std::optional<Key> key_, seen_;
  std::optional<StepKey> step_;
  std::uint64_t version_ = 0;
  AsyncValue<Key, core::graph::Gradients> gradients_;
  AsyncValue<StepKey, double> value_after_step_;
};

/// Returns the matrices that a step along the gradient changes.
std::vector<core::attention::MatrixRef> stepped_matrices(const core::attention::Model& model,
                                                         const Look& look);

/// Returns by how much a step changes the number to first order: step · |∂|² of these matrices.
double predicted_change(const core::graph::Gradients& all, const core::attention::Model& model,
                        const Look& look);

}  // namespace app
