#include "core/check/agreement.hpp"

#include <algorithm>
#include <cmath>

#include "core/check/computed.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

using attention::Precision;
using formats::Dtype;

constexpr double far = 1e-2;
/// What masks add that hide is at least as low where it is no −∞.
constexpr double as_low_as_hidden = -1e4;
/// In some rows float32 errs less than in all of them.
constexpr double float32_sample_slack = 8;

/// One matrix against one form of it.
Agreement compared(const double* theirs, const Reading& r, const arma::mat& ours, const Computed& computed,
                   Limits limits) {
  Agreement here;
  Gap gap;
  const std::size_t n_rows = n_rows_of(r, computed);
  limits.more += limits.tolerance.of_largest > 0 ? limits.tolerance.of_largest * largest_finite(ours) : 0;
  for (std::size_t a = 0; a < n_rows; ++a) {
    const std::size_t i = row_of(computed, a);
    const double* row = theirs + r.at(0, 0, i, 0);
    for (std::size_t j = 0; j < r.n_columns; ++j) {
      const double our = ours.at(a, j), written = row[j * r.per_column];
      const bool hides = r.stage == Stage::mask && our == -arma::datum::inf && written <= as_low_as_hidden;
      const double their = hides ? our : written;
      const double magnitude = std::abs(our);
      if (magnitude > here.magnitude && magnitude < arma::datum::inf) here.magnitude = magnitude;
      gap.add(their, our, limits, i, j);
    }
  }
  here.within = gap.near != Near::none;
  here.largest = gap.largest, here.of_nan = gap.of_nan, here.row = gap.row, here.column = gap.column;
  here.n_far = gap.n_far;
  return here;
}

Agreement compared(const Theirs& theirs, const Reading& r, const Computed& ours, const Limits& limits) {
  Agreement worst;
  for_each_part(r, ours, [&](std::size_t s, std::size_t h) {
    const std::size_t sequence = r.first_sequence + s, head = head_of(r, ours.model(), h);
    Agreement best;
    bool first = true;
    for (const arma::mat& form : ours.forms(r, sequence, head)) {
      Agreement here = compared(theirs.tensor.numbers.data() + r.at(s, h, 0, 0), r, form, ours, limits);
      here.sequence = sequence, here.head = head;
      // Of the customs of masks that is theirs in which the fewest cells are wrong.
      const bool is_nearer = r.stage == Stage::mask && here.n_far < best.n_far;
      if (first || here.within || is_nearer) best = here;
      if (here.within) break;
      first = false;
    }
    const bool within = worst.within && best.within;
    const double magnitude = std::max(worst.magnitude, best.magnitude);
    if (best.largest > worst.largest) worst = best;
    worst.within = within, worst.magnitude = magnitude;
  });
  return worst;
}

bool is_coarse(const attention::Departures& d) {
  return d.precision != Precision::float64 || d.product_inputs != Precision::float64 ||
         d.softmax_precision != Precision::float64;
}

}  // namespace

Dtype rounding_of(const formats::Tensor& tensor) {
  if (tensor.dtype != Dtype::f64) return tensor.dtype;
  const bool is_float32 = std::all_of(tensor.numbers.begin(), tensor.numbers.end(), [](double x) {
    return std::isnan(x) || attention::rounded(Precision::float32, x) == x;
  });
  return is_float32 ? Dtype::f32 : Dtype::f64;
}

Agreement agreement(const Theirs& theirs, const Reading& reading, const Computed& ours,
                    const Tolerance& tolerance) {
  Limits limits{tolerance, theirs.rounding};
  Agreement result = compared(theirs, reading, ours, limits);
  // What float32 adds to a coarse model, where it may tip a coarse rounding over, says nothing.
  if (result.within || is_exact(theirs.rounding) || is_coarse(ours.model().departures)) return result;
  const double slack = ours.sample() ? float32_sample_slack : 1;
  const double stored = storing_error(theirs.rounding, result.magnitude);
  if (result.largest > slack * far * (1 + result.magnitude) + stored)
    return result;  // further than float32 ever rounds
  limits.more = slack * float32_sums * ours.float32_error(reading);
  return compared(theirs, reading, ours, limits);
}

const Reading* agreeing(const Theirs& theirs, const Computed& ours, const Tolerance& tolerance) {
  const auto& all = theirs.readings;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Reading& reading) {
    return stage_for(ours.model(), reading.stage) && agreement(theirs, reading, ours, tolerance).within;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace core::check
