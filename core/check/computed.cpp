#include "core/check/computed.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/number.hpp"
#include "core/graph/editing.hpp"
#include "core/graph/matrices.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"

namespace core::check {
namespace {

using attention::Precision;

/// Returns the scores with `fill` where visible is 0.
arma::mat masked(arma::mat scores, const arma::mat& visible, double fill) {
  scores.elem(arma::find(visible == 0)).fill(fill);
  return scores;
}
using formats::Dtype;
using graph::infinity;

/// An 8-bit type: significant digits, smallest normal number, largest number.
struct Float8Format {
  int digits;
  double smallest, largest;
};
constexpr Float8Format e4m3{4, 0x1p-6, 448}, e5m2{3, 0x1p-14, 57344};

const Float8Format* float8_format(Dtype dtype) {
  return dtype == Dtype::f8_e4m3 ? &e4m3 : dtype == Dtype::f8_e5m2 ? &e5m2 : nullptr;
}

double last_digit(const Float8Format& type, double number) {
  const double size = std::max(std::abs(number), type.smallest);
  return std::ldexp(1, std::ilogb(size) + 1 - type.digits);
}

bool keeps_all(Dtype dtype, std::span<const double> numbers) {
  return std::ranges::all_of(numbers, [type = precision_of(dtype)](double x) {
    return std::isnan(x) || attention::rounded(type, x) == x;
  });
}

/// Whether `kept` can be the stored form of a number out of range: infinity or, in 8-bit types, also the
/// largest number or NaN. Source: PyTorch's conversions, of which older ones give NaN.
bool is_overflow_of(Dtype dtype, double kept, double number) {
  const Float8Format* type = float8_format(dtype);
  if (!type) return std::isinf(kept) && attention::rounded(precision_of(dtype), number) == kept;
  if (!(std::abs(number) >= type->largest + last_digit(*type, type->largest) / 2)) return false;
  return std::isnan(kept) ||
         ((std::isinf(kept) || std::abs(kept) == type->largest) && (kept > 0) == (number > 0));
}

}  // namespace

Precision precision_of(Dtype dtype) {
  return dtype == Dtype::f32    ? Precision::float32
         : dtype == Dtype::f16  ? Precision::float16
         : dtype == Dtype::bf16 ? Precision::bfloat16
                                : Precision::float64;
}

double round_trip_error(Dtype dtype, double number) {
  const Float8Format* type = float8_format(dtype);
  if (!type) return attention::rounding_error(precision_of(dtype), number);
  return std::isfinite(number) ? last_digit(*type, number) / 2 : 0;
}

Dtype coarsest_type(std::span<const double> numbers) {
  for (const Dtype type : {Dtype::bf16, Dtype::f16, Dtype::f32})
    if (keeps_all(type, numbers)) return type;
  return Dtype::f64;
}

bool is_exact(Dtype dtype) {
  return !float8_format(dtype) && precision_of(dtype) == Precision::float64;
}

std::string rounding_words(Dtype dtype) {
  return is_exact(dtype) ? "" : formats::dtype_name(dtype);
}

Dtype rounding_of(const formats::Tensor& tensor) {
  return tensor.dtype == Dtype::f64 && keeps_all(Dtype::f32, tensor.numbers) ? Dtype::f32 : tensor.dtype;
}

void Agreement::add(double observed, double ours, const Limits& limits, std::size_t in_row,
                    std::size_t in_column) {
  if (observed == ours) return;
  const double distance = is_overflow_of(limits.dtype, observed, ours) ? 0 : abs_difference(observed, ours);
  bool is_near = distance == 0, is_near_unrounded = is_near;  // also if ours is NaN
  if (!is_near && std::isfinite(distance)) {
    const double size = std::abs(ours) + limits.added;
    const double allowed = limits.tolerance.absolute + limits.tolerance.relative * std::abs(ours) +
                           limits.extra +
                           (limits.sums > 0 ? limits.sums * round_trip_error(Dtype::f32, size) : 0);
    is_near_unrounded = distance <= allowed;
    is_near = is_near_unrounded ||
              distance <= allowed + std::max(1.0, limits.sums) * round_trip_error(limits.dtype, size);
  }
  within = within && is_near, is_within_unrounded = is_within_unrounded && is_near_unrounded;
  n_far += !is_near;
  if (distance > largest)
    largest = distance, row = in_row, column = in_column,
    is_nan_mismatch = std::isnan(observed) || std::isnan(ours);
}

// Computing a model.

Precision Precisions::coarsest() const {
  return softmax != Precision::float64 ? softmax : factors != Precision::float64 ? factors : stages;
}

Precisions precisions_of(const Model& model) {
  graph::Graph g = graph::attention(model);
  return {g.precision, g.all<graph::Product>().front()->factors, g.all<graph::Softmax>().front()->precision};
}

LazyTrace::Pass::Pass(graph::Graph g, const LazyTrace& of)
    : graph(std::move(g)), existing(existing_nodes(graph, of.model_)), stages(graph, of.model_) {}

LazyTrace::Pass& LazyTrace::pass() const {
  if (pass_) return *pass_;
  attention::require(model_);
  graph::Graph g = graph::attention(model_);
  if (arithmetic_ != Arithmetic::of_model) {
    g.precision = Precision::float32;
    for (graph::Product* product : g.all<graph::Product>()) {
      if (is_truncated()) product->truncates = true, product->factors = Precision::float64;
      if (product->sums) product->sums = Precision::float32;
    }
  }
  pass_ = std::make_unique<Pass>(std::move(g), *this);
  return *pass_;
}

const arma::mat& LazyTrace::matrix(Stage stage, std::size_t sequence, std::size_t head) const {
  static const arma::mat none;
  Pass& made = pass();
  if (!made.existing[graph::index(stage)]) return none;
  const std::size_t nth = nth_matrix(made.graph, *made.graph.find(stage), head);
  return made.stages.matrix(stage, sequence, nth);
}

const LazyTrace& LazyTrace::in_float32() const {
  if (!float32_) float32_ = std::make_shared<LazyTrace>(model_, Arithmetic::float32);
  return *float32_;
}

/// Returns the mask, all 1 if there is none.
arma::mat LazyTrace::mask(std::size_t sequence) const {
  const arma::mat& known = matrix(Stage::mask, sequence, 0);
  return known.is_empty() ? arma::mat(model_.n_tokens(), model_.n_keys(), arma::fill::ones) : known;
}

/// Returns all heads concatenated; if they were split by a view, as before it.
arma::mat LazyTrace::joined(const Reading& reading, std::size_t sequence) const {
  Pass& made = pass();
  const auto* split = std::as_const(made.graph).get<graph::SplitHeads>(reading.stage);
  if (split && split->inputs[0].layout == &graph::untransposed && model_.given.empty())
    return attention::rounded(made.graph.precision,
                              made.stages.matrix(*split->inputs[0].stage(), sequence, 0));
  arma::mat all;
  for (std::size_t head = 0; head < model_.n_heads; ++head) {
    const arma::mat& one = matrix(reading.stage, sequence, head);
    all.set_size(one.n_rows, reading.n_columns);
    for (std::size_t k = 0; k < one.n_cols; ++k)
      all.col(attention::column_of_head(model_, reading.stage, matrix_of_head(model_, reading.stage, head),
                                        k)) = one.col(k);
  }
  return all;
}

arma::mat LazyTrace::form(const Reading& reading, std::size_t sequence, std::size_t head) const {
  Reading known = reading;
  known.stage = effective_stage(model_, reading.stage).value_or(reading.stage);
  if (reading.joined) return joined(known, sequence);
  const arma::mat& own = matrix(known.stage, sequence, head);
  if (reading.layout.is_masked) return masked(own, mask(sequence), -infinity);
  if (!reading.layout.is_mean) return own;
  arma::mat sum = matrix(known.stage, sequence, 0);
  for (std::size_t other = 1; other < model_.n_heads; ++other) sum += matrix(known.stage, sequence, other);
  return sum / static_cast<double>(model_.n_heads);
}

std::vector<arma::mat> LazyTrace::forms(const Reading& reading, std::size_t sequence,
                                        std::size_t head) const {
  std::vector<arma::mat> all{form(reading, sequence, head)};
  const arma::mat own = all.front();
  const auto add = [&](arma::mat other) { all.push_back(std::move(other)); };
  if (reading.stage == Stage::mask) {
    add(1 - own);
    add(masked(arma::mat(arma::size(own)), own, -infinity));
  } else if (reading.stage == Stage::position_bias && model_.mask.masks_keys()) {  // including the mask
    add(masked(own, mask(sequence), -infinity));
    add(own % mask(sequence));
  } else if (reading.stage == Stage::dropout_mask) {
    add(arma::sign(own));
  } else if (reading.stage == Stage::masked_scores) {
    graph::Graph& g = pass().graph;
    const arma::mat seen = mask(sequence);
    Stage before = *g.find(Stage::masked_scores)->operation->inputs[0].stage();
    const bool drops_before = graph::is_internal(before);
    if (drops_before) before = *g.find(before)->operation->inputs[0].stage();
    const arma::mat& scores = matrix(before, sequence, head);
    const auto* fill = g.get<graph::MaskedFill>(Stage::masked_scores);
    if (scores.is_empty()) return all;
    if (fill && std::isfinite(fill->fill)) add(scores + fill->fill * (1 - seen));
    if (!model_.dropout.active()) return all;
    if (drops_before) add(fill ? masked(scores, seen, fill->fill) : scores);
    if (graph::is_internal(*g.all<graph::Softmax>().front()->inputs[0].stage()))  // dropout on scores
      add(own % matrix(Stage::dropout_mask, sequence, head));
  }
  return all;
}

double LazyTrace::float32_error(const Reading& reading) const {
  double maximum = 0;
  for (const Part& part : parts_of(reading, *this))
    maximum = std::max(maximum, max_abs_finite(form(reading, part.sequence, part.head) -
                                               in_float32().form(reading, part.sequence, part.head)));
  return maximum;
}

std::optional<Stage> effective_stage(const Model& model, Stage stage) {
  using enum Stage;
  const attention::StageSet shown = attention::existing_stages(model);
  if (contains(shown, stage)) return stage;
  const std::vector<Stage> steps(graph::score_step_stages.begin(), graph::score_step_stages.end());
  for (const auto& row : {std::vector{queries, normed_queries, rotated_queries},
                          std::vector{keys, normed_keys, rotated_keys}, steps})
    for (auto at = std::ranges::find(row, stage); at != row.end() && at != row.begin();)
      if (contains(shown, *--at)) return *at;
  return std::nullopt;
}

std::vector<Part> parts_of(const Reading& r, const LazyTrace& computed) {
  std::vector<Part> parts;
  for (std::size_t s = 0; s < r.n_sequences; ++s) {
    const std::size_t sequence = r.first_sequence + s;
    for (std::size_t h = 0; h < r.n_heads; ++h)
      parts.push_back(
          {s, h, sequence, r.has_kv_heads ? head_of_matrix(computed.model(), r.stage, h) : r.first_head + h});
  }
  return parts;
}

arma::mat extract_matrix(const ObservedTensor& observed, const Reading& r, const Part& part) {
  arma::mat numbers(r.n_rows, r.n_columns, arma::fill::none);
  for (std::size_t a = 0; a < numbers.n_rows; ++a)
    for (std::size_t j = 0; j < r.n_columns; ++j)
      numbers(a, j) = observed.tensor.numbers[r.at(part.s, part.h, a, j)];
  return numbers;
}

namespace {

/// Relative to 1 + magnitude: float32 errors are never larger.
constexpr double max_float32_error = 1e-2;
/// An additive mask masks with this number and below.
constexpr double max_additive_fill = -1e4;

/// Compares a matrix with one of its forms.
Agreement compared(const arma::mat& observed, const arma::mat& ours, bool is_mask, const Limits& limits) {
  Agreement here;
  here.magnitude = max_abs_finite(ours);
  for (std::size_t a = 0; a < observed.n_rows; ++a)
    for (std::size_t j = 0; j < observed.n_cols; ++j) {
      const double our = ours.at(a, j);
      const bool masks_keys = is_mask && our == -infinity && observed(a, j) <= max_additive_fill;
      here.add(masks_keys ? our : observed(a, j), our, limits, a, j);
    }
  return here;
}

Agreement compared(const ObservedTensor& observed, const Reading& r, const LazyTrace& ours,
                   const Limits& limits) {
  Agreement worst;
  const bool is_mask = r.stage == Stage::mask;
  for (const Part& part : parts_of(r, ours)) {
    const arma::mat numbers = extract_matrix(observed, r, part);
    std::optional<Agreement> best;
    for (const arma::mat& form : ours.forms(r, part.sequence, part.head)) {
      const Agreement here = compared(numbers, form, is_mask, limits);
      // The mask convention with the fewest wrong positions is taken to be the observed one.
      if (!best || here.within || (is_mask && here.n_far < best->n_far)) best = here;
      if (here.within) break;
    }
    best->sequence = part.sequence, best->head = part.head;
    const bool within = worst.within && best->within;
    const double magnitude = std::max(worst.magnitude, best->magnitude);
    if (best->largest > worst.largest) worst = *best;
    worst.within = within, worst.magnitude = magnitude;
  }
  return worst;
}

}  // namespace

Agreement agreement(const ObservedTensor& observed, const Reading& reading, const LazyTrace& ours,
                    const Tolerance& tolerance) {
  Limits limits{tolerance, observed.rounding};
  Agreement result = compared(observed, reading, ours, limits);
  // The effect of float32 on a coarse model is meaningless: it may flip coarse roundings.
  if (result.within || is_exact(observed.rounding) || precisions_of(ours.model()).are_coarse()) return result;
  const double stored = round_trip_error(observed.rounding, result.magnitude);
  if (result.largest > max_float32_error * (1 + result.magnitude) + stored)
    return result;  // beyond any float32 error
  limits.extra = max_float32_roundings * ours.float32_error(reading);
  return compared(observed, reading, ours, limits);
}

const Reading* agreeing_reading(const ObservedTensor& observed, const LazyTrace& ours,
                                const Tolerance& tolerance) {
  const auto& all = observed.readings;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Reading& reading) {
    return effective_stage(ours.model(), reading.stage) &&
           agreement(observed, reading, ours, tolerance).within;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace core::check
