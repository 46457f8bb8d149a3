#pragma once

#include "core/check/limits.hpp"
#include "core/check/reading.hpp"
#include "core/check/stored_as.hpp"

namespace core::check {

class Computed;

/// What a tensor was found to be, compared with one stage of a computed model.
struct Agreement {
  bool within = true;
  double largest = 0;    ///< |theirs − ours|, 0 … ∞; NaN equals NaN, an infinity equals itself
  bool of_nan = false;   ///< that is ∞ as one alone is NaN
  double magnitude = 0;  ///< the largest finite |ours|
  std::size_t sequence = 0, head = 0, row = 0,
              column = 0;  ///< the first place, row by row, that is so far apart
  std::size_t n_far =
      0;  ///< of the numbers of the worst matrix, those that are further apart than they may be
};

/// The finest type that a tensor shows to have been rounded to: its own, or float32 when all numbers of a
/// float64 tensor are numbers of float32.
formats::Dtype rounding_of(const formats::Tensor& tensor);

/// Compares a tensor, read in one way, with a computed model.
Agreement agreement(const Theirs& theirs, const Reading& reading, const Computed& ours,
                    const Tolerance& tolerance);

/// The first of its readings that agrees, or nullptr.
const Reading* agreeing(const Theirs& theirs, const Computed& ours, const Tolerance& tolerance);

}  // namespace core::check
