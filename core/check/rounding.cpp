#include "core/check/rounding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/base/number.hpp"
#include "core/graph/model_changes.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"

namespace core::check {
namespace {

using attention::Precision;

/// Bugs of coarse arithmetic, the finest first, and the type of inputs in libraries that also round these.
struct Coarse {
  const char* name;
  Precision inputs = Precision::float64;
};
constexpr std::array coarse_types{Coarse{"float32_precision"},
                                  Coarse{"tf32_precision"},
                                  Coarse{"softmax_half_precision"},
                                  Coarse{"softmax_bfloat16_precision"},
                                  Coarse{"half_precision", Precision::float16},
                                  Coarse{"half_precision_sums", Precision::float16},
                                  Coarse{"bfloat16_precision", Precision::bfloat16}};

/// A number of a tensor, and its value in an exact, a coarse and possibly a third model.
struct Cell {
  std::size_t part, row, column;
  double observed, exact, coarse, third;
};

/// Visits all numbers of a reading in the exact model, with those of the other models, if any.
template <class Visit>
void for_each_cell(const ObservedTensor& observed, const Reading& r, const LazyTrace& exact,
                   const LazyTrace* coarse, Visit visit, const LazyTrace* third = nullptr) {
  const std::vector<Part> parts = parts_of(r, exact);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const auto form_in = [&](const LazyTrace* model) {
      return model ? model->form(r, parts[k].sequence, parts[k].head) : arma::mat();
    };
    const arma::mat numbers = extract_matrix(observed, r, parts[k]), e = form_in(&exact), c = form_in(coarse),
                    t = form_in(third);
    for (std::size_t a = 0; a < numbers.n_rows; ++a)
      for (std::size_t j = 0; j < numbers.n_cols; ++j)
        visit(Cell{k, a, j, numbers(a, j), e(a, j), coarse ? c(a, j) : 0, third ? t(a, j) : 0});
  }
}

/// Returns the sum of a tensor's squared errors in one reading.
double squared_error(const ObservedTensor& observed, const Reading& reading, const LazyTrace& exact) {
  double sum = 0;
  for_each_cell(observed, reading, exact, nullptr, [&](const Cell& c) {
    const double error = abs_difference(c.observed, c.exact);
    sum += error * error;
  });
  return sum;
}

const Reading* nearest_reading(const ObservedTensor& observed, const LazyTrace& exact) {
  const Reading* nearest = nullptr;
  double least = 0;
  for (const Reading& reading : observed.readings) {
    if (!effective_stage(exact.model(), reading.stage)) continue;
    const double squares = observed.readings.size() == 1 ? 0 : squared_error(observed, reading, exact);
    if (!nearest || squares < least) nearest = &reading, least = squares;
  }
  return nearest;
}

/// Similarity of a tensor to the coarse version of an exact model.
struct Similarity {
  bool is_informative = false;  ///< it differs from the exact stage
  bool on_grid = false;  ///< all numbers that differ from the exact stage are numbers of the coarse type
  bool is_grid_evidence = false;  ///< this is unlikely by chance for numbers of its own type
  double value = 0;               ///< correlation of its errors with those of our coarse stage, −1 … 1
  double error = 0;               ///< sum of its squared errors
};

// Largest ratio of observed errors to ours: root mean square over a tensor or head, over a row or column, and
// maximum. For NumPy's float16 and bfloat16, where each operation of a softmax rounds, the ratios are below
// 2, 2.7 and 2.4 when many numbers are averaged.
constexpr double max_error_ratio = 2.5, max_line_error_ratio = 3, max_peak_error_ratio = 4;
/// Numbers with almost no error, or none, where ours have some: so many are no coincidence.
constexpr double min_small_errors = 8;
constexpr std::size_t min_exact_numbers = 6;
/// Our errors must exceed the tolerance by this factor before their absence in a tensor counts.
constexpr double min_excess_ratio = 3;
/// If this share of numbers is within a quarter of its error from ours, no line may be further from ours than
/// this many times the expected error; some roundings flip.
constexpr double min_share_near_ours = 0.75, quarter = 0.25, max_distance_ratio = 3;
/// Limits on n numbers are widened by the factor 1 + few / √n.
constexpr double few = 4;
/// Common factor allowed in all errors: so many roundings of shared factors, and so many standard errors.
constexpr double common_roundings = 3, standard_errors = 5;
/// Smallest correlation of errors of the same origin, without other evidence.
constexpr double min_off_grid_correlation = 0.5, min_error_correlation = 0.3;
/// Numbers on a coarse grid that are evidence: by chance, one in 8 float16 numbers is a bfloat16 number, and
/// one in 8192 float32 numbers is a float16 number.
constexpr std::size_t min_float16_numbers = 8, min_finer_numbers = 2;
/// Errors, in units of a coarse type, too large to try it; softmax amplifies errors.
constexpr double max_error_units = 512;

bool is_softmax(Stage stage) {
  return stage == Stage::unmasked_weights || stage == Stage::weights;
}

/// Returns the final rounding of a stage: float64 if only the factors of its products are coarse.
Precision grid_of(const Precisions& types, Stage stage) {
  if (types.softmax != Precision::float64 && is_softmax(stage)) return types.softmax;
  return types.factors == Precision::float64 ? types.stages : Precision::float64;
}

/// Whether only the errors are evidence: results of coarse factors or a coarse softmax can be any float32 or
/// float64 numbers.
bool needs_similar_errors(const Precisions& types) {
  return types.factors != Precision::float64 || types.softmax != Precision::float64;
}

/// Returns 1 + |ln weight| for weights, else 1: a softmax that rounds each step errs by the unit times its
/// exponent.
double exponent(Stage stage, double number) {
  const bool of_softmax = is_softmax(stage) || stage == Stage::dropped_weights;
  return of_softmax && number > 0 ? 1 + std::abs(std::log(number)) : 1;
}

/// Sums of squared errors of a line, head or tensor, and of the expected errors.
struct ErrorStats {
  double error = 0, coarse = 0, expected = 0, expected_squares = 0, slack = 0;
  double distance_squares = 0;                  // squared differences between observed numbers and ours
  double flips = 0;                             // the same if each rounds to its other neighbor
  double covariance = 0, size = 0, spread = 0;  // for the regression of errors on exact numbers
  std::size_t n = 0, n_differing = 0, n_ours_differing = 0;

