#include "core/check/observation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/base/number.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/model_changes.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::check {
namespace {

using graph::infinity;

/// Numbers of a stage above which a few rows are judged first, and the fewest tokens of which some are.
constexpr double many_numbers_of_stage = 100000;
constexpr std::size_t max_tokens_judged_whole = 24;

/// Returns the coarsest precision that represents every number; nullopt if there are too few.
std::optional<Precision> precision_of_numbers(const std::vector<SharedMatrix>& matrices) {
  constexpr std::size_t max_looked_at = 50000, enough = 12;
  std::size_t n_all = 0;
  for (const SharedMatrix& matrix : matrices) n_all += matrix->n_elem;
  const std::size_t step = std::max<std::size_t>(1, n_all / max_looked_at);
  std::vector<double> numbers;
  std::size_t k = 0;
  for (const SharedMatrix& matrix : matrices)
    for (const double x : *matrix)
      if (k++ % step == 0 && std::isfinite(x) && x != 0 && std::abs(x) != 1) numbers.push_back(x);
  if (numbers.size() < enough) return std::nullopt;
  for (const Precision p : {Precision::bfloat16, Precision::float16, Precision::float32})
    if (std::ranges::all_of(numbers, [&](double x) { return attention::rounded(p, x) == x; })) return p;
  return Precision::float64;
}

/// Moves every float32 number by half its rounding error, to measure how storing it affects later stages.
SharedMatrix perturbed(const arma::mat& numbers, std::size_t& k) {
  arma::mat moved = numbers;
  for (double& x : moved) {
    const std::uint64_t mixed = std::uint64_t{++k} * 0x9E3779B97F4A7C15u;  // pseudo-random sign
    x += (mixed >> 63 ? 0.5 : -0.5) * attention::rounding_error(Precision::float32, x);
  }
  return moved;
}

std::vector<std::size_t> sampled_rows(std::size_t n) {
  std::vector<std::size_t> rows;
  if (n <= max_tokens_judged_whole) return rows;
  for (std::size_t k = 0; k < 4; ++k) rows.push_back(k);
  for (std::size_t k = 0; k < 6; ++k) rows.push_back(4 + k * (n - 5) / 5);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace

bool is_score_step_stage(Stage stage) {
  return std::ranges::find(graph::score_step_stages, stage) != graph::score_step_stages.end();
}

bool has_key_rows(Stage stage) {
  return attention::info(stage).rows == attention::RowTokens::keys;
}

double relative_rounding(Precision precision) {
  const double error = attention::rounding_error(precision, 1);
  return error > 0 ? error : 0x1p-53;
}

arma::mat rows_of(const arma::mat& all, const std::vector<std::size_t>& rows) {
  arma::mat some(rows.size(), all.n_cols, arma::fill::none);
  for (std::size_t j = 0; j < all.n_cols; ++j)
    for (std::size_t a = 0; a < rows.size(); ++a) some.at(a, j) = all.at(rows[a], j);
  return some;
}

const std::vector<Stage>& compared_stages() {
  using enum Stage;
  static const std::vector<Stage> all = [] {
    constexpr std::array others{embeddings,     key_embeddings, mask,        unmasked_weights,
                                zeroed_weights, row_sums,       dropout_mask};
    std::vector<Stage> stages;
    for (const attention::StageInfo& row : attention::stages())
      if (std::ranges::find(others, row.stage) == others.end()) stages.push_back(row.stage);
    return stages;
  }();
  return all;
}

arma::mat with_masked_infinite(Stage stage, arma::mat numbers) {
  if (!is_score_step_stage(stage)) return numbers;
  for (std::size_t i = 0; i < numbers.n_rows; ++i) {
    std::size_t n_masked = 0;
    for (std::size_t j = 0; j < numbers.n_cols; ++j) n_masked += numbers.at(i, j) < max_masked_score;
    if (n_masked == 0 || n_masked == numbers.n_cols) continue;
    for (std::size_t j = 0; j < numbers.n_cols; ++j)
      if (numbers.at(i, j) < max_masked_score) numbers.at(i, j) = -infinity;
  }
  return numbers;
}

// Distances.

void NumberDistance::add(const ObservedStage& of, const arma::mat& ours, const arma::mat& observed,
                         bool is_exact, double stop) {
  if (arma::size(ours) != arma::size(observed)) {
    is_infinite_ = true;
    return;
  }
  const bool is_score = is_score_step_stage(of.stage),
             are_weights = of.stage == Stage::weights || of.stage == Stage::dropped_weights,
             has_zeros = are_weights && !is_exact && of.stored_relative == 0;
  const arma::mat own = is_score ? with_masked_infinite(of.stage, ours) : arma::mat();
  const double *x = is_score ? own.memptr() : ours.memptr(), *y = observed.memptr();
  for (std::size_t k = 0; k < observed.n_elem && !is_infinite_; ++k) {
    const double a = x[k], b = y[k];
    double apart = std::abs(a - b);
    if (has_zeros && ((a == 0 && b > 1e-6) || (b == 0 && a > 1e-4)))
      apart = infinity;  // masked weights are exactly 0
    else if (!std::isfinite(apart) && (a == b || (std::isnan(a) && std::isnan(b))))
      continue;
    if (is_score && std::abs(b) > -max_masked_score) apart *= 1e-6;
    if (apart <= std::max(of.stored_relative * std::abs(a), of.stored_absolute)) apart = 0;
    is_infinite_ = !(apart <= stop);
    maximum_ = std::max(maximum_, apart), squares_ += apart * apart, ++n_;
  }
}

double NumberDistance::in_units_of(const AllowedDifference& allowed) const {
  if (is_infinite_) return infinity;
  if (n_ == 0) return 0;
  const double furthest = maximum_ / allowed.maximum;
  return allowed.max_rms == infinity ? furthest
                                     : std::max(furthest, std::sqrt(squares_ / n_) / allowed.max_rms);
}

// Observations.

Observation::Observation(std::shared_ptr<const Model> model, std::vector<ObservedStage> stages,
                         std::optional<AssumedPrecision> assumed)
    : model_(std::move(model)), given_(std::move(stages)), rounded_model_(model_), right_(model_) {
  std::array<std::optional<Precision>, attention::n_stages> own;
  for (const Stage stage : compared_stages())
    for (ObservedStage& given : given_) {
      const std::size_t at = graph::index(stage);
      if (given.stage != stage || !right_.find(stage)) continue;
      own[at] = precision_of_numbers(given.matrices);
      std::size_t k = 0;
      for (SharedMatrix& matrix : given.matrices) {
        matrix = with_masked_infinite(stage, *matrix);
        if (own[at] == Precision::float32) perturbed_[at].push_back(perturbed(matrix, k));
      }
      if (!at_[at]) order_.push_back(stage);
      at_[at] = &given;
    }
  // A stage that is not given has the precision of the next given one, those after the last of that one.
  std::optional<Precision> next;
  for (auto stage = compared_stages().rbegin(); stage != compared_stages().rend(); ++stage) {
    if (own[graph::index(*stage)]) next = own[graph::index(*stage)];
    precisions_[graph::index(*stage)] = next.value_or(Precision::float64);
  }
  std::optional<Precision> last;
  for (const Stage stage : compared_stages())
    if (own[graph::index(stage)]) last = own[graph::index(stage)];
  for (auto stage = compared_stages().rbegin(); last && stage != compared_stages().rend(); ++stage) {
    if (own[graph::index(*stage)]) break;
    precisions_[graph::index(*stage)] = *last;
  }
  for (const Stage stage : compared_stages())
    for (const Precision p : {Precision::bfloat16, Precision::float16, Precision::float32})
      if (own[graph::index(stage)] == p && relative_rounding(p) > relative_rounding(precision_))
        precision_ = p;
  const Precision words_precision = assumed && assumed->before ? assumed->precision : precision_;
  if (assumed) {
    for (const Stage stage : compared_stages()) {
      if (stage == assumed->before) break;
      Precision& precision = precisions_[graph::index(stage)];
      const bool is_kept = assumed->before && at_[graph::index(stage)];
      if (!is_kept && relative_rounding(assumed->precision) > relative_rounding(precision))
        precision = assumed->precision;
    }
    precision_ = assumed->precision;
  }
  right_.words = graph::NumberWords(*model_, words_precision);
  const double n_numbers =
      static_cast<double>(model_->sequences.size() * model_->n_heads * model_->n_tokens() *
                          std::max(model_->n_keys(), model_->d_model()));
  rows_ = sampled_rows(model_->n_tokens());
  is_large_ = !rows_.empty() && n_numbers > many_numbers_of_stage;
  can_compute_all_ =
      std::ranges::all_of(right_.graph.nodes, [](const graph::Node& node) { return node.operation->known; });
  right_stages_ = std::make_unique<LazyStages>(right_.graph, *model_, rows_);
  if (!is_exact())
    rounded_model_ = std::make_shared<const Model>(
        attention::with_rounded_inputs(*model_, precisions_[graph::index(Stage::queries)]));
  coarse_right_ = coarse(right_.graph);
  coarse_right_stages_ = std::make_unique<LazyStages>(coarse_right_, *rounded_model_, rows_);
}

const std::vector<SharedMatrix>& Observation::matrices(Stage stage) const {
  return at_[graph::index(stage)]->matrices;
}

const arma::mat& Observation::matrix(Stage stage, std::size_t sequence, std::size_t nth) const {
  const ObservedStage& given = *at_[graph::index(stage)];
  return given.matrices[sequence * (given.matrices.size() / given.n_sequences) + nth];
}

std::shared_ptr<const Model> Observation::rounded_model(const Editing& edited) const {
  if (&edited.model() == model_.get() || is_exact()) return rounded_model_;
  return std::make_shared<const Model>(
      attention::with_rounded_inputs(edited.model(), precisions_[graph::index(Stage::queries)]));
}

graph::Graph Observation::coarse(graph::Graph g) const {
  for (graph::Node& node : g.nodes)
    if (!graph::is_internal(node.stage) && !node.precision)
      node.precision = precisions_[graph::index(node.stage)];
  return g;
}

std::unique_ptr<Observation::BothStages> Observation::stages_of(const Editing& edited,
                                                                bool from_right) const {
  const bool is_coarse = !is_exact();
  auto both = std::unique_ptr<BothStages>(new BothStages{
      is_coarse ? coarse(edited.graph) : graph::Graph(), is_coarse ? rounded_model(edited) : nullptr,
      from_right ? LazyStages(edited.graph, edited.model(), *right_stages_)
                 : LazyStages(edited.graph, edited.model()),
      std::nullopt});
  if (is_coarse && from_right)
    both->coarse.emplace(both->coarse_graph, *both->rounded_model, *coarse_right_stages_);
  else if (is_coarse)
    both->coarse.emplace(both->coarse_graph, *both->rounded_model);
  return both;
}

void Observation::give(LazyStages& stages, Stage stage, bool is_perturbed) const {
  if (at_[graph::index(stage)]->stored_relative > 0) return;
  const auto& moved = perturbed_[graph::index(stage)];
  stages.give(stage, is_perturbed && !moved.empty() ? moved : matrices(stage));
}

bool Observation::has_as_many(LazyStages& stages, Stage seen, Stage stage) const {
  const ObservedStage& given = *at_[graph::index(stage)];
  return stages.find(seen) && given.n_sequences == model_->sequences.size() &&
         given.matrices.size() == given.n_sequences * stages.n_matrices(seen);
}

bool Observation::has_same_shape(LazyStages& stages, Stage seen, Stage stage) const {
  return has_as_many(stages, seen, stage) &&
         arma::size(matrix(stage, 0, 0)) == arma::size(*stages.matrix(seen, 0, 0));
}

bool Observation::can_compute(const Editing& edited, Stage stage) const {
  return can_compute_all_ || existing_nodes(edited.graph, *model_)[graph::index(stage)];
}

AllowedDifference Observation::allowed(Stage stage, Stage seen, LazyStages& exact,
                                       LazyStages& rounded) const {
  if (is_exact()) {
    double size = 0;
    bool has_number = false;
    for (const SharedMatrix& matrix : matrices(stage))
      for (const double x : *matrix)
        if (std::isfinite(x) && x > max_masked_score) size = std::max(size, std::abs(x)), has_number = true;
    return {1e-9 * (has_number ? size : 1) + 1e-13, infinity};
  }
  auto& kept = noise_[graph::index(stage)];  // float32 errors hardly depend on the bugs
  if (is_large_ && !is_coarse() && kept) return *kept;
  double maximum = 0, squares = 0, size = 0, sizes = 0, n = 0;
  for (std::size_t s = 0; s < model_->sequences.size(); ++s)
    for (std::size_t h = 0; h < exact.n_matrices(seen); ++h) {
      const arma::mat &x = exact.matrix(seen, s, h), &y = rounded.matrix(seen, s, h);
      for (std::size_t k = 0; k < x.n_elem; ++k) {
        if (!std::isfinite(x[k]) || !std::isfinite(y[k])) continue;
        const double d = std::abs(x[k] - y[k]);
        maximum = std::max(maximum, d), squares += d * d;
        size = std::max(size, std::abs(x[k])), sizes += x[k] * x[k], ++n;
      }
    }
  if (n == 0) size = 1, sizes = 1, n = 1;
  const double unit = relative_rounding(precision(stage)), floor = 1e-9 * size + 1e-13;
  const AllowedDifference made{6 * maximum + 4 * unit * size + floor,
                               3 * std::sqrt(squares / n) + unit * std::sqrt(sizes / n) + floor};
  if (is_large_ && !is_coarse()) kept = made;
  return made;
}

double Observation::distance(LazyStages& stages, Stage seen, Stage stage, const AllowedDifference& allowed,
                             double slack, bool by_rows) const {
  if (!has_as_many(stages, seen, stage)) return infinity;
  NumberDistance all;
  for (std::size_t s = 0; s < model_->sequences.size(); ++s)
    for (std::size_t h = 0; h < stages.n_matrices(seen) && !all.is_infinite(); ++h) {
      const arma::mat& observed = matrix(stage, s, h);
      const arma::mat& ours = stages.matrix(seen, s, h, by_rows);
      all.add(this->stage(stage), ours, by_rows ? rows_of(observed, rows_) : observed, is_exact(),
              slack * allowed.maximum);
    }
  return all.in_units_of(allowed);
}

std::vector<Stage> Observation::candidates_for(const Editing& edited, Stage stage) const {
  std::vector<Stage> all{edited.reported(stage)};
  if (edited.has_reordered_scores() && is_score_step_stage(stage))
    for (const Stage step : edited.score_steps())
      if (step != stage) all.push_back(step);
  return all;
}

bool has_numbers_of(const Model& model, const Editing& edited) {
  if (attention::check(model) || model.n_heads != edited.model().n_heads) return false;
  const graph::Graph g = graph::attention(model);
  LazyStages ours(g, model), other(edited.graph, edited.model());
  const graph::NodeSet existing = existing_nodes(g, model),
                       other_existing = existing_nodes(edited.graph, edited.model());
  for (const Stage stage : compared_stages()) {
    if (!existing[graph::index(stage)] || !other_existing[graph::index(stage)]) continue;
    // Heads may read other keys: matrices are compared as they are, or head by head if one has more.
    const std::size_t n = ours.n_matrices(stage);
    const bool has_as_many = other.n_matrices(stage) == n;
    double size = 0, apart = 0;
    for (std::size_t k = 0; k < (has_as_many ? n : model.n_heads); ++k) {
      const arma::mat &a = ours.matrix(stage, 0, has_as_many ? k : nth_matrix(g, *g.find(stage), k)),
                      &b = other.matrix(stage, 0,
                                        has_as_many ? k : nth_matrix(edited.graph, *edited.find(stage), k));
      for (std::size_t j = 0; j < std::min(a.n_cols, b.n_cols); ++j)
        for (std::size_t i = 0; i < std::min(a.n_rows, b.n_rows); ++i) {
          if (is_score_step_stage(stage) && (a.at(i, j) < max_masked_score || b.at(i, j) < max_masked_score))
            continue;
          size = std::max(size, std::abs(b.at(i, j)));
          apart = std::max(apart, abs_difference(a.at(i, j), b.at(i, j)));
        }
    }
    if (apart > 1e-7 * size) return false;
  }
  return true;
}

namespace {

/// Sets how a model combines and projects the heads, of which no stage can be given, as in an edited graph.
void project_as(const Editing& edited, Model& model) {
  if (!model.projections || !model.projections->output) return;
  arma::mat weight = edited.weight(attention::ProjectionName::output);
  attention::Linear& own = *model.projections->output;
  const auto* combined = edited.get<graph::CombineHeads>(Stage::concatenated);
  if (!combined || arma::size(weight) != arma::size(*own.weight)) return;
  const graph::HeadLayout* layout = combined->inputs[0].layout;
  if (layout == &graph::untransposed) model.merge = attention::CombineRule::reshape_without_transpose;
  if (layout == &graph::interleaved) {
    const std::size_t n = model.n_heads, d = model.d_value();
    arma::uvec rows(weight.n_rows);
    for (std::size_t i = 0; i < rows.n_elem; ++i) rows[i] = i % d * n + i / d;
    weight = arma::mat(weight.rows(rows));
  }
  own.weight = std::move(weight);
  if (arma::mat bias = edited.bias(attention::ProjectionName::output); own.bias && !bias.is_empty())
    own.bias = std::move(bias);
}

}  // namespace

Model with_stages_of(const Editing& edited, Model model) {
  const graph::Graph g = graph::attention(model);
  const graph::NodeSet existing = existing_nodes(g, model);
  LazyStages ours(g, model), other(edited.graph, edited.model());
  std::vector<attention::GivenStage> given;
  given.reserve(attention::n_stages);  // read by reference below
  for (const Stage stage : compared_stages()) {
    if (!attention::can_be_given(stage) || !existing[graph::index(stage)] || !edited.find(stage)) continue;
    attention::GivenStage numbers{stage, {}};
    bool differs = false;
    if (ours.n_matrices(stage) != other.n_matrices(stage)) return model;
    for (std::size_t s = 0; s < model.sequences.size(); ++s)
      for (std::size_t k = 0; k < ours.n_matrices(stage); ++k) {
        const arma::mat &a = ours.matrix(stage, s, k), &b = other.matrix(stage, s, k);
        if (arma::size(a) != arma::size(b)) return model;
        double apart = 0, size = 0;
        for (std::size_t n = 0; n < a.n_elem; ++n)
          apart = std::max(apart, abs_difference(a[n], b[n])),
          size = std::max(size, std::isfinite(a[n]) ? std::abs(a[n]) : 0);
        differs = differs || apart > 1e-9 * size;
        numbers.matrices.emplace_back(b);
      }
    if (!differs) continue;
    given.push_back(std::move(numbers));
    ours.give(stage, given.back().matrices);
  }
  for (attention::GivenStage& stage : given) set_given_stage(model, std::move(stage));
  project_as(edited, model);
  return model;
}

std::shared_ptr<const Model> first_tokens(const Model& m, std::size_t n) {
  if (2 * m.n_tokens() < 3 * n || m.n_tokens() != m.n_keys() || m.has_key_embeddings() || !m.given.empty() ||
      m.dropout.active())
    return nullptr;
  for (std::size_t s = 0; s < m.sequences.size(); ++s) {
    const arma::mat visible = attention::visibility_matrix(m, s);
    if (arma::any(arma::vectorise(visible.submat(0, n, n - 1, m.n_keys() - 1)) != 0)) return nullptr;
  }
  Model first = m;
  for (attention::Sequence& sequence : first.sequences) {
    sequence.tokens.resize(n);
    sequence.embeddings = arma::mat(sequence.embeddings->head_rows(n));
  }
  for (SharedMatrix& bias : first.additions.score_bias) bias = arma::mat(bias->submat(0, 0, n - 1, n - 1));
  attention::Mask& mask = first.mask;
  std::erase_if(mask.cells,
                [&](const attention::MaskCell& cell) { return cell.row >= n || cell.column >= n; });
  if (!mask.documents.empty()) mask.documents.resize(n);
  for (auto& hidden : mask.hidden_keys) std::erase_if(hidden, [&](std::size_t key) { return key >= n; });
  if (std::ranges::all_of(mask.hidden_keys, [](const auto& hidden) { return hidden.empty(); }))
    mask.hidden_keys.clear();
  return attention::check(first) ? nullptr : std::make_shared<const Model>(std::move(first));
}

std::vector<ObservedStage> first_rows(std::vector<ObservedStage> stages, std::size_t n) {
  for (ObservedStage& stage : stages)
    for (SharedMatrix& matrix : stage.matrices) {
      const bool are_tokens =
          attention::info(stage.stage).columns == attention::Columns::tokens && matrix.n_cols() > n;
      const arma::mat& all = matrix;
      matrix = arma::mat(
          all.submat(0, 0, std::min<std::size_t>(all.n_rows, n) - 1, (are_tokens ? n : all.n_cols) - 1));
    }
  return stages;
}

}  // namespace core::check
