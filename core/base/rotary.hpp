#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/shared_matrix.hpp"

/// Positions that turn queries and keys (Su et al. 2021, "RoFormer").
namespace core::positions {

using attention::SharedMatrix;

/// Which columns turn together: p and p + d/2, or 2p and 2p + 1.
enum class Pairs { halves, neighbours };

/// How frequencies are stretched for texts that are longer than those of the training.
enum class ScalingRule { none, linear, llama3 };

struct Scaling {
  ScalingRule rule = ScalingRule::none;
  double factor = 1;  ///< above 0; linear: positions are divided by it
  double low = 1,
         high = 4;         ///< llama3: wavelengths beyond original/low are stretched, below original/high not
  double original = 8192;  ///< llama3: tokens of the training
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

/// How queries and keys turn with their positions.
struct Rotary {
  double base = 10000;  ///< above 0; pair p turns by base^(−2p/d) a position
  Pairs pairs = Pairs::halves;
  std::optional<std::size_t> dimensions;  ///< d: columns of a head that turn, even; without it all of them
  std::int64_t first = 0;                 ///< position of the first key
  Scaling scaling;
  std::optional<SharedMatrix> inverse_frequencies;  ///< 1 × d/2: radians a position, whatever base says
  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// Columns of a head that turn, the first ones.
std::size_t turned_columns(const Rotary& rotary, std::size_t d_head);

/// [pair]: radians by which each pair turns from one position to the next, scaled as the rule says.
std::vector<double> frequencies(const Rotary& rotary, std::size_t d_head);

/// The two columns of a pair.
struct PairColumns {
  std::size_t first = 0, second = 0;
};
PairColumns columns_of(const Rotary& rotary, std::size_t pair, std::size_t d_head);

/// The pair that a column belongs to, or nothing when it does not turn.
std::optional<std::size_t> pair_of(const Rotary& rotary, std::size_t column, std::size_t d_head);

/// Rows of d_head numbers, each turned by its position: first_position, first_position + 1, ….
arma::mat turned(const arma::mat& rows, std::int64_t first_position, const Rotary& rotary);

/// The position whose multiples of a frequency are angles: linear scaling divides it.
double scaled_position(const Rotary& rotary, double position);

/// Cosine and sine of every pair at one position, for whoever turns row by row.
struct Turn {
  std::vector<double> cosines, sines;  ///< [pair]
};
Turn turn_at(const Rotary& rotary, const std::vector<double>& frequencies, std::int64_t position);

}  // namespace core::positions
