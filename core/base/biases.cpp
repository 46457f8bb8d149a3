#include "core/base/biases.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

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

double slope_of(const Alibi& alibi, std::size_t head, std::size_t n_heads) {
  return alibi.slopes ? alibi.slopes->at(0, head) : default_slopes(n_heads)[head];
}

std::size_t bucket_of(std::int64_t distance, const Relative& relative) {
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

}  // namespace core::positions
