#include "core/check/rounding_judge.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/number.hpp"
#include "core/check/computed.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

using attention::Precision;

// How many times as large as ours errors may be, in root mean squares over a tensor or a head and over a row
// or a column, and at most. Of NumPy's float16 and bfloat16, where each operation of a softmax rounds, these
// are below 2, 2.7 and 2.4 when many numbers are averaged.
constexpr double most_times_usual = 2.5, most_times_line = 3, most_times_largest = 4;
/// Errors that are nothing or almost nothing where ours are not, in as many numbers as this, are no chance.
constexpr double enough_to_be_small = 8;
constexpr std::size_t enough_to_be_exact = 6;
/// How far beyond what counts as equal errors must usually be for that to be seen.
constexpr double plainly_beyond = 3;
/// When so many numbers are ours to a quarter of their error, those of a line are no more than so many
/// times as far from ours: some roundings fall to the other side.
constexpr double nearly_ours = 0.75, quarter = 0.25, most_times_apart = 3;
/// What is usual of so many numbers may be more of others, by this over the root of their number.
constexpr double few = 4;
/// A factor in all numbers: roundings of factors that they have in common, and so many standard errors.
constexpr double common_roundings = 3, standard_errors = 5;
/// Errors of the same origin are correlated at least so where there is no other evidence.
constexpr double alike = 0.5, hardly_alike = 0.3;
/// A few rows may err less, or otherwise, than all of them.
constexpr double sample_slack = 4;
/// Numbers that must lie on a grid before that says anything, by how many of others would: one in 8 of
/// float16 is one of bfloat16, one in 8192 of float32 one of float16.
constexpr std::size_t enough_of_float16 = 8, enough_of_finer = 2;
/// Errors of a coarse type, in its units, that are not worth computing it: softmax makes them larger.
constexpr double hopeless = 512;

struct Cell {
  std::size_t part, row, column;
  double theirs, exact, coarse;
};

template <class Visit>
void for_each_cell(const Theirs& theirs, const Reading& r, const Computed& exact, const Computed* coarse,
                   Visit visit) {
  const std::size_t n_rows = n_rows_of(r, exact);
  std::size_t part = 0;
  for_each_part(r, exact, [&](std::size_t s, std::size_t h) {
    const std::size_t sequence = r.first_sequence + s, head = head_of(r, exact.model(), h);
    const arma::mat e = exact.form(r, sequence, head),
                    c = coarse ? coarse->form(r, sequence, head) : arma::mat();
    for (std::size_t a = 0; a < n_rows; ++a)
      for (std::size_t j = 0; j < r.n_columns; ++j)
        visit(Cell{part, a, j, theirs.tensor.numbers[r.at(s, h, row_of(exact, a), j)], e(a, j),
                   coarse ? c(a, j) : 0});
    ++part;
  });
}

/// What numbers of a stage are rounded to in the end: float64 where only what they are made of is.
Precision grid_of(const Model& coarse, Stage stage) {
  const attention::Departures& d = coarse.departures;
  const bool of_softmax = stage == Stage::unmasked_weights || stage == Stage::weights;
  if (d.softmax_precision != Precision::float64 && of_softmax) return d.softmax_precision;
  return d.product_inputs == Precision::float64 ? d.precision : Precision::float64;
}

/// A softmax that rounds each of its steps errs by the unit times the exponent, which is the logarithm of the
/// weight.
double exponent(Stage stage, double number) {
  const bool of_softmax =
      stage == Stage::unmasked_weights || stage == Stage::weights || stage == Stage::dropped_weights;
  return of_softmax && number > 0 ? 1 + std::abs(std::log(number)) : 1;
}

/// The coarsest that a model rounds to.
Precision coarsest(const Model& model) {
  const attention::Departures& d = model.departures;
  if (d.softmax_precision != Precision::float64) return d.softmax_precision;
  return d.product_inputs != Precision::float64 ? d.product_inputs : d.precision;
}

/// A type whose numbers would say that the arithmetic is another, coarser one.
std::optional<Precision> too_coarse(const Model& model, Stage stage) {
  if (grid_of(model, stage) == Precision::bfloat16) return std::nullopt;
  return grid_of(model, stage) == Precision::float16 ? Precision::bfloat16 : Precision::float16;
}

/// The squares of errors of a line, a head or all of a tensor, and of those that may be expected.
struct Energy {
  double error = 0, coarse = 0, expected = 0, expected_squares = 0, slack = 0;
  double apart = 0;  // of theirs and ours
  double flips = 0;  // the squares of theirs and ours where each rounds to its other neighbour
  double follows = 0, size = 0, spread = 0;  // how much errors follow the exact numbers
  std::size_t n = 0, n_off = 0, n_ours_off = 0;