  /// unit is the relative rounding error of a number; bias is the systematic part of the error.
  void add(const Cell& c, double unit, double allowed, double bias) {
    const double e = c.observed - c.exact, ours = c.coarse - c.exact;
    ++n, n_differing += std::abs(e) > allowed,
        n_ours_differing += std::abs(ours) > min_excess_ratio * allowed;
    const double own = ours == 0 ? 0 : unit * c.exact;
    const double square = ours * ours + own * own / 3;  // uniform between −own and own
    distance_squares += (e - ours) * (e - ours), flips += 4 * own * own;
    error += e * e, coarse += ours * ours, slack += allowed * allowed;
    expected += square, expected_squares += square * square;
    covariance += (e - bias) * c.exact, size += c.exact * c.exact;
    spread += (square + allowed * allowed) * c.exact * c.exact;
  }
  /// Returns the effective count of the expected errors.
  double count() const { return expected_squares > 0 ? expected * expected / expected_squares : 0; }
  /// Whether the errors are about as large as ours. With few numbers ours may be exact by chance, so that at
  /// least mean_square, that of all numbers, is expected.
  bool has_expected_size(double times, double mean_square = 0) const {
    const double maximum = times * (1 + few / std::sqrt(std::max(1.0, count())));
    const double least = count() < min_small_errors ? mean_square * static_cast<double>(n) : 0;
    if (error > maximum * maximum * std::max(expected, least) + slack) return false;
    if (n_ours_differing >= min_exact_numbers && n_differing == 0) return false;
    return count() < min_small_errors || maximum * maximum * error + slack >= coarse;
  }
  bool is_ours(double mean_square) const {
    const double maximum = max_distance_ratio * max_distance_ratio;
    return distance_squares <=
           maximum * std::max(expected, mean_square * static_cast<double>(n)) + slack + flips;
  }
  /// Whether the errors contain no multiple of the exact numbers beyond a few roundings.
  bool is_unbiased(double unit) const {
    if (size == 0) return true;
    const double common = expected > 0 ? common_roundings * unit : 0;
    return std::abs(covariance) <= common * size + standard_errors * std::sqrt(spread);
  }
};

struct ErrorStatsByLine {
  std::vector<ErrorStats> all;
  ErrorStats& operator[](std::size_t k) {
    if (k >= all.size()) all.resize(k + 1);
    return all[k];
  }
};

/// Whether a tensor is too far from the exact stage for the type; needs no coarse stage.
bool is_too_far(const ObservedTensor& observed, const Reading& reading, const LazyTrace& exact, double unit) {
  double error = 0, size = 0;
  for_each_cell(observed, reading, exact, nullptr, [&](const Cell& c) {
    if (!std::isfinite(c.observed) || !std::isfinite(c.exact)) return;
    error += (c.observed - c.exact) * (c.observed - c.exact), size += c.exact * c.exact;
  });
  const double maximum = std::min(0.5, max_error_units * unit);
  return error > maximum * maximum * size;
}

/// Whether some numbers differ from the exact stage and all of these are on the coarse grid, the only
/// evidence of the arithmetic; needs no coarse stage.
bool may_be_evidence(const ObservedTensor& observed, const LazyTrace& exact, const Model& coarse,
                     const Tolerance& tolerance) {
  const Precisions types = precisions_of(coarse);
  return std::ranges::any_of(observed.readings, [&](const Reading& reading) {
    if (!effective_stage(exact.model(), reading.stage)) return false;
    const Precision grid = grid_of(types, reading.stage);
    bool differs = false, lies_on_grid = true;
    for_each_cell(observed, reading, exact, nullptr, [&](const Cell& c) {
      if (!lies_on_grid || !std::isfinite(c.observed) || !std::isfinite(c.exact)) return;
      const double allowed = tolerance.absolute + tolerance.relative * std::abs(c.exact) +
                             round_trip_error(observed.rounding, c.exact);
      if (std::abs(c.observed - c.exact) <= allowed) return;
      differs = true, lies_on_grid = attention::rounded(grid, c.observed) == c.observed;
    });
    return differs && lies_on_grid;
  });
}

/// Returns the similarity of a tensor in one reading, or nullopt if its errors are not those of the
/// arithmetic.
///
/// Libraries round in different places, so bits are not compared. Errors must be about as large as those of
/// our own coarse stage, in total and in each head, row and column; the largest must not stand out, and they
/// must not be proportional to the numbers.
std::optional<Similarity> judge_similarity(const ObservedTensor& observed, const Reading& reading,
                                           const LazyTrace& exact, const LazyTrace& coarse,
                                           const Tolerance& tolerance) {
  const Precisions types = precisions_of(coarse.model());
  const double unit = attention::rounding_error(types.coarsest(), 1);
  if (is_too_far(observed, reading, exact, unit)) return std::nullopt;
  const bool is_ours = agreement(observed, reading, coarse, tolerance).within,
             is_exact = is_ours && agreement(observed, reading, exact, tolerance).within;
  const auto slack = [&](double number) {
    return tolerance.absolute + tolerance.relative * std::abs(number) +
           round_trip_error(observed.rounding, number);
  };
  const Precision grid = grid_of(types, reading.stage);
  const double own_unit = attention::rounding_error(grid, 1);
  // Numbers all on this grid indicate coarser arithmetic; bfloat16 is already the coarsest.
  const Precision coarser = grid == Precision::float16 ? Precision::bfloat16 : Precision::float16;
  const bool has_coarser = grid != Precision::bfloat16;
  bool possible = true;
  ErrorStats all;
  ErrorStatsByLine parts, rows, columns;
  double largest = 0, farthest = 0, products = 0;
  std::size_t n = 0, n_differing = 0, n_on_grid = 0, n_on_coarser = 0;
  for_each_cell(observed, reading, exact, &coarse, [&](const Cell& c) {
    if (!std::isfinite(c.observed) || !std::isfinite(c.exact) || !std::isfinite(c.coarse)) {
      possible =
          possible && (equal_or_both_nan(c.observed, c.coarse) || equal_or_both_nan(c.observed, c.exact));
      return;
    }
    const double d = std::abs(c.observed - c.exact), allowed = slack(c.exact);
    for (ErrorStats* stats : {&all, &parts[c.part], &rows[c.part * reading.n_rows + c.row],
                              &columns[c.part * reading.n_columns + c.column]})
      stats->add(c, own_unit * exponent(reading.stage, c.exact), allowed,
                 coarse.is_truncated() ? c.coarse - c.exact : 0);
    ++n;
    largest = std::max(largest, std::abs(c.coarse - c.exact));
    farthest = std::max(farthest, d - allowed);
    products += (c.observed - c.exact) * (c.coarse - c.exact);
    if (d <= allowed) return;
    ++n_differing;
    n_on_grid += attention::rounded(grid, c.observed) == c.observed;
    n_on_coarser += attention::rounded(coarser, c.observed) == c.observed;
  });
  const std::size_t enough = grid == Precision::float16 ? min_float16_numbers : min_finer_numbers;
  const bool is_finer = round_trip_error(observed.rounding, 1) < own_unit;
  const bool is_grid_evidence = n_differing >= enough && n_on_grid == n_differing && is_finer;
  if (is_ours) return Similarity{!is_exact, true, is_grid_evidence, 1, all.error};
  if (!possible || n == 0) return std::nullopt;
  Similarity result{n_differing > 0, n_on_grid == n_differing, is_grid_evidence, 0, all.error};
  if (all.error > 0 && all.coarse > 0) result.value = products / std::sqrt(all.error * all.coarse);
  const double more = 1 + few / std::sqrt(static_cast<double>(n));
  if (farthest > more * max_peak_error_ratio * largest) return std::nullopt;
  const double maximum = more * max_error_ratio;  // compared with our actual errors, not the expected ones
  if (all.error > maximum * maximum * all.coarse + all.slack ||
      maximum * maximum * all.error + all.slack < all.coarse)
    return std::nullopt;
  for (const ErrorStats& part : parts.all)
    if (!part.has_expected_size(max_error_ratio) || !part.is_unbiased(unit)) return std::nullopt;
  const double mean_square = all.coarse / static_cast<double>(n);
  std::size_t n_ours = 0, n_seen = 0;
  for_each_cell(observed, reading, exact, &coarse, [&](const Cell& c) {
    const double error = std::abs(c.coarse - c.exact);
    if (!(error > slack(c.exact))) return;
    ++n_seen, n_ours += std::abs(c.observed - c.coarse) <= slack(c.exact) + quarter * error;
  });
  const bool are_ours =
      n_seen > 0 && static_cast<double>(n_ours) >= min_share_near_ours * static_cast<double>(n_seen);
  for (const ErrorStatsByLine* lines : {&rows, &columns})
    for (const ErrorStats& line : lines->all)
      if (!line.has_expected_size(max_line_error_ratio, mean_square) ||
          (are_ours && !line.is_ours(mean_square)))
        return std::nullopt;
  if (n_differing >= enough && has_coarser && n_on_coarser == n_differing) return std::nullopt;
  return result;
}

/// Whether the similarity of a tensor alone is evidence of that arithmetic.
bool is_evidence(const Similarity& similarity, const Precisions& types) {
  if (!similarity.is_informative || !similarity.on_grid) return false;
  return !needs_similar_errors(types) || similarity.is_grid_evidence ||
         similarity.value >= min_error_correlation;
}

std::optional<Similarity> similarity_of(const ObservedTensor& observed, const LazyTrace& exact,
                                        const LazyTrace& coarse, const Tolerance& tolerance) {
  for (const Reading& reading : observed.readings) {
    if (!effective_stage(coarse.model(), reading.stage)) continue;
    if (auto similarity = judge_similarity(observed, reading, exact, coarse, tolerance)) return similarity;
  }
  return std::nullopt;
}

/// Returns the mean similarity and the summed errors of all tensors; nullopt if one of them is not a coarse
/// version of the exact model, or none is evidence of this arithmetic.
std::optional<Similarity> similarity_of(const std::vector<ObservedTensor>& observed, const LazyTrace& exact,
                                        const LazyTrace& coarse, const Tolerance& tolerance) {
  const auto may_tell = [&](const ObservedTensor& tensor) {
    return may_be_evidence(tensor, exact, coarse.model(), tolerance);
  };
  if (std::ranges::none_of(observed, may_tell)) return std::nullopt;
  double sum = 0, n = 0, error = 0;
  bool on_grid = false, is_grid_evidence = false, off_grid_alike = true;
  for (const ObservedTensor& tensor : observed) {
    const auto similarity = similarity_of(tensor, exact, coarse, tolerance);
    if (!similarity) return std::nullopt;
    error += similarity->error;
    if (!similarity->is_informative) continue;
    sum += similarity->value, ++n;
    on_grid = on_grid || similarity->on_grid;
    is_grid_evidence = is_grid_evidence || similarity->is_grid_evidence;
    off_grid_alike = off_grid_alike && (similarity->on_grid || similarity->value >= min_off_grid_correlation);
  }
  if (n == 0 || !on_grid || !off_grid_alike) return std::nullopt;
  const double mean = sum / n;
  if (needs_similar_errors(precisions_of(coarse.model())) && !is_grid_evidence &&
      mean < min_error_correlation)
    return std::nullopt;
  return Similarity{true, true, is_grid_evidence, mean, error};
}

/// Relative change of the scale, small enough for a linear response.
constexpr double scale_step = 0x1p-12;
/// Differences of scale that are ignored: so many roundings, and so many standard errors.
constexpr double scale_roundings = 3, scale_errors = 6;

/// Whether errors that look like coarse arithmetic are those of another scale of the scores, beyond a few
/// roundings of it and chance.
bool match_other_scale(const std::vector<ObservedTensor>& observed, const LazyTrace& exact,
                       const LazyTrace& coarse) {
  const double factor = attention::scale_factor(exact.model()) * (1 + scale_step);
  const LazyTrace moved(attention::with_scale(exact.model(), {attention::ScaleRule::factor, factor}));
  if (moved.model() == exact.model()) return false;
  double along = 0, size = 0;
  for (const ObservedTensor& tensor : observed) {
    const Reading* reading = nearest_reading(tensor, exact);
    if (!reading || reading->stage < Stage::scaled_scores || tensor.tensor.numbers.empty()) continue;
    double products = 0, squares = 0, noise = 0, n = 0;
    const auto add = [&](const Cell& c) {
      for (const double number : {c.observed, c.exact, c.coarse, c.third})
        if (!std::isfinite(number)) return;
      const double slope = (c.third - c.exact) / scale_step,
                   error = c.observed - (coarse.is_truncated() ? c.coarse : c.exact);
      products += error * slope, squares += slope * slope;
      noise += (c.coarse - c.exact) * (c.coarse - c.exact), ++n;
    };
    for_each_cell(tensor, *reading, exact, &coarse, add, &moved);
    if (noise == 0) continue;
    along += products * n / noise, size += squares * n / noise;
  }
  if (size == 0) return false;
  const double unit = attention::rounding_error(precisions_of(coarse.model()).coarsest(), 1);
  return std::abs(along / size) > scale_roundings * unit + scale_errors / std::sqrt(size);
}

/// Similarities that differ by less are equivalent.
constexpr double similarity_margin = 0.1;
/// Models whose errors agree to this relative difference cannot be told apart by the tensors.
constexpr double same = 1e-6;
/// Smallest similarity of a special kind of float16, and its lead over plain float16, which few numbers
/// cannot distinguish from it.
constexpr double evident = 0.85, plainly = 0.3;

std::string_view cause_of(const RoundedModel& found) {
  return bugs::cause_of(*found.rounding.bug);
}

bool is_special(const RoundedModel& found) {
  return cause_of(found) == "half_precision_sums" || cause_of(found) == "softmax_half_precision";
}

/// Erases each model for which goes(model, other) holds for any other.
template <class Goes>
void erase_dominated(std::vector<RoundedModel>& all, Goes goes) {
  std::erase_if(all, [&, before = all](const RoundedModel& found) {
    return std::ranges::any_of(before, [&](const RoundedModel& other) { return goes(found, other); });
  });
}

/// Returns the models about as likely as the best, and equivalent ones of the same cause.
std::vector<RoundedModel> likeliest(std::vector<RoundedModel> all) {
  erase_dominated(all, [](const RoundedModel& found, const RoundedModel& other) {
    return is_special(found) && other.nth == found.nth && cause_of(other) == "half_precision" &&
           (found.similarity < evident || other.similarity > found.similarity - plainly);
  });
  erase_dominated(
      all, [](const RoundedModel& found, const RoundedModel& other) {  // products are cut or rounded
        return other.nth == found.nth && cause_of(other) == cause_of(found) &&
               other.rounding.arithmetic != found.rounding.arithmetic && other.similarity > found.similarity;
      });
  if (all.empty()) return all;
  const double best = std::ranges::max_element(all, {}, &RoundedModel::similarity)->similarity;
  std::vector<RoundedModel> likely = all;
  std::erase_if(likely,
                [&](const RoundedModel& found) { return found.similarity < best - similarity_margin; });
  std::erase_if(all, [&](const RoundedModel& found) {
    return found.similarity < best - similarity_margin &&
           std::ranges::none_of(likely, [&](const RoundedModel& other) {
             return cause_of(other) == cause_of(found) &&
                    std::abs(other.error - found.error) <= same * other.error;
           });
  });
  return all;
}

}  // namespace

