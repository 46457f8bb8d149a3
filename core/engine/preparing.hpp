#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/engine/projected.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {

/// What a model does to queries and keys before they meet, row by row: norms, then turns; by default nothing.
class Preparing {
 public:
  Preparing() = default;
  explicit Preparing(const Model& model);

  /// Whether it does anything.
  bool any() const { return norm_ || rotary_; }
  /// Whether it is what a model does.
  bool fits(const Model& model) const;

  /// Prepares the row of one head, or group: d_head numbers of token t, in place.
  void prepare(Projected what, std::size_t t, double* row) const;
  /// The norm alone.
  void norm(Projected what, double* row) const;

 private:
  void turn(std::size_t at, double* row) const;

  std::size_t n_queries_ = 0, n_keys_ = 0, d_head_ = 0;
  std::optional<HeadNorm> norm_;
  std::optional<positions::Rotary> rotary_;
  std::vector<positions::PairColumns> pairs_;
  std::vector<double> cosines_, sines_;  // [position from the earliest on][pair]
};

}  // namespace core::attention::fast
