#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/shared_matrix.hpp"

/// Relative position biases and rotary embeddings (RoPE).
namespace core::positions {

using attention::SharedMatrix;

/// ALiBi: −slope·distance for each head (Press, Smith and Lewis 2022, "Train short, test long").
struct Alibi {
  std::optional<SharedMatrix> slopes;  ///< 1 × n_heads; default_slopes() if not set
  friend bool operator==(const Alibi&, const Alibi&) = default;
};

/// Learned bias for each head and bucket of distances (Raffel et al. 2020, "T5").
struct Relative {
  SharedMatrix table;              ///< n_heads × n_buckets
  std::size_t max_distance = 128;  ///< distances from here on share the last bucket
  bool bidirectional = true;       ///< whether keys after the query have separate buckets
  friend bool operator==(const Relative&, const Relative&) = default;
};

/// Returns [head]: 2^(−8(h + 1)/n) for n = 2^k; else those of the power below and every other of the next.
std::vector<double> default_slopes(std::size_t n_heads);

/// Returns the slope of a head.
double alibi_slope(const Alibi& alibi, std::size_t head, std::size_t n_heads);

/// Returns the bucket of a distance, key − query: exact for small distances, logarithmic for larger ones.
std::size_t relative_position_bucket(std::int64_t distance, const Relative& relative);

/// Rotary embeddings of queries and keys (Su et al. 2021, "RoFormer").

using attention::SharedMatrix;

/// Columns that are rotated together: p and p + d/2, or 2p and 2p + 1.
enum class Pairs { halves, neighbors };

/// Scaling of rotations for texts longer than in training: all frequencies alike (linear); long wavelengths
/// only (Llama 3.1; YaRN: Peng et al. 2023); a base that grows with the length of the text (dynamic NTK); or
/// a factor for each frequency (LongRoPE: Ding et al. 2024).
enum class ScalingRule { none, linear, llama3, yarn, dynamic, longrope };

struct Scaling {
  ScalingRule rule = ScalingRule::none;
  double factor = 1;  ///< above 0, unused by longrope; linear: divides the positions
  /// llama3: wavelengths above original/low are stretched, those below original/high are not. yarn: beta_slow
  /// and beta_fast, the same limits in rotations within the original length.
  double low = 1, high = 4;
  double original = 8192;  ///< length of the training texts in tokens, unused by linear
  double attention = 1;    ///< yarn, longrope: attention_factor, multiplies cosines and sines
  bool truncate = true;    ///< yarn: limits of the scaled pairs are rounded
  /// longrope: divisors of the frequencies, 2 × d/2: for texts up to the original length, and for longer
  /// ones.
  std::optional<SharedMatrix> factors = {};
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

/// YaRN's beta_fast, and its attention factor for a scaling factor, as transformers sets them if the
/// configuration does not.
constexpr double yarn_beta_fast = 32;
double yarn_attention_factor(double factor, double mscale = 1);

/// Rotation of queries and keys by their positions.
struct Rotary {
  double base = 10000;  ///< above 0; pair p rotates by base^(−2p/d) per position
  Pairs pairs = Pairs::halves;
  std::optional<std::size_t> dimensions;  ///< d: rotated columns of a head, even; all if not set
  std::int64_t first = 0;                 ///< position of the first key
  Scaling scaling;
  std::optional<SharedMatrix> inverse_frequencies;  ///< 1 × d/2: radians per position, overrides base
  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// Returns the number of rotated columns of a head, which come first.
std::size_t rotated_columns(const Rotary& rotary, std::size_t d_head);

/// Returns [pair]: radians by which each pair rotates per position, scaled by the rule.
std::vector<double> frequencies(const Rotary& rotary, std::size_t d_head);

/// Returns the embedding for a text of that length (position of the last key + 1), with base and factors that
/// do not depend on the length.
Rotary at_length(Rotary rotary, std::size_t d_head, std::int64_t length);

/// Returns the factor of cosines and sines: 1, or the attention factor of the scaling.
double attention_factor(const Rotary& rotary);

/// Two columns of a pair.
struct PairColumns {
  std::size_t first = 0, second = 0;
};
PairColumns pair_columns(const Rotary& rotary, std::size_t pair, std::size_t d_head);

/// Returns the pair that a column belongs to, or nothing if it is not rotated.
std::optional<std::size_t> pair_of_column(const Rotary& rotary, std::size_t column, std::size_t d_head);

/// Returns rows of d_head numbers, rotated by the positions first_position, first_position + 1, ….
arma::mat rotate(const arma::mat& rows, std::int64_t first_position, const Rotary& rotary);

/// Returns rows rotated the other way, with the same attention factor: the gradient of rotate().
arma::mat rotate_back(const arma::mat& rows, std::int64_t first_position, const Rotary& rotary);

/// Returns the position that frequencies are multiplied by: linear scaling divides it.
double scaled_position(const Rotary& rotary, double position);

/// Cosine and sine of every pair at one position, times the magnitude, for rotating row by row.
struct PairRotations {
  std::vector<double> cosines, sines;  ///< [pair]
};
PairRotations rotation_at(const Rotary& rotary, const std::vector<double>& frequencies,
                          std::int64_t position);

/// Returns the angle in radians of a pair with that frequency at a position, which may be fractional.
inline double angle_at(const Rotary& rotary, double position, double frequency) {
  return scaled_position(rotary, position) * frequency;
}

/// Rotates the two numbers of a pair counterclockwise. Source: Su et al. 2021, equation 13.
template <class Number>
void rotate_pair(Number& first, Number& second, Number cosine, Number sine) {
  const Number x = first, y = second;
  first = x * cosine - y * sine;
  second = x * sine + y * cosine;
}

/// Two columns of a query or a key as a vector in the plane.
struct Arrow {
  double x = 0, y = 0;
  friend bool operator==(const Arrow&, const Arrow&) = default;
};

/// Returns an arrow rotated counterclockwise by an angle in radians.
Arrow rotate(Arrow arrow, double angle);

/// One pair of columns of a query and a key, before and after rotation.
struct RotaryPair {
  PairColumns columns;
  double query_angle = 0, key_angle = 0;  ///< radians of the rotation
  Arrow query, key, rotated_query, rotated_key;
  double attention_factor = 1;  ///< factor of both lengths
  double share = 0;             ///< contribution to the score
};

/// Dot product of a rotated query and key, pair by pair.
struct RotaryDot {
  std::vector<RotaryPair> pairs;
  double unrotated = 0;  ///< contribution of the columns that are not rotated
  double score = 0;      ///< before scaling
};

/// Returns the dot product of a query and a key, d_head numbers each, at possibly fractional positions.
RotaryDot rotary_dot(const Rotary& rotary, const arma::rowvec& query, const arma::rowvec& key,
                     double query_position, double key_position);

}  // namespace core::positions
