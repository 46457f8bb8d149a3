#include "core/base/positions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace core::positions {
namespace {

std::vector<double> slopes_of_power(std::size_t n) {
  std::vector<double> slopes;
  for (std::size_t h = 0; h < n; ++h)
    slopes.push_back(std::exp2(-8 * static_cast<double>(h + 1) / static_cast<double>(n)));
  return slopes;
}

}  // namespace

std::vector<double> default_slopes(std::size_t n_heads) {
  const std::size_t power = std::bit_floor(n_heads);
  std::vector<double> slopes = slopes_of_power(power);
  const std::vector<double> finer = slopes_of_power(2 * power);
  for (std::size_t h = 0; slopes.size() < n_heads; h += 2) slopes.push_back(finer[h]);
  return slopes;
}

double alibi_slope(const Alibi& alibi, std::size_t head, std::size_t n_heads) {
  return alibi.slopes ? alibi.slopes->at(0, head) : default_slopes(n_heads)[head];
}

std::size_t relative_position_bucket(std::int64_t distance, const Relative& relative) {
  auto n = static_cast<std::int64_t>(relative.table.n_cols());
  std::int64_t first = 0;
  if (relative.bidirectional) {
    n /= 2;
    if (distance > 0) first = n;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(-distance, 0);
  }
  const std::int64_t near = n / 2;
  if (distance < near) return static_cast<std::size_t>(first + distance);
  const double steps = std::log(double(distance) / double(near)) /
                       std::log(double(relative.max_distance) / double(near)) * double(n - near);
  return static_cast<std::size_t>(first + std::min(near + static_cast<std::int64_t>(steps), n - 1));
}

namespace {

/// Stretches long wavelengths, keeps short ones and interpolates between them (Llama 3.1).
double stretched(double frequency, const Scaling& s) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < s.original / s.high) return frequency;
  if (wavelength > s.original / s.low) return frequency / s.factor;
  const double kept = (s.original / wavelength - s.low) / (s.high - s.low);
  return (1 - kept) * frequency / s.factor + kept * frequency;
}

