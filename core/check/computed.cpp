#include "core/check/computed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>

#include "core/graph/attend.hpp"
#include "core/graph/formulas.hpp"
#include "core/graph/matrices.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"

namespace core::check {

namespace {

using attention::Precision;
using formats::Dtype;

/// A type of eight bits: its digits, its smallest normal number, and its largest.
struct Eight {
  int digits;
  double smallest, largest;
};
constexpr Eight e4m3{4, 0x1p-6, 448}, e5m2{3, 0x1p-14, 57344};

const Eight* eight_of(Dtype dtype) {
  return dtype == Dtype::f8_e4m3 ? &e4m3 : dtype == Dtype::f8_e5m2 ? &e5m2 : nullptr;
}

double last_digit(const Eight& type, double number) {
  const double size = std::max(std::abs(number), type.smallest);
  return std::ldexp(1, std::ilogb(size) + 1 - type.digits);
}

Precision precision_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return Precision::float32;
    case Dtype::f16:
      return Precision::float16;
    case Dtype::bf16:
      return Precision::bfloat16;
    default:
      return Precision::float64;
  }
}

/// Whether a number that a type does not hold may have become that in it: infinite, in types of eight bits
/// the largest or NaN as well. Source: PyTorch's conversions, of which older ones give NaN.
bool stands_for_more(Dtype dtype, double kept, double number) {
  const Eight* type = eight_of(dtype);
  if (!type) return std::isinf(kept) && attention::rounded(precision_of(dtype), number) == kept;
  if (!(std::abs(number) >= type->largest + last_digit(*type, type->largest) / 2)) return false;
  return std::isnan(kept) ||
         ((std::isinf(kept) || std::abs(kept) == type->largest) && (kept > 0) == (number > 0));
}

}  // namespace

double round_trip_error(Dtype dtype, double number) {
  const Eight* type = eight_of(dtype);
  if (!type) return attention::rounding_error(precision_of(dtype), number);
  return std::isfinite(number) ? last_digit(*type, number) / 2 : 0;
}

Dtype coarsest_type(std::span<const double> numbers) {
  for (const Dtype type : {Dtype::bf16, Dtype::f16, Dtype::f32})
    if (std::ranges::all_of(numbers, [&](double x) {
          return std::isnan(x) || attention::rounded(precision_of(type), x) == x;
        }))
      return type;
  return Dtype::f64;
}

bool is_exact(Dtype dtype) {
  return !eight_of(dtype) && precision_of(dtype) == Precision::float64;
}

std::string rounding_words(Dtype dtype) {
  return is_exact(dtype) ? "" : formats::dtype_name(dtype);
}

Near Limits::near(double distance, double ours) const {
  if (distance == 0) return Near::plain;  // also where ours is no number
  if (!std::isfinite(distance)) return Near::none;
  const double size = std::abs(ours) + added;
  const double asked = tolerance.absolute + tolerance.relative * std::abs(ours) + more +
                       (sums > 0 ? sums * round_trip_error(formats::Dtype::f32, size) : 0);
  if (distance <= asked) return Near::plain;
  return distance <= asked + std::max(1.0, sums) * round_trip_error(dtype, size) ? Near::rounded : Near::none;
}

void Agreement::add(double observed, double ours, const Limits& limits, std::size_t in_row,
                    std::size_t in_column) {
  if (observed == ours) return;
  const double distance = stands_for_more(limits.dtype, observed, ours) ? 0 : abs_difference(observed, ours);
  const Near here = limits.near(distance, ours);
  within = within && here != Near::none, is_plain = is_plain && here == Near::plain;
  n_far += here == Near::none;
  if (distance > largest)
    largest = distance, row = in_row, column = in_column, of_nan = std::isnan(observed) || std::isnan(ours);
}

namespace {

using attention::SharedMatrix;
using attention::Stage;

/// What of the projected embeddings is kept at most, in numbers.
constexpr std::size_t most_kept = std::size_t{1} << 27;

}  // namespace

bool Sampler::Projected::made_like(const Projected& other) const {
  return precision == other.precision && factors == other.factors && sums == other.sums &&
         linear == other.linear && embeddings == other.embeddings;
}