Model Rounding::of(const Model& model) const {
  return bugs::injected(*bug, attention::with_rounded_inputs(model, inputs));
}

std::vector<Rounding> roundings_of(const Model& model) {
  std::vector<Rounding> all;
  for (const auto& [name, inputs] : coarse_types) {
    const bugs::Bug* bug = bugs::find_offered_bug(name);
    if (inputs != Precision::float64) all.push_back({bug, inputs});
    all.push_back({bug});
    if (name == std::string_view("tf32_precision") && model.given.cells.empty())
      all.push_back({bug, Precision::float64, Arithmetic::truncate_to_tf32});
  }
  std::erase_if(all, [&](const Rounding& rounding) { return rounding.of(model) == model; });
  return all;
}

std::vector<RoundedModel> find_roundings(const std::vector<ExactModel>& models, const Tolerance& tolerance,
                                         const core::StopToken& token) {
  std::vector<RoundedModel> all;
  for (std::size_t nth = 0; nth < models.size(); ++nth) {
    const auto& [model, observed] = models[nth];
    const LazyTrace exact(model);
    for (const Rounding& rounding : roundings_of(model)) {
      if (!token.should_continue()) return likeliest(std::move(all));
      token.count(1);
      Model coarse = rounding.of(model);
      if (attention::check(coarse)) continue;
      const LazyTrace ours(coarse, rounding.arithmetic);
      const auto similarity = similarity_of(*observed, exact, ours, tolerance);
      if (similarity && !match_other_scale(*observed, exact, ours))
        all.push_back({nth, rounding, std::move(coarse), similarity->value, similarity->error});
    }
  }
  return likeliest(std::move(all));
}

