#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/engine/kernels.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {

/// What a model does to scaled scores before the mask: a cap, then biases; by default nothing.
class Adjusting {
 public:
  Adjusting() = default;
  explicit Adjusting(const Model& model);

  bool caps() const { return cap_.has_value(); }
  bool adds() const { return !by_distance_.empty() || !bias_.empty(); }
  bool any() const { return caps() || adds(); }
  /// Whether it is what a model does.
  bool fits(const Model& model) const;

  /// Scores first … end − 1 of a row, in place.
  void adjust(const Kernels& kernels, std::size_t head, std::size_t row, double* scores, std::size_t first,
              std::size_t end) const;

  double capped(double scaled) const;
  /// What positions alone add.
  double position_bias(std::size_t head, std::size_t row, std::size_t key) const;
  /// All that is added.
  double bias(std::size_t head, std::size_t row, std::size_t key) const;

 private:
  const double* distances(std::size_t head, std::size_t row) const;
  const double* given(std::size_t head, std::size_t row) const;

  std::size_t n_queries_ = 0, n_keys_ = 0, n_heads_ = 0;
  Positions positions_;
  std::vector<SharedMatrix> score_bias_;
  std::optional<double> cap_;
  std::vector<std::vector<double>> by_distance_;  // [head][key − query, from the least on]
  std::vector<std::vector<double>> bias_;         // one for all heads or one each, row after row
};

}  // namespace core::attention::fast