Trace Sampler::trace(const Model& model) const {
  attention::require(model, sample_.sequence);
  graph::Graph g = graph::attention(model);
  const graph::Evaluation stages = [&] {
    graph::Evaluation known;
    const auto put = [&](Stage stage, const SharedMatrix& all) { known.stages[graph::index(stage)] = {all}; };
    const attention::Dropout drawn = [&] {
      attention::Dropout dropout = model.dropout;
      dropout.rescale = true;  // which decides nothing of what is kept
      return dropout;
    }();
    if (kept_ && kept_->first == drawn) put(graph::kept_weights, kept_->second);
    std::vector<std::pair<Stage, Projected>> wanted;
    for (const auto& [stage, part] : {std::pair{graph::all_keys, attention::Part::key},
                                      std::pair{graph::all_values, attention::Part::value}})
      if (const auto* linear = g.get<graph::Linear>(stage))
        wanted.emplace_back(stage,
                            Projected{model.sequences[sample_.sequence].embeddings, *find_linear(model, part),
                                      g.precision, linear->factors, linear->sums});
    for (const auto& [stage, projected] : wanted) {
      const auto same = [&](const Projected& made) { return made.made_like(projected); };
      const auto found = std::ranges::find_if(projected_, same);
      if (found != projected_.end()) put(stage, found->all);
    }
    graph::Evaluation made = graph::evaluate(g, model, sample_.sequence, sample_.rows, std::move(known));
    for (auto& [stage, projected] : wanted) {
      if (made[stage].empty() || made.partial[graph::index(stage)]) continue;
      projected.all = made[stage].front();
      const auto same = [&](const Projected& other) { return other.made_like(projected); };
      const std::size_t n = projected.all.n_rows() * projected.all.n_cols();
      if (std::ranges::none_of(projected_, same) && (projected_.size() + 1) * n <= most_kept)
        projected_.push_back(projected);
    }
    if (!made[graph::kept_weights].empty()) kept_.emplace(drawn, made[graph::kept_weights].front());
    return made;
  }();

  Trace t;
  t.sequence = sample_.sequence;
  t.heads.resize(model.n_heads);
  const arma::uvec rows = arma::conv_to<arma::uvec>::from(sample_.rows);
  for (const graph::Node& node : g.nodes) {
    if (graph::is_hidden(node.stage) || stages[node.stage].empty()) continue;
    const bool is_partial = stages.partial[graph::index(node.stage)];
    for (std::size_t h = 0; h < (node.heads == graph::Heads::shared ? 1 : model.n_heads); ++h) {
      const SharedMatrix& numbers = stages[node.stage][nth_matrix(g, node, h)];
      matrix_of(t, attention::info(node.stage), h) = is_partial ? numbers : SharedMatrix(numbers->rows(rows));
    }
  }
  return t;
}

