#pragma once

#include <armadillo>
#include <map>
#include <memory>
#include <vector>

#include "core/attention/model.hpp"
#include "core/attention/stages.hpp"
#include "core/attention/trace.hpp"
#include "core/check/reading.hpp"

namespace core::check {

/// A model with its traces, each computed when it is first asked for.
class Computed {
 public:
  /// Throws core::Error as attend() does, but when a trace is asked for.
  explicit Computed(Model model) : model_(std::move(model)) {}

  const Model& model() const { return model_; }
  const attention::Trace& trace(std::size_t sequence) const;

  /// The same model with float32 in every stage: what its rounding alone does is read from it.
  const Computed& in_float32() const;

  /// The matrices that a reading's part can be: that of the stage, or side by side those of its heads.
  ///
  /// Those behind the first are other customs of writing the same down: a mask that is 1 where it hides, a
  /// mask that is added, a large negative number that is added, scores before or after a dropout that falls
  /// on them.
  std::vector<arma::mat> forms(const Reading& reading, std::size_t sequence, std::size_t head) const;
  /// The first of them alone.
  arma::mat form(const Reading& reading, std::size_t sequence, std::size_t head) const;

  /// How far float32 takes the numbers of a stage from those of float64, at most, over all heads.
  double float32_error(const Reading& reading) const;

 private:
  Model model_;
  mutable std::map<std::size_t, attention::Trace>
      traces_;  // kept because each may be asked for again and again
  mutable std::shared_ptr<Computed> float32_;
};

}  // namespace core::check
