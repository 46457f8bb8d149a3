#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/shared_matrix.hpp"

/// Positions that are added to the scores.
namespace core::positions {

using attention::SharedMatrix;

/// −slope·distance for each head (Press, Smith and Lewis 2022, "Train short, test long").
struct Alibi {
  std::optional<SharedMatrix> slopes;  ///< 1 × n_heads; without them default_slopes()
  friend bool operator==(const Alibi&, const Alibi&) = default;
};

/// A learned number for each bucket of distances and each head (Raffel et al. 2020, "T5").
struct Relative {
  SharedMatrix table;              ///< n_heads × n_buckets
  std::size_t max_distance = 128;  ///< distances from there on share the last bucket
  bool bidirectional = true;       ///< whether keys that come after the query have buckets of their own
  friend bool operator==(const Relative&, const Relative&) = default;
};

/// [head]: 2^(−8(h + 1)/n) for a power of two; else those of the power below and every other one of the next.
std::vector<double> default_slopes(std::size_t n_heads);

/// The slope of a head.
double slope_of(const Alibi& alibi, std::size_t head, std::size_t n_heads);

/// The bucket of a distance, key − query: each its own while they are small, then in logarithmic steps.
std::size_t bucket_of(std::int64_t distance, const Relative& relative);

}  // namespace core::positions
