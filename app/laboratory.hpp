#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>

#include "core/attention/dropout_study.hpp"

namespace app {

/// What the dropout laboratory shows: a study of the shown head that is drawn a portion a frame.
struct Laboratory {
  /// The curve of the mean's distance ends after so many masks.
  static constexpr std::size_t most_masks = 1024;

  core::attention::DropoutStudy study;
  std::size_t n_masks = 64;  ///< over how many the mean is taken
  arma::mat mean,
      difference;     ///< of the first n_masks, or of as many as were drawn; the mean less the weights
  arma::rowvec ones;  ///< ten ones under the same dropout
  std::uint64_t revision = 0;  ///< another number, other numbers
  std::uint64_t version = 0;   ///< of the trace
  std::size_t head = 0;

  bool is_complete() const { return study.count() >= most_masks; }
};

/// Draws more masks for about so many seconds, at least one, and keeps the mean of the first n_masks.
void advance(Laboratory& laboratory, double seconds);

}  // namespace app
