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

/// Positions that turn queries and keys (Su et al. 2021, "RoFormer").

using attention::SharedMatrix;

/// Which columns turn together: p and p + d/2, or 2p and 2p + 1.
enum class Pairs { halves, neighbours };

/// How rotations are scaled for texts that are longer than those of the training: all frequencies alike;
/// those of long wavelengths (Llama 3.1; YaRN: Peng et al. 2023); by a base that grows with the length of a
/// text (dynamic NTK); or each frequency by a factor of its own (LongRoPE: Ding et al. 2024).
enum class ScalingRule { none, linear, llama3, yarn, dynamic, longrope };

struct Scaling {
  ScalingRule rule = ScalingRule::none;
  double factor = 1;  ///< above 0, of all but longrope; linear: positions are divided by it
  /// llama3: wavelengths beyond original/low are stretched, below original/high not. yarn: beta_slow and
  /// beta_fast, the same as numbers of turns in the original length.
  double low = 1, high = 4;
  double original = 8192;  ///< tokens of the training, of all but linear
  double attention = 1;    ///< yarn, longrope: attention_factor, by which cosines and sines are multiplied
  bool truncate = true;    ///< yarn: the pairs from which and up to which it scales are rounded
  /// longrope: frequencies are divided by these, 2 × d/2: in texts up to the original length, and in longer
  /// ones.
  std::optional<SharedMatrix> factors = {};
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

/// beta_fast of YaRN, and the attention factor that it has for a factor; transformers' where a configuration
/// says none.
constexpr double yarn_fast = 32;
double yarn_attention(double factor, double mscale = 1);

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
std::size_t rotated_columns(const Rotary& rotary, std::size_t d_head);

/// [pair]: radians by which each pair turns from one position to the next, scaled as the rule says.
std::vector<double> frequencies(const Rotary& rotary, std::size_t d_head);

/// The same embeddings for a text of that length, which scaling may ask for: neither its base nor its factors
/// depend on the length any more. length: position of the last key + 1.
Rotary at_length(Rotary rotary, std::size_t d_head, std::int64_t length);

/// What cosines and sines are multiplied by: 1, or the attention factor of the scaling.
double magnitude(const Rotary& rotary);

/// The two columns of a pair.
struct PairColumns {
  std::size_t first = 0, second = 0;
};
PairColumns columns_of(const Rotary& rotary, std::size_t pair, std::size_t d_head);

/// The pair that a column belongs to, or nothing when it is not rotated.
std::optional<std::size_t> pair_of(const Rotary& rotary, std::size_t column, std::size_t d_head);

/// Rows of d_head numbers, each turned by its position: first_position, first_position + 1, ….
arma::mat rotate(const arma::mat& rows, std::int64_t first_position, const Rotary& rotary);

/// The position whose multiples of a frequency are angles: linear scaling divides it.
double scaled_position(const Rotary& rotary, double position);

/// Cosine and sine of every pair at one position, times the magnitude, for whoever turns row by row.
struct Rotation {
  std::vector<double> cosines, sines;  ///< [pair]
};
Rotation rotation_at(const Rotary& rotary, const std::vector<double>& frequencies, std::int64_t position);

/// Radians by which a pair of that frequency is turned at a position, which may lie between two tokens.
inline double angle_at(const Rotary& rotary, double position, double frequency) {
  return scaled_position(rotary, position) * frequency;
}

/// The two numbers of a pair turned to the left. Source: Su et al. 2021, equation 13.
template <class Number>
void rotate_pair(Number& first, Number& second, Number cosine, Number sine) {
  const Number x = first, y = second;
  first = x * cosine - y * sine;
  second = x * sine + y * cosine;
}

/// Two columns of a query or a key as a point of the plane.
struct Arrow {
  double x = 0, y = 0;
  friend bool operator==(const Arrow&, const Arrow&) = default;
};

/// An arrow turned to the left by an angle in radians.
Arrow rotate(Arrow arrow, double angle);

/// One pair of columns of a query and a key, before and after both were turned.
struct RotaryPair {
  PairColumns columns;
  double query_angle = 0, key_angle = 0;  ///< radians by which they were turned
  Arrow query, key, rotated_query, rotated_key;
  double magnitude = 1;  ///< by which both became longer
  double share = 0;      ///< of the pair in the score
};

/// A query and a key at two positions, pair by pair.
struct RotaryDot {
  std::vector<RotaryPair> pairs;
  double unrotated = 0;  ///< what the columns that do not turn add to the score
  double score = 0;      ///< before scaling
};

/// How a query meets a key, d_head numbers each, at positions that may lie between two tokens.
RotaryDot rotary_dot(const Rotary& rotary, const arma::rowvec& query, const arma::rowvec& key,
                     double query_at, double key_at);

}  // namespace core::positions
