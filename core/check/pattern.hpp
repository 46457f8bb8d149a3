#pragma once

#include <armadillo>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace core::check {

/// The numbers of one head, or of a stage that all heads share; two matrices of one shape.
struct HeadDifference {
  std::size_t head = 0;
  arma::mat theirs, ours;
};

/// What a stage is made of, and when its numbers count as equal.
struct PatternOf {
  std::size_t n_heads = 1;  ///< 1 for a stage that all heads share
  bool columns_are_keys = false;
  std::function<double(double ours)> allowed;  ///< how far apart numbers may be
};

/// Where numbers differ, as a part of a sentence: "only keys from 512 on", "head 3 alone", "every 64th
/// column", "all rows by a factor 1.02", "grows with the position"; "" when there is nothing in particular.
std::string pattern_of(const std::vector<HeadDifference>& heads, const PatternOf& stage);

}  // namespace core::check
