#include "core/check/rounding_judge.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention/rounding.hpp"

namespace core::check {
namespace {

using attention::Precision;

// Against the largest and the usual error of our own coarse stage.
constexpr double most_times_largest = 8, most_times_usual = 4;
constexpr double nearer = 0.97;

/// Numbers that must lie on a grid before that says anything.
constexpr std::size_t enough = 8;

/// What is found out about one tensor.
struct Distances {
  bool possible = true;
  bool tells = false;                  ///< it is neither the exact stage nor our coarse one
  double to_exact = 0, to_coarse = 0;  ///< mean squares, in units of the coarse stage's own
  std::size_t n_off = 0, n_on_grid = 0, n_on_coarser = 0;  ///< numbers that are not those of the exact stage
};

struct Cell {
  double theirs, exact, coarse;
};

template <class Visit>
void for_each_cell(const Theirs& theirs, const Reading& r, const Computed& exact, const Computed& coarse,
                   Visit visit) {
  for (std::size_t s = 0; s < r.n_sequences; ++s)
    for (std::size_t h = 0; h < r.n_heads; ++h) {
      const std::size_t sequence = r.first_sequence + s, head = r.first_head + h;
      const arma::mat e = exact.form(r, sequence, head), c = coarse.form(r, sequence, head);
      for (std::size_t i = 0; i < r.n_rows; ++i)
        for (std::size_t j = 0; j < r.n_columns; ++j)
          visit(Cell{theirs.tensor.numbers[r.at(s, h, i, j)], e(i, j), c(i, j)});
    }
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
           storage_error(theirs.rounding, number);
  };
  double squares = 0, slacks = 0, to_exact = 0, to_coarse = 0, largest = 0;
  for_each_cell(theirs, reading, exact, coarse, [&](const Cell& c) {
    const double error = std::abs(c.coarse - c.exact);
    if (!std::isfinite(error)) return;
    largest = std::max(largest, error);
    squares += error * error;
    slacks += slack(c.exact) * slack(c.exact);
  });
  const Precision precision = coarse.model().departures.precision;
  for_each_cell(theirs, reading, exact, coarse, [&](const Cell& c) {
    if (!std::isfinite(c.theirs) || !std::isfinite(c.exact) || !std::isfinite(c.coarse)) {
      result.possible = result.possible && (same_kind(c.theirs, c.coarse) || same_kind(c.theirs, c.exact));
      return;
    }
    const double d = std::abs(c.theirs - c.exact);
    result.possible = result.possible && d <= most_times_largest * largest + slack(c.exact);
    to_exact += d * d;
    to_coarse += (c.theirs - c.coarse) * (c.theirs - c.coarse);
    if (d <= slack(c.exact)) return;
    ++result.n_off;
    if (attention::rounded(precision, c.theirs) == c.theirs) ++result.n_on_grid;
    if (attention::rounded(Precision::bfloat16, c.theirs) == c.theirs) ++result.n_on_coarser;
  });
  constexpr double square = most_times_usual * most_times_usual;
  if (to_exact > square * squares + slacks) result.possible = false;
  if (square * to_exact + slacks < squares) result.possible = false;  // rounded less than it should have been
  result.tells = result.n_off > 0 && squares > 0;
  if (result.tells) result.to_exact = to_exact / squares, result.to_coarse = to_coarse / squares;
  return result;
}

/// How many binary digits the numbers of a type have at most.
int digits_of(formats::Dtype dtype) {
  switch (dtype) {
    case formats::Dtype::f16:
      return attention::digits_of(Precision::float16);
    case formats::Dtype::bf16:
      return attention::digits_of(Precision::bfloat16);
    default:
      return attention::digits_of(Precision::float32);
  }
}

}  // namespace

bool is_rounding(const std::vector<Theirs>& theirs, const Computed& exact, const Computed& coarse,
                 const Tolerance& tolerance) {
  const Precision precision = coarse.model().departures.precision;
  double to_exact = 0, to_coarse = 0;
  bool on_grid = false, tells = false;
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
    tells = true;
    to_exact += best.to_exact, to_coarse += best.to_coarse;
    if (digits_of(tensor.rounding) <= attention::digits_of(precision)) continue;  // its type is a grid anyway
    if (best.n_off < enough) continue;
    if (precision == Precision::float16 && best.n_on_coarser == best.n_off)
      return false;  // coarser than that
    on_grid = on_grid || best.n_on_grid == best.n_off;
  }
  return !tells || on_grid || to_coarse <= nearer * nearer * to_exact;
}

}  // namespace core::check