std::vector<std::string> types_of_rounding(const Comparison& c, const std::vector<const bugs::Bug*>& found) {
  std::vector<std::string> best(c.observed.size());
  if (found.size() == 1) return best;
  std::size_t maximum = 0;
  double largest = 0;
  for (const Rounding& rounding : roundings_of(c.reference.model())) {
    if (!c.token.should_continue()) break;
    if (!found.empty() && std::ranges::find(found, rounding.bug) == found.end()) continue;
    const Model model = rounding.of(c.reference.model());
    const LazyTrace coarse(model, rounding.arithmetic);
    const Precisions precisions = precisions_of(model);
    std::vector<std::string> types(c.observed.size());
    std::size_t n = 0;
    double sum = 0;
    for (std::size_t k = 0; k < types.size(); ++k) {
      if (c.agreeing_reading[k] || !may_be_evidence(c.observed[k], c.reference, model, c.tolerance)) continue;
      const auto similarity = similarity_of(c.observed[k], c.reference, coarse, c.tolerance);
      if (!similarity || !is_evidence(*similarity, precisions)) continue;
      types[k] = attention::name_of(precisions.coarsest());
      ++n, sum += similarity->value;
    }
    if (n > maximum || (n == maximum && sum > largest)) best = std::move(types), maximum = n, largest = sum;
  }
  return best;
}

}  // namespace core::check
