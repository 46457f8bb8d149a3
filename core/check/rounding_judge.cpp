#include "core/check/rounding_judge.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention/rounding.hpp"
#include "core/check/computed.hpp"

namespace core::check {
namespace {

using attention::Precision;

// Against the largest and the usual error of our own coarse stage.
constexpr double most_times_largest = 8, most_times_usual = 2.5;
/// What is usual of so many numbers, squared, may be twice as much of others.
constexpr double few = 4;
/// Errors of the same origin are correlated at least so, as most roundings fall on the same numbers; but not
/// those of sums whose terms are rounded one by one, as some libraries do in float16.
constexpr double alike = 0.5;
/// A few rows may err less, or otherwise, than all of them.
constexpr double rounding_sample_slack = 4;

/// Numbers that must lie on a grid before that says anything.
constexpr std::size_t enough = 8;

/// What is found out about one tensor.
struct Distances {
  bool possible = true;
  bool tells = false;   ///< it is neither the exact stage nor our coarse one
  double likeness = 0;  ///< the correlation of its errors with those of our coarse stage
  std::size_t n_off = 0, n_on_grid = 0, n_on_coarser = 0;  ///< numbers that are not those of the exact stage
};

struct Cell {
  double theirs, exact, coarse;
};

template <class Visit>
void for_each_cell(const Theirs& theirs, const Reading& r, const Computed& exact, const Computed& coarse,
                   Visit visit) {
  const std::size_t n_rows = n_rows_of(r, exact);
  for_each_part(r, exact, [&](std::size_t s, std::size_t h) {
    const std::size_t sequence = r.first_sequence + s, head = r.first_head + h;
    const arma::mat e = exact.form(r, sequence, head), c = coarse.form(r, sequence, head);
    for (std::size_t a = 0; a < n_rows; ++a)
      for (std::size_t j = 0; j < r.n_columns; ++j)
        visit(Cell{theirs.tensor.numbers[r.at(s, h, row_of(exact, a), j)], e(a, j), c(a, j)});
  });
}

bool same_kind(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

Distances distances(const Theirs& theirs, const Reading& reading, const Computed& exact,
                    const Computed& coarse, const Tolerance& tolerance) {
  Distances result;
  if (agreement(theirs, reading, coarse, tolerance).within) return result;
  const auto slack = [&](double number) {
    return tolerance.absolute + tolerance.relative * std::abs(number) +
           attention::rounding_error(precision_of(theirs.rounding), number);
  };
  double squares = 0, slacks = 0, to_exact = 0, products = 0, largest = 0, n = 0;
  for_each_cell(theirs, reading, exact, coarse, [&](const Cell& c) {
    const double error = std::abs(c.coarse - c.exact);
    if (!std::isfinite(error)) return;
    ++n;
    largest = std::max(largest, error);
    squares += error * error;
    slacks += slack(c.exact) * slack(c.exact);
  });
  const Precision precision = coarse.model().departures.precision;
  const double slackness = exact.sample() ? rounding_sample_slack : 1;
  for_each_cell(theirs, reading, exact, coarse, [&](const Cell& c) {
    if (!std::isfinite(c.theirs) || !std::isfinite(c.exact) || !std::isfinite(c.coarse)) {
      result.possible = result.possible && (same_kind(c.theirs, c.coarse) || same_kind(c.theirs, c.exact));
      return;
    }
    const double d = std::abs(c.theirs - c.exact);
    result.possible = result.possible && d <= slackness * most_times_largest * largest + slack(c.exact);
    to_exact += d * d;
    products += (c.theirs - c.exact) * (c.coarse - c.exact);
    if (d <= slack(c.exact)) return;
    ++result.n_off;
    if (attention::rounded(precision, c.theirs) == c.theirs) ++result.n_on_grid;
    if (attention::rounded(Precision::bfloat16, c.theirs) == c.theirs) ++result.n_on_coarser;
  });
  const double by_chance = 1 + few / std::sqrt(n);
  const double square = std::pow(slackness * by_chance * most_times_usual, 2);
  if (to_exact > square * squares + slacks) result.possible = false;
  if (square * to_exact + slacks < squares) result.possible = false;  // rounded less than it should have been
  result.tells = result.n_off > 0 && squares > 0;
  if (result.tells) result.likeness = products / std::sqrt(squares * to_exact);
  return result;
}

}  // namespace

bool is_rounding(const std::vector<Theirs>& theirs, const Computed& exact, const Computed& coarse,
                 const Tolerance& tolerance) {
  const Precision precision = coarse.model().departures.precision;
  double likeness = 0;
  std::size_t n_telling = 0;
  bool on_grid = false;
  for (const Theirs& tensor : theirs) {
    Distances best;
    best.possible = false;
    for (const Reading& reading : tensor.readings) {
      if (!attention::info(reading.stage).present(coarse.model())) continue;
      best = distances(tensor, reading, exact, coarse, tolerance);
      if (best.possible) break;
    }
    if (!best.possible) return false;
    if (!best.tells) continue;
    ++n_telling;
    likeness += best.likeness;
    const bool counts = best.n_off >= enough;
    if (counts && !exact.sample() && precision == Precision::float16 && best.n_on_coarser == best.n_off)
      return false;  // coarser
    const bool of_that_type = precision_of(tensor.rounding) == precision;
    const bool evident =
        of_that_type ? precision == Precision::float16 : counts && best.n_on_grid == best.n_off;
    on_grid = on_grid || evident;
  }
  if (exact.sample()) return true;  // the evidence is looked for in all rows
  return n_telling == 0 || on_grid || likeness >= alike * static_cast<double>(n_telling);
}

}  // namespace core::check
