#include "core/check/nearness.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/number.hpp"
#include "core/graph/changes.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

/// Smaller by this, and by the squares of so many numbers: chance takes no more than a few from a sum.
constexpr double plainly_smaller = 0.75, no_larger = 1.02, by_squares = 25;
/// A part of the scale that moves numbers in proportion to it.
constexpr double scale_step = 0x1p-12;
/// Roundings of a scale, and standard errors.
constexpr double scale_roundings = 3, scale_errors = 6;

/// Calls visit(theirs, ours…) for each number of one reading.
template <class Visit, class... Ours>
void for_each_number_of(const Theirs& theirs, const Reading& r, Visit visit, const Computed& first,
                        const Ours&... others) {
  for_each_part(r, first, [&](std::size_t s, std::size_t h) {
    const std::size_t sequence = r.first_sequence + s, head = head_of(r, first.model(), h);
    const auto matrices = std::array{first.form(r, sequence, head), others.form(r, sequence, head)...};
    for (std::size_t a = 0; a < n_rows_of(r, first); ++a)
      for (std::size_t j = 0; j < r.n_columns; ++j) {
        std::array<double, 1 + sizeof...(Ours)> ours;
        for (std::size_t k = 0; k < ours.size(); ++k) ours[k] = matrices[k](a, j);
        visit(theirs.tensor.numbers[r.at(s, h, row_of(first, a), j)], ours);
      }
  });
}

ErrorSum error_sum(const Theirs& theirs, const Reading& reading, const Computed& exact) {
  ErrorSum sum;
  for_each_number_of(
      theirs, reading,
      [&](double their, const std::array<double, 1>& ours) {
        const double error = abs_difference(their, ours[0]);
        sum.squares += error * error;
        ++sum.n;
      },
      exact);
  return sum;
}

const Reading* nearest_reading(const Theirs& theirs, const Computed& exact) {
  const Reading* nearest = nullptr;
  double least = 0;
  for (const Reading& reading : theirs.readings) {
    if (!stage_for(exact.model(), reading.stage)) continue;
    const double squares = theirs.readings.size() == 1 ? 0 : error_sum(theirs, reading, exact).squares;
    if (!nearest || squares < least) nearest = &reading, least = squares;
  }
  return nearest;
}

/// What one rounding of the coarsest of a model's types may do to 1.
double unit_of(const Model& model) {
  double unit = 0;
  const attention::Departures& d = model.departures;
  for (const auto precision : {d.precision, d.product_inputs, d.softmax_precision})
    unit = std::max(unit, attention::rounding_error(precision, 1));
  return unit;
}

}  // namespace

std::vector<ErrorSum> error_sums(const std::vector<Theirs>& theirs, const Computed& exact) {
  std::vector<ErrorSum> sums;
  for (const Theirs& tensor : theirs) {
    const Reading* reading = nearest_reading(tensor, exact);
    sums.push_back(reading ? error_sum(tensor, *reading, exact) : ErrorSum{arma::datum::inf, 0});
  }
  return sums;
}

bool is_nearer(const std::vector<ErrorSum>& first, const std::vector<ErrorSum>& second) {
  bool plainly = false;
  for (std::size_t k = 0; k < first.size(); ++k) {
    const double a = first[k].squares, b = second[k].squares;
    if (!(a <= no_larger * b)) return false;
    const double of_chance = first[k].n == 0 ? 0 : by_squares * a / static_cast<double>(first[k].n);
    plainly = plainly || (a < plainly_smaller * b && b - a > of_chance);
  }
  return plainly;
}

bool are_of_another_scale(const std::vector<Theirs>& theirs, const Computed& exact, const Computed& coarse) {
  const Model& model = exact.model();
  const double factor = attention::scale_factor(model) * (1 + scale_step);
  const Computed moved(mistakes::with_scale(model, {attention::ScaleRule::factor, factor}));
  if (moved.model() == model) return false;
  double along = 0, size = 0;
  for (const Theirs& tensor : theirs) {
    const Reading* reading = nearest_reading(tensor, exact);
    if (!reading || reading->stage < Stage::scaled_scores || tensor.tensor.numbers.empty()) continue;
    double products = 0, squares = 0, noise = 0, n = 0;
    for_each_number_of(
        tensor, *reading,
        [&](double their, const std::array<double, 3>& ours) {
          const auto [e, c, m] = ours;
          if (!std::isfinite(their) || !std::isfinite(e) || !std::isfinite(c) || !std::isfinite(m)) return;
          const double slope = (m - e) / scale_step, error = their - (coarse.cuts_products() ? c : e);
          products += error * slope, squares += slope * slope;
          noise += (c - e) * (c - e), ++n;
        },
        exact, coarse, moved);
    if (noise == 0) continue;
    along += products * n / noise, size += squares * n / noise;
  }
  if (size == 0) return false;
  return std::abs(along / size) > scale_roundings * unit_of(coarse.model()) + scale_errors / std::sqrt(size);
}

}  // namespace core::check