namespace {

using attention::HeadTrace;

/// A number of float32 without all but its first 11 binary digits, cut off and not rounded.
double cut_to_tf32(double number) {
  constexpr int n_cut = 53 - 11;
  const double single = attention::rounded(attention::Precision::float32, number);
  if (!std::isfinite(single) || std::abs(single) < 0x1p-126) return single;
  const auto bits = std::bit_cast<std::uint64_t>(single);
  return std::bit_cast<double>(bits >> n_cut << n_cut);
}

arma::mat cut(arma::mat numbers) {
  numbers.transform(cut_to_tf32);
  return numbers;
}

/// The same model in float32, of which embeddings and weights are cut.
Model with_cut_weights(const Model& model) {
  Model next = model;
  next.departures.precision = attention::Precision::float32;
  next.departures.product_inputs = attention::Precision::float64;
  for (attention::Sequence& sequence : next.sequences) {
    sequence.embeddings = cut(sequence.embeddings);
    if (next.has_memory()) sequence.key_embeddings = cut(sequence.key_embeddings);
  }
  for (const attention::Part part : attention::all_parts)
    if (attention::Linear* linear = find_linear(next, part)) linear->weight = cut(linear->weight);
  return next;
}

/// Gives a stage of one sequence the cut numbers of one of a trace; what the other sequences have counts for
/// nothing.
void give_cut(Model& model, Stage stage, const Trace& trace, Stage from) {
  std::vector<SharedMatrix> heads;
  for (std::size_t k = 0; k < n_matrices(model, stage); ++k)
    heads.emplace_back(cut(attention::info(from).matrix(trace, head_of_matrix(model, stage, k))));
  attention::GivenStage given{stage, {}};
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    given.matrices.insert(given.matrices.end(), heads.begin(), heads.end());
  auto& stages = model.given.stages;
  std::erase_if(stages, [&](const attention::GivenStage& other) { return other.stage == stage; });
  stages.insert(std::ranges::find_if(stages, [&](const auto& other) { return other.stage > stage; }),
                std::move(given));
}

/// The trace of a sequence by a processor that takes the factors of every matrix product cut to TF32 and adds
/// up in float32; no cell of the model may be typed over.
Trace trace_in_tf32(const Model& model, std::size_t sequence) {
  const Model projecting = with_cut_weights(model);
  Trace result = attention::attend(projecting, sequence);
  const bool has_projected = result.heads.front().queries.n_rows() > 0;

  Model scoring = projecting;  // queries, keys and values are what they were made; products take them cut
  if (has_projected && !model.given.find(Stage::scores)) {
    const attention::LastStages last = last_stages(model);
    give_cut(scoring, Stage::queries, result, last.queries);
    give_cut(scoring, Stage::keys, result, last.keys);
    scoring.additions.normalise.reset();  // which they have behind them
    scoring.additions.positions.rotary.reset();
  }
  const Trace scored = attention::attend(scoring, sequence);

  Model mixing = projecting;
  mixing.given.stages.clear();
  mixing.dropout.training = false;
  give_cut(mixing, Stage::values, result, Stage::values);
  Trace dropped = scored;  // with what is mixed in the place of the weights
  for (attention::HeadTrace& head : dropped.heads) head.weights = head.dropped_weights;
  give_cut(mixing, Stage::weights, dropped, Stage::weights);
  const Trace mixed = attention::attend(mixing, sequence);

  for (std::size_t h = 0; h < model.n_heads; ++h) {
    attention::HeadTrace head = scored.heads[h];
    head.queries = result.heads[h].queries, head.keys = result.heads[h].keys;
    head.prepared = result.heads[h].prepared;
    head.values = result.heads[h].values, head.contexts = mixed.heads[h].contexts;
    result.heads[h] = std::move(head);
  }
  result.embeddings = arma::mat(model.sequences[sequence].embeddings);
  result.concatenated = mixed.concatenated;
  Model combined = projecting;
  combined.given = {};
  give_cut(combined, Stage::concatenated, mixed, Stage::concatenated);
  result.output = attention::attend_checked(combined, sequence).output;
  return result;
}

void add_masks(const arma::mat& visible, std::vector<arma::mat>& forms) {
  forms.push_back(1 - visible);
  forms.push_back(attention::masked(arma::mat(arma::size(visible)), visible, -arma::datum::inf));
}

void add_masked_scores(const Model& model, const HeadTrace& head, const arma::mat& visible,
                       std::vector<arma::mat>& forms) {
  const Stage last = last_stages(model).scores;
  const arma::mat& scaled = last == Stage::scaled_scores   ? head.scaled_scores
                            : last == Stage::capped_scores ? head.adjusted.capped_scores
                                                           : head.adjusted.biased_scores;
  const attention::Departures& d = model.departures;
  const bool is_finite = model.mask.method == attention::MaskMethod::large_negative;
  const double fill = is_finite ? d.large_negative : -arma::datum::inf;
  if (is_finite) forms.push_back(scaled + fill * (1 - visible));
  if (!model.dropout.active()) return;
  const arma::mat& dropout = head.dropout_mask;
  if (d.dropout_place == attention::DropoutPlace::scaled_scores)
    forms.push_back(model.mask.is_before_softmax() ? attention::masked(scaled, visible, fill) : scaled);
  if (d.dropout_place == attention::DropoutPlace::masked_scores)
    forms.push_back(arma::mat(head.masked_scores) % dropout);
}

/// Queries, keys or values of all heads as they were before they were viewed.
arma::mat unviewed(const Computed& computed, Stage stage, std::size_t sequence) {
  const Model& model = computed.model();
  graph::Graph g = graph::attention(model);
  g.result = *g.get<graph::SplitHeads>(stage)->inputs[0].stage();
  const auto rows = computed.sample() ? graph::RowChoice(computed.sample()->rows) : graph::RowChoice();
  return attention::rounded(g.precision, *graph::evaluate(g, model, sequence, rows)[g.result].front());
}

bool is_viewed(const Model& model, Stage stage) {
  const attention::Viewed& viewed = model.departures.viewed;
  return model.given.empty() &&
         ((stage == Stage::queries && viewed.queries) || (stage == Stage::keys && viewed.keys) ||
          (stage == Stage::values && viewed.values));
}

arma::mat joined(const Computed& computed, const Reading& reading, std::size_t sequence) {
  const Model& model = computed.model();
  if (is_viewed(model, reading.stage)) return unviewed(computed, reading.stage, sequence);
  arma::mat all;
  for (std::size_t head = 0; head < model.n_heads; ++head) {
    const std::size_t h = matrix_of_head(model, reading.stage, head);
    const arma::mat& one = attention::info(reading.stage).matrix(computed.trace(sequence), head);
    all.set_size(one.n_rows, reading.n_columns);
    for (std::size_t k = 0; k < one.n_cols; ++k)
      all.col(attention::column_of_head(model, reading.stage, h, k)) = one.col(k);
  }
  return all;
}

arma::mat mean_of_heads(const Computed& computed, Stage stage, std::size_t sequence) {
  const std::size_t n = computed.model().n_heads;
  arma::mat sum;
  for (std::size_t head = 0; head < n; ++head) {
    const arma::mat& one = attention::info(stage).matrix(computed.trace(sequence), head);
    sum = head == 0 ? one : arma::mat(sum + one);
  }
  return sum / static_cast<double>(n);
}

}  // namespace

