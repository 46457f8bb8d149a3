#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace app {

constexpr double flash_seconds = 0.6;  ///< for so long a changed cell is lit

/// What the last edit made other: the stages as they were before it.
///
/// Only of models that are computed in no time; of others nothing is known.
class Changes {
 public:
  static constexpr std::size_t most_cells = std::size_t{1} << 14;  ///< of the weights of all heads

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