  /// unit is how much of the number its own rounding may change; bias is what of the error is none of chance.
  void add(const Cell& c, double unit, double allowed, double bias) {
    const double e = c.theirs - c.exact, ours = c.coarse - c.exact;
    ++n, n_off += std::abs(e) > allowed, n_ours_off += std::abs(ours) > plainly_beyond * allowed;
    const double own = ours == 0 ? 0 : unit * c.exact;
    const double square = ours * ours + own * own / 3;  // evenly spread between −own and own
    apart += (e - ours) * (e - ours), flips += 4 * own * own;
    error += e * e, coarse += ours * ours, slack += allowed * allowed;
    expected += square, expected_squares += square * square;
    follows += (e - bias) * c.exact, size += c.exact * c.exact;
    spread += (square + allowed * allowed) * c.exact * c.exact;
  }
  /// Of how many numbers as large as one another the expected errors could be.
  double count() const { return expected_squares > 0 ? expected * expected / expected_squares : 0; }
  /// Of few numbers ours may be exact by chance: those of a line then err as all do, whose mean square this
  /// is.
  bool is_usual(double times, double mean_square = 0) const {
    const double most = times * (1 + few / std::sqrt(std::max(1.0, count())));
    const double least = count() < enough_to_be_small ? mean_square * static_cast<double>(n) : 0;
    if (error > most * most * std::max(expected, least) + slack) return false;
    if (n_ours_off >= enough_to_be_exact && n_off == 0) return false;
    return count() < enough_to_be_small || most * most * error + slack >= coarse;
  }
  bool is_ours(double mean_square) const {
    const double most = most_times_apart * most_times_apart;
    return apart <= most * std::max(expected, mean_square * static_cast<double>(n)) + slack + flips;
  }
  /// No number times all exact ones is in the errors, but that of a few roundings.
  bool is_unbiased(double unit) const {
    if (size == 0) return true;
    const double common = expected > 0 ? common_roundings * unit : 0;
    return std::abs(follows) <= common * size + standard_errors * std::sqrt(spread);
  }
};

struct EnergyLines {
  std::vector<Energy> all;
  Energy& operator[](std::size_t k) {
    if (k >= all.size()) all.resize(k + 1);
    return all[k];
  }
};

/// Whether a tensor is too far from the exact stage for the type, without computing the coarse one.
bool is_hopeless(const Theirs& theirs, const Reading& reading, const Computed& exact, double unit) {
  double error = 0, size = 0;
  for_each_cell(theirs, reading, exact, nullptr, [&](const Cell& c) {
    if (!std::isfinite(c.theirs) || !std::isfinite(c.exact)) return;
    error += (c.theirs - c.exact) * (c.theirs - c.exact), size += c.exact * c.exact;
  });
  const double most = std::min(0.5, hopeless * unit);
  return error > most * most * size;
}