/// Keeps the frequency of pairs with many rotations in the original length, scales pairs with few in full,
/// and interpolates between them (YaRN), as transformers does.
void scale_as_yarn(std::vector<double>& frequencies, double base, const Scaling& s) {
  const double d = 2 * static_cast<double>(frequencies.size());
  const auto pair_at_rotations = [&](double n_rotations) {
    return d * std::log(s.original / (n_rotations * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double begin = pair_at_rotations(s.high), end = pair_at_rotations(s.low);
  if (s.truncate) begin = std::floor(begin), end = std::ceil(end);
  begin = std::max(begin, 0.0), end = std::min(end, d - 1);
  if (begin == end) end += 0.001;
  for (std::size_t p = 0; p < frequencies.size(); ++p) {
    const double scaled = std::clamp((static_cast<double>(p) - begin) / (end - begin), 0.0, 1.0);
    frequencies[p] = frequencies[p] / s.factor * scaled + frequencies[p] * (1 - scaled);
  }
}

/// Rotates rows by their positions in one direction, 1 or -1.
arma::mat rotate_rows(arma::mat result, std::int64_t first_position, const Rotary& rotary, double direction) {
  const std::vector<double> all = frequencies(rotary, result.n_cols);
  for (std::size_t i = 0; i < result.n_rows; ++i) {
    const PairRotations rotation = rotation_at(rotary, all, first_position + static_cast<std::int64_t>(i));
    for (std::size_t p = 0; p < all.size(); ++p) {
      const auto [a, b] = pair_columns(rotary, p, result.n_cols);
      rotate_pair(result(i, a), result(i, b), rotation.cosines[p], direction * rotation.sines[p]);
    }
  }
  return result;
}

}  // namespace

double yarn_attention_factor(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double attention_factor(const Rotary& rotary) {
  const Scaling& s = rotary.scaling;
  return s.rule == ScalingRule::yarn || s.rule == ScalingRule::longrope ? s.attention : 1;
}

Rotary at_length(Rotary rotary, std::size_t d_head, std::int64_t length) {
  Scaling& s = rotary.scaling;
  const auto n = static_cast<double>(length), d = static_cast<double>(rotated_columns(rotary, d_head));
  if (s.rule == ScalingRule::dynamic) {
    if (n > s.original && d > 2)
      rotary.base *= std::pow(s.factor * n / s.original - (s.factor - 1), d / (d - 2));
    s = {};
  }
  if (s.rule == ScalingRule::longrope && s.factors && n > s.original)
    s.factors = arma::mat(static_cast<const arma::mat&>(*s.factors).tail_rows(1));
  return rotary;
}

std::size_t rotated_columns(const Rotary& rotary, std::size_t d_head) {
  return rotary.dimensions.value_or(d_head);
}

std::vector<double> frequencies(const Rotary& rotary, std::size_t d_head) {
  const std::size_t d = rotated_columns(rotary, d_head);
  std::vector<double> all(d / 2);
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (rotary.inverse_frequencies) {
      all[p] = rotary.inverse_frequencies->at(0, p);
      continue;
    }
    all[p] = std::pow(rotary.base, -2 * static_cast<double>(p) / static_cast<double>(d));
    const Scaling& s = rotary.scaling;
    if (s.rule == ScalingRule::llama3) all[p] = stretched(all[p], s);
    const bool has_own = s.rule == ScalingRule::longrope && s.factors && p < s.factors->n_cols();
    if (has_own) all[p] /= s.factors->at(0, p);
  }
  if (rotary.scaling.rule == ScalingRule::yarn && !rotary.inverse_frequencies)
    scale_as_yarn(all, rotary.base, rotary.scaling);
  return all;
}

PairColumns pair_columns(const Rotary& rotary, std::size_t pair, std::size_t d_head) {
  if (rotary.pairs == Pairs::neighbors) return {2 * pair, 2 * pair + 1};
  return {pair, pair + rotated_columns(rotary, d_head) / 2};
}

std::optional<std::size_t> pair_of_column(const Rotary& rotary, std::size_t column, std::size_t d_head) {
  const std::size_t d = rotated_columns(rotary, d_head);
  if (column >= d / 2 * 2) return std::nullopt;
  return rotary.pairs == Pairs::neighbors ? column / 2 : column % (d / 2);
}

double scaled_position(const Rotary& rotary, double position) {
  return rotary.scaling.rule == ScalingRule::linear ? position / rotary.scaling.factor : position;
}

PairRotations rotation_at(const Rotary& rotary, const std::vector<double>& frequencies,
                          std::int64_t position) {
  PairRotations rotation;
  const double by = attention_factor(rotary);
  for (const double frequency : frequencies) {
    const double angle = angle_at(rotary, static_cast<double>(position), frequency);
    rotation.cosines.push_back(std::cos(angle) * by);
    rotation.sines.push_back(std::sin(angle) * by);
  }
  return rotation;
}

arma::mat rotate(const arma::mat& rows, std::int64_t first_position, const Rotary& rotary) {
  return rotate_rows(rows, first_position, rotary, 1);
}

arma::mat rotate_back(const arma::mat& rows, std::int64_t first_position, const Rotary& rotary) {
  return rotate_rows(rows, first_position, rotary, -1);
}

Arrow rotate(Arrow arrow, double angle) {
  rotate_pair(arrow.x, arrow.y, std::cos(angle), std::sin(angle));
  return arrow;
}

RotaryDot rotary_dot(const Rotary& rotary, const arma::rowvec& query, const arma::rowvec& key,
                     double query_position, double key_position) {
  RotaryDot dot;
  const double by = attention_factor(rotary);
  const auto rotated = [by](Arrow arrow, double angle) {
    const Arrow unit = rotate(arrow, angle);
    return Arrow{unit.x * by, unit.y * by};
  };
  for (const double frequency : frequencies(rotary, query.n_elem)) {
    RotaryPair pair;
    pair.columns = pair_columns(rotary, dot.pairs.size(), query.n_elem);
    const auto [a, b] = pair.columns;
    pair.query_angle = angle_at(rotary, query_position, frequency);
    pair.key_angle = angle_at(rotary, key_position, frequency);
    pair.query = {query(a), query(b)}, pair.key = {key(a), key(b)};
    pair.attention_factor = by;
    pair.rotated_query = rotated(pair.query, pair.query_angle);
    pair.rotated_key = rotated(pair.key, pair.key_angle);
    pair.share = pair.rotated_query.x * pair.rotated_key.x + pair.rotated_query.y * pair.rotated_key.y;
    dot.score += pair.share;
    dot.pairs.push_back(pair);
  }
  for (std::size_t k = rotated_columns(rotary, query.n_elem); k < query.n_elem; ++k)
    dot.unrotated += query(k) * key(k);
  dot.score += dot.unrotated;
  return dot;
}

}  // namespace core::positions
