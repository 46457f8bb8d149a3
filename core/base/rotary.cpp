#include "core/base/rotary.hpp"

#include <cmath>
#include <numbers>

#include "core/base/turning.hpp"

namespace core::positions {
namespace {

/// Long waves are stretched, short ones not, those between in part (Llama 3.1).
double stretched(double frequency, const Scaling& s) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < s.original / s.high) return frequency;
  if (wavelength > s.original / s.low) return frequency / s.factor;
  const double kept = (s.original / wavelength - s.low) / (s.high - s.low);
  return (1 - kept) * frequency / s.factor + kept * frequency;
}

}  // namespace

std::size_t turned_columns(const Rotary& rotary, std::size_t d_head) {
  return rotary.dimensions.value_or(d_head);
}

std::vector<double> frequencies(const Rotary& rotary, std::size_t d_head) {
  const std::size_t d = turned_columns(rotary, d_head);
  std::vector<double> all(d / 2);
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (rotary.inverse_frequencies) {
      all[p] = rotary.inverse_frequencies->at(0, p);
      continue;
    }
    all[p] = std::pow(rotary.base, -2 * static_cast<double>(p) / static_cast<double>(d));
    if (rotary.scaling.rule == ScalingRule::llama3) all[p] = stretched(all[p], rotary.scaling);
  }
  return all;
}

PairColumns columns_of(const Rotary& rotary, std::size_t pair, std::size_t d_head) {
  if (rotary.pairs == Pairs::neighbours) return {2 * pair, 2 * pair + 1};
  return {pair, pair + turned_columns(rotary, d_head) / 2};
}

std::optional<std::size_t> pair_of(const Rotary& rotary, std::size_t column, std::size_t d_head) {
  const std::size_t d = turned_columns(rotary, d_head);
  if (column >= d / 2 * 2) return std::nullopt;
  return rotary.pairs == Pairs::neighbours ? column / 2 : column % (d / 2);
}

double scaled_position(const Rotary& rotary, double position) {
  return rotary.scaling.rule == ScalingRule::linear ? position / rotary.scaling.factor : position;
}

Turn turn_at(const Rotary& rotary, const std::vector<double>& frequencies, std::int64_t position) {
  Turn turn;
  for (const double frequency : frequencies) {
    const double angle = angle_at(rotary, static_cast<double>(position), frequency);
    turn.cosines.push_back(std::cos(angle));
    turn.sines.push_back(std::sin(angle));
  }
  return turn;
}

arma::mat turned(const arma::mat& rows, std::int64_t first_position, const Rotary& rotary) {
  arma::mat result = rows;
  const std::vector<double> all = frequencies(rotary, rows.n_cols);
  for (std::size_t i = 0; i < rows.n_rows; ++i) {
    const Turn turn = turn_at(rotary, all, first_position + static_cast<std::int64_t>(i));
    for (std::size_t p = 0; p < all.size(); ++p) {
      const auto [a, b] = columns_of(rotary, p, rows.n_cols);
      turn_pair(result(i, a), result(i, b), turn.cosines[p], turn.sines[p]);
    }
  }
  return result;
}

}  // namespace core::positions