std::optional<Stage> stage_for(const Model& model, Stage stage) {
  if (attention::info(stage).present(model)) return stage;
  switch (stage) {
    case Stage::normed_queries:
      return Stage::queries;
    case Stage::normed_keys:
      return Stage::keys;
    case Stage::rotated_queries:
      return last_stages(model).queries;
    case Stage::rotated_keys:
      return last_stages(model).keys;
    case Stage::capped_scores:
      return Stage::scaled_scores;
    case Stage::biased_scores:
      return last_stages(model).scores;
    default:
      return std::nullopt;
  }
}

std::size_t head_of(const Reading& reading, const Model& model, std::size_t h) {
  return reading.of_groups ? head_of_matrix(model, reading.stage, h) : reading.first_head + h;
}

const Trace& Computed::trace(std::size_t sequence) const {
  const auto known = traces_.find(sequence);
  if (known != traces_.end()) return known->second;
  return traces_
      .emplace(sequence, sampler_   ? sampler_->trace(model_)
                         : in_tf32_ ? trace_in_tf32(model_, sequence)
                                    : attention::attend(model_, sequence))
      .first->second;
}

const Computed& Computed::in_float32() const {
  if (!float32_) {
    Model model = model_;
    model.departures.precision = attention::Precision::float32;
    float32_ = std::make_shared<Computed>(std::move(model), sampler_);
  }
  return *float32_;
}

arma::mat Computed::form(const Reading& reading, std::size_t sequence, std::size_t head) const {
  Reading known = reading;
  known.stage = stage_for(model_, reading.stage).value_or(reading.stage);
  if (reading.joined) return joined(*this, known, sequence);
  if (reading.layout.is_mean) return mean_of_heads(*this, known.stage, sequence);
  const Trace& t = trace(sequence);
  const arma::mat& own = attention::info(known.stage).matrix(t, head);
  return reading.layout.is_masked ? attention::masked(own, t.mask, -arma::datum::inf) : own;
}

std::vector<arma::mat> Computed::forms(const Reading& reading, std::size_t sequence, std::size_t head) const {
  std::vector<arma::mat> all{form(reading, sequence, head)};
  const Trace& t = trace(sequence);
  if (reading.stage == Stage::mask) add_masks(t.mask, all);
  if (reading.stage == Stage::masked_scores) add_masked_scores(model_, t.heads[head], t.mask, all);
  if (reading.stage == Stage::position_bias && model_.mask.hides()) {  // with the mask in it
    const arma::mat bias = all.front();
    all.push_back(attention::masked(bias, t.mask, -arma::datum::inf));
    all.push_back(bias % arma::mat(t.mask));
  }
  if (reading.stage == Stage::dropout_mask) all.push_back(arma::sign(all.front()));
  return all;
}