/// The size and the place of the errors, read in one way.
std::optional<Likeness> judged(const Theirs& theirs, const Reading& reading, const Computed& exact,
                               const Computed& coarse, const Tolerance& tolerance) {
  const Model& model = coarse.model();
  const double unit = attention::rounding_error(coarsest(model), 1);
  if (is_hopeless(theirs, reading, exact, unit)) return std::nullopt;
  const bool is_ours = agreement(theirs, reading, coarse, tolerance).within,
             is_exact = is_ours && agreement(theirs, reading, exact, tolerance).within;
  const auto slack = [&](double number) {
    return tolerance.absolute + tolerance.relative * std::abs(number) +
           storing_error(theirs.rounding, number);
  };
  const Precision grid = grid_of(model, reading.stage);
  const double own_unit = attention::rounding_error(grid, 1);
  const auto coarser = too_coarse(model, reading.stage);
  bool possible = true;
  Energy all;
  EnergyLines parts, rows, columns;
  double largest = 0, farthest = 0, products = 0;
  std::size_t n = 0, n_off = 0, n_on_grid = 0, n_on_coarser = 0;
  for_each_cell(theirs, reading, exact, &coarse, [&](const Cell& c) {
    if (!std::isfinite(c.theirs) || !std::isfinite(c.exact) || !std::isfinite(c.coarse)) {
      possible = possible && (are_same(c.theirs, c.coarse) || are_same(c.theirs, c.exact));
      return;
    }
    const double d = std::abs(c.theirs - c.exact), allowed = slack(c.exact);
    for (Energy* energy : {&all, &parts[c.part], &rows[c.part * reading.n_rows + c.row],
                           &columns[c.part * reading.n_columns + c.column]})
      energy->add(c, own_unit * exponent(reading.stage, c.exact), allowed,
                  coarse.cuts_products() ? c.coarse - c.exact : 0);
    ++n;
    largest = std::max(largest, std::abs(c.coarse - c.exact));
    farthest = std::max(farthest, d - allowed);
    products += (c.theirs - c.exact) * (c.coarse - c.exact);
    if (d <= allowed) return;
    ++n_off;
    n_on_grid += attention::rounded(grid, c.theirs) == c.theirs;
    n_on_coarser += coarser && attention::rounded(*coarser, c.theirs) == c.theirs;
  });
  const std::size_t enough = grid == Precision::float16 ? enough_of_float16 : enough_of_finer;
  const bool is_finer = storing_error(theirs.rounding, 1) < own_unit;
  const bool grid_tells = n_off >= enough && n_on_grid == n_off && is_finer;
  if (is_ours) return Likeness{!is_exact, true, grid_tells, 1, all.error};
  if (!possible || n == 0) return std::nullopt;
  Likeness result{n_off > 0, n_on_grid == n_off, grid_tells, 0, all.error};
  if (all.error > 0 && all.coarse > 0) result.value = products / std::sqrt(all.error * all.coarse);
  const double more = 1 + few / std::sqrt(static_cast<double>(n));
  if (exact.sample()) {
    const double most = sample_slack * more * most_times_usual;
    const bool far = farthest > 2 * sample_slack * most_times_largest * largest ||
                     all.error > most * most * all.coarse + all.slack;
    return far ? std::nullopt : std::optional(result);
  }
  if (farthest > more * most_times_largest * largest) return std::nullopt;
  const double most = more * most_times_usual;  // errors of the tensor are counted as they are
  if (all.error > most * most * all.coarse + all.slack || most * most * all.error + all.slack < all.coarse)
    return std::nullopt;
  for (const Energy& part : parts.all)
    if (!part.is_usual(most_times_usual) || !part.is_unbiased(unit)) return std::nullopt;
  const double mean_square = all.coarse / static_cast<double>(n);
  std::size_t n_ours = 0, n_seen = 0;
  for_each_cell(theirs, reading, exact, &coarse, [&](const Cell& c) {
    const double error = std::abs(c.coarse - c.exact);
    if (!(error > slack(c.exact))) return;
    ++n_seen, n_ours += std::abs(c.theirs - c.coarse) <= slack(c.exact) + quarter * error;
  });
  const bool are_ours =
      n_seen > 0 && static_cast<double>(n_ours) >= nearly_ours * static_cast<double>(n_seen);
  for (const EnergyLines* lines : {&rows, &columns})
    for (const Energy& line : lines->all)
      if (!line.is_usual(most_times_line, mean_square) || (are_ours && !line.is_ours(mean_square)))
        return std::nullopt;
  if (n_off >= enough && coarser && n_on_coarser == n_off) return std::nullopt;
  return result;
}

/// Every number is one of float32 and of float64: where only what these are made of is coarse, the errors
/// alone must tell.
bool needs_alike(const Model& coarse) {
  const attention::Departures& d = coarse.departures;
  return d.product_inputs != Precision::float64 || d.softmax_precision != Precision::float64;
}

}  // namespace

bool shows(const Likeness& likeness, const Model& coarse) {
  if (!likeness.tells || !likeness.on_grid) return false;
  return !needs_alike(coarse) || likeness.grid_tells || likeness.value >= hardly_alike;
}

std::optional<Likeness> likeness_of(const Theirs& theirs, const Computed& exact, const Computed& coarse,
                                    const Tolerance& tolerance) {
  for (const Reading& reading : theirs.readings) {
    if (!stage_for(coarse.model(), reading.stage)) continue;
    if (auto likeness = judged(theirs, reading, exact, coarse, tolerance)) return likeness;
  }
  return std::nullopt;
}

std::optional<Likeness> likeness_of(const std::vector<Theirs>& theirs, const Computed& exact,
                                    const Computed& coarse, const Tolerance& tolerance) {
  double sum = 0, n = 0, error = 0;
  bool on_grid = false, grid_tells = false, off_grid_alike = true;
  for (const Theirs& tensor : theirs) {
    const auto likeness = likeness_of(tensor, exact, coarse, tolerance);
    if (!likeness) return std::nullopt;
    error += likeness->error;
    if (!likeness->tells) continue;
    sum += likeness->value, ++n;
    on_grid = on_grid || likeness->on_grid;
    grid_tells = grid_tells || likeness->grid_tells;
    off_grid_alike = off_grid_alike && (likeness->on_grid || likeness->value >= alike);
  }
  if (exact.sample()) return Likeness{};  // the evidence is looked for in all rows
  if (n == 0 || !on_grid || !off_grid_alike) return std::nullopt;
  const double mean = sum / n;
  if (needs_alike(coarse.model()) && !grid_tells && mean < hardly_alike) return std::nullopt;
  return Likeness{true, true, grid_tells, mean, error};
}

}  // namespace core::check
