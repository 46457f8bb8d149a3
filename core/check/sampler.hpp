#pragma once

#include <armadillo>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::check {

using attention::Model;
using attention::Trace;

/// Rows of one sequence, of which a few are enough to tell that a model does not give somebody's tensors.
struct Sample {
  std::size_t sequence = 0;
  std::vector<std::size_t> rows;  ///< each once
};

/// Computes a few rows of models of one size, in a fraction of the time that all of them take.
///
/// Models that are tried one after the other have most of their projections in common; what these make of the
/// embeddings is kept.
class Sampler {
 public:
  explicit Sampler(Sample sample) : sample_(std::move(sample)) {}

  const Sample& sample() const { return sample_; }

  /// The trace of the sampled sequence as attend() gives it, but row a of each stage is row sample().rows[a];
  /// rows behind those of the sample count for nothing.
  ///
  /// Nothing may be given in the model, and keys must be those of the tokens. Throws core::Error as attend()
  /// does.
  Trace trace(const Model& model) const;

 private:
  /// Keys or values of all heads, and what they were projected from.
  struct Projected {
    attention::SharedMatrix embeddings;
    attention::Linear linear;
    attention::Precision precision, factors;
    std::optional<attention::Precision> sums;
    attention::SharedMatrix all = {};
    bool made_like(const Projected& other) const;
  };

  Sample sample_;
  mutable std::vector<Projected> projected_;  // kept because models that follow each other share them
  mutable std::optional<std::pair<attention::Dropout, attention::SharedMatrix>> kept_;  // likewise
};

}  // namespace core::check