double Computed::float32_error(const Reading& reading) const {
  double most = 0;
  for_each_part(reading, *this, [&](std::size_t s, std::size_t h) {
    const std::size_t sequence = reading.first_sequence + s, head = head_of(reading, model_, h);
    const arma::mat exact = form(reading, sequence, head),
                    rounded = in_float32().form(reading, sequence, head);
    for (arma::uword k = 0; k < exact.n_elem; ++k) {
      const double error = std::abs(exact[k] - rounded[k]);
      if (std::isfinite(error) && error > most) most = error;
    }
  });
  return most;
}

namespace {

/// Further than this, for 1 and more, float32 never rounds.
constexpr double beyond_float32 = 1e-2;
/// What masks add that hide is at least as low where it is no −∞.
constexpr double as_low_as_hidden = -1e4;
/// In some rows float32 errs less than in all of them.
constexpr double float32_sample_slack = 8;

/// One matrix against one form of it.
Agreement compared(const double* observed, const Reading& r, const arma::mat& ours, const Computed& computed,
                   Limits limits) {
  Agreement here;
  const std::size_t n_rows = n_rows_of(r, computed);
  limits.more += limits.tolerance.of_largest > 0 ? limits.tolerance.of_largest * largest_finite(ours) : 0;
  for (std::size_t a = 0; a < n_rows; ++a) {
    const std::size_t i = row_of(computed, a);
    const double* row = observed + r.at(0, 0, i, 0);
    for (std::size_t j = 0; j < r.n_columns; ++j) {
      const double our = ours.at(a, j), written = row[j * r.per_column];
      const bool hides = r.stage == Stage::mask && our == -arma::datum::inf && written <= as_low_as_hidden;
      const double observed_number = hides ? our : written;
      const double magnitude = std::abs(our);
      if (magnitude > here.magnitude && magnitude < arma::datum::inf) here.magnitude = magnitude;
      here.add(observed_number, our, limits, i, j);
    }
  }
  return here;
}

Agreement compared(const Observed& observed, const Reading& r, const Computed& ours, const Limits& limits) {
  Agreement worst;
  for_each_part(r, ours, [&](std::size_t s, std::size_t h) {
    const std::size_t sequence = r.first_sequence + s, head = head_of(r, ours.model(), h);
    Agreement best;
    bool first = true;
    for (const arma::mat& form : ours.forms(r, sequence, head)) {
      Agreement here = compared(observed.tensor.numbers.data() + r.at(s, h, 0, 0), r, form, ours, limits);
      here.sequence = sequence, here.head = head;
      // Of the customs of masks that is the observed one in which the fewest cells are wrong.
      const bool errs_less = r.stage == Stage::mask && here.n_far < best.n_far;
      if (first || here.within || errs_less) best = here;
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

Agreement agreement(const Observed& observed, const Reading& reading, const Computed& ours,
                    const Tolerance& tolerance) {
  Limits limits{tolerance, observed.rounding};
  Agreement result = compared(observed, reading, ours, limits);
  // What float32 adds to a coarse model, where it may tip a coarse rounding over, says nothing.
  if (result.within || is_exact(observed.rounding) || is_coarse(ours.model().departures)) return result;
  const double slack = ours.sample() ? float32_sample_slack : 1;
  const double stored = round_trip_error(observed.rounding, result.magnitude);
  if (result.largest > slack * beyond_float32 * (1 + result.magnitude) + stored)
    return result;  // further than float32 ever rounds
  limits.more = slack * float32_sums * ours.float32_error(reading);
  return compared(observed, reading, ours, limits);
}

const Reading* agreeing(const Observed& observed, const Computed& ours, const Tolerance& tolerance) {
  const auto& all = observed.readings;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Reading& reading) {
    return stage_for(ours.model(), reading.stage) && agreement(observed, reading, ours, tolerance).within;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace core::check
