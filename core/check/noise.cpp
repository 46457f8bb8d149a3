#include "core/check/noise.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "core/graph/number_words.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

using attention::ProjectionName;

/// Limits on the mean square of a row's differences, in units of its noise; on that over the median row of
/// up to many_rows rows; and on the share of a head, or of the scores, in standard errors of the median row.
constexpr double max_row = 3, max_ratio = 12, many_rows = 128, max_share = 16;
/// How far differences may exceed those of the draws, one judged by the others, at least these limits.
constexpr double beyond_draws = 1.5;
/// Numbers of the scores that all draws together may have, and how many draws there are.
constexpr double max_drawn = 5e7;
constexpr std::size_t min_draws = 3, max_draws = 12;
/// By how much scores are made larger to see how the stages follow.
constexpr double small_factor = 1e-3;
/// Noise of a cell: so much of its row's, the rest its own.
constexpr double of_row = 0.7;
/// Roundings of the sum of a softmax.
constexpr double sum_roundings = 2;
/// Smallest mean squares of the median row that rows and shares are compared with.
constexpr double least_of_rows = 0.01, least_of_shares = 0.05;

/// Random numbers of the cells of a matrix, which depend on its number, that of its stage and the draw alone.
class CellNoise {
 public:
  CellNoise(std::uint64_t draw, std::uint64_t stage, std::uint64_t matrix)
      : seed_(mixed(mixed(mixed(draw) + stage) + matrix)) {}

  std::uint64_t bits(std::uint64_t row, std::uint64_t column) const {
    return mixed(seed_ + (row << 32 | column));
  }
  /// From 0 to 1.
  double uniform(std::uint64_t row, std::uint64_t column) const {
    return static_cast<double>(bits(row, column) >> 11) * 0x1p-53;
  }
  /// From −1 to 1.
  double symmetric(std::uint64_t row, std::uint64_t column) const { return 2 * uniform(row, column) - 1; }

 private:
  static std::uint64_t mixed(std::uint64_t x) {  // splitmix64
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  std::uint64_t seed_;
};

}  // namespace

arma::mat randomly_rounded(Precision precision, arma::mat numbers, std::uint64_t draw, std::uint64_t stage,
                           std::uint64_t matrix) {
  const CellNoise noise(draw, stage, matrix);
  for (std::size_t j = 0; j < numbers.n_cols; ++j)
    for (std::size_t i = 0; i < numbers.n_rows; ++i)
      numbers.at(i, j) = attention::randomly_rounded(precision, numbers.at(i, j), noise.bits(i, j));
  return numbers;
}

namespace {

/// Adds the roundings within a softmax: of each exponent, its power and the quotient, and of the row's sum.
arma::mat with_rounded_steps(Precision precision, arma::mat weights, const CellNoise& noise) {
  const double unit = attention::rounding_error(precision, 1);
  for (std::size_t i = 0; i < weights.n_rows; ++i) {
    const double sum = 1 + sum_roundings * unit * noise.symmetric(i, weights.n_cols);
    for (std::size_t j = 0; j < weights.n_cols; ++j)
      if (const double weight = weights.at(i, j); weight > 0)
        weights.at(i, j) *= sum * (1 + unit * (1 - std::log(weight)) * noise.symmetric(i, j));
  }
  return weights;
}

/// Returns the model with its inputs rounded at random.
Model with_rounded_inputs(Model model, Precision precision, std::uint64_t n) {
  std::uint64_t matrix = 0;
  const auto round = [&](SharedMatrix& numbers) {
    numbers = randomly_rounded(precision, numbers, n, graph::max_stages, matrix++);
  };
  for (attention::Sequence& sequence : model.sequences) {
    round(sequence.embeddings);
    if (!sequence.key_tokens.empty()) round(sequence.key_embeddings);
  }
  for (const auto part :
       {ProjectionName::query, ProjectionName::key, ProjectionName::value, ProjectionName::output})
    if (attention::Linear* linear = find_linear(model, part)) {
      round(linear->weight);
      if (linear->bias) round(*linear->bias);
    }
  return model;
}

/// Rounds every stage at random.
void round_stages(Editing& e, Precision precision, bool in_softmax, std::uint64_t n) {
  const Stage softmax = e.find(Stage::unmasked_weights) ? Stage::unmasked_weights : Stage::weights;
  for (const Stage stage : compared_stages()) {
    if (!e.find(stage) || stage == Stage::position_bias) continue;
    const bool has_steps = in_softmax && stage == softmax;
    e.wrap(stage, [=](const graph::OperationInputs& in) {
      const std::uint64_t matrix = std::uint64_t{in.sequence} << 32 | in.head;
      arma::mat numbers = in[0];
      if (has_steps)
        numbers = with_rounded_steps(precision, std::move(numbers), {n, graph::max_stages + 1, matrix});
      return randomly_rounded(precision, std::move(numbers), n, graph::index(stage), matrix);
    });
  }
}

}  // namespace

EditedModel::EditedModel(const Model& model, const std::function<void(Editing&)>& edit)
    : editing(std::make_shared<const Model>(model)) {
  if (edit) edit(editing);
  stages = std::make_unique<LazyStages>(editing.graph, editing.model());
}

std::size_t n_draws(const Model& model) {
  const double n_scores =
      static_cast<double>(model.sequences.size() * model.n_heads * model.n_tokens() * model.n_keys());
  return std::clamp(static_cast<std::size_t>(max_drawn / n_scores), min_draws, max_draws);
}

RandomlyRounded::RandomlyRounded(const Model& right, Precision precision, bool in_softmax, std::uint64_t draw)
    : EditedModel(with_rounded_inputs(right, precision, draw),
                  [&](Editing& e) { round_stages(e, precision, in_softmax, draw); }) {}

namespace {

/// The right model with its inputs and every stage rounded at random, and with stages that were observed.
struct Draw : RandomlyRounded {
  using RandomlyRounded::RandomlyRounded;

  void give(Stage stage, std::vector<SharedMatrix> matrices) {
    stages->give(stage, given.emplace_back(std::move(matrices)));
  }

  std::deque<std::vector<SharedMatrix>> given;
};

bool is_sum(Stage stage) {
  return stage == Stage::contexts || stage == Stage::concatenated || stage == Stage::output;
}

/// What a head adds to a stage that all heads share: the output, or the heads side by side.
arma::mat part_of_head(const Model& model, Stage stage, LazyStages& right, std::size_t sequence,
                       std::size_t head) {
  const arma::mat& contexts = right.matrix(Stage::contexts, sequence, head);
  const std::size_t first = head * model.d_value(), last = first + model.d_value() - 1;
  const attention::Linear* output = find_linear(model, ProjectionName::output);
  if (stage == Stage::output && output) return contexts * output->weight->rows(first, last);
  arma::mat part(contexts.n_rows, model.n_heads * model.d_value(), arma::fill::zeros);
  part.cols(first, last) = contexts;
  return part;
}

/// The model with scores that are a little larger.
EditedModel with_larger_scores(const Model& model) {
  return EditedModel(model, [](Editing& e) {
    e.wrap(Stage::scaled_scores,
           [](const graph::OperationInputs& in) { return arma::mat((1 + small_factor) * in[0]); });
  });
}

double ratio(const DrawnNoise::Excess& found) {
  return found.worst.mean_square / std::max(found.median, least_of_rows);
}

}  // namespace

DrawnNoise::Matrices DrawnNoise::noise_without(std::size_t left_out) const {
  Matrices all;
  for (std::size_t m = 0; m < of_sums.size(); ++m) {
    arma::mat squares(arma::size(of_sums[m]), arma::fill::zeros);
    double n = 0;
    for (std::size_t k = 0; k < of_draws.size(); ++k)
      if (k != left_out) squares += arma::square(of_draws[k][m]), ++n;
    squares = arma::max(arma::mat(squares / n), arma::square(of_sums[m]));
    arma::vec of_rows(squares.n_rows);
    for (std::size_t i = 0; i < squares.n_rows; ++i) {
      const arma::rowvec row = squares.row(i);
      const auto n_noisy = std::ranges::count_if(row, [](double x) { return x > 0; });
      of_rows[i] = n_noisy == 0 ? 0 : arma::accu(row) / static_cast<double>(n_noisy);
    }
    squares *= 1 - of_row;
    squares.each_col() += of_row * of_rows;
    all.push_back(std::move(squares));
  }
  return all;
}

DrawnNoise::Excess DrawnNoise::excess(const Matrices& differences, const Matrices& noise) const {
  Excess result;
  for (std::size_t m = 0; m < right.size(); ++m)
    for (std::size_t i = 0; i < right[m].n_rows; ++i) {
      Row row{0, 0, 0, m, i};
      double count = 0;
      for (std::size_t j = 0; j < right[m].n_cols; ++j) {
        const double difference = differences[m].at(i, j), variance = noise[m].at(i, j);
        if (!std::isfinite(difference) || variance == 0) continue;
        row.mean_square += difference * difference / variance;
        row.noise += variance, row.size += right[m].at(i, j) * right[m].at(i, j), ++count;
      }
      if (count > 0) row.mean_square /= count, result.rows.push_back(row);
    }
  if (result.rows.empty()) return result;
  const auto middle = result.rows.begin() + static_cast<std::ptrdiff_t>(result.rows.size() / 2);
  std::ranges::nth_element(result.rows, middle, {}, &Row::mean_square);
  result.median = middle->mean_square;
  result.worst = *std::ranges::max_element(result.rows, {}, &Row::mean_square);
  return result;
}

DrawnNoise::Judgment DrawnNoise::judge(const Matrices& differences) const {
  Judgment result;
  result.limit = max_row;
  result.noise = noise_without(of_draws.size());
  result.found = excess(differences, result.noise);
  const Excess& found = result.found;
  if (found.rows.empty()) return result;
  const double more_rows = std::max(1.0, std::log2(static_cast<double>(found.rows.size()) / many_rows) / 2);
  double limit_of_ratio = max_ratio * more_rows;
  for (std::size_t k = 0; k < of_draws.size(); ++k) {
    const Excess of_draw = excess(of_draws[k], noise_without(k));
    result.limit = std::max(result.limit, beyond_draws * of_draw.worst.mean_square);
    limit_of_ratio = std::max(limit_of_ratio, beyond_draws * ratio(of_draw));
    result.medians.push_back(of_draw.median);
  }
  result.is_exceeded = found.worst.mean_square > result.limit || ratio(found) > limit_of_ratio;
  return result;
}

namespace {

class NoiseJudge {
  using Matrices = DrawnNoise::Matrices;

 public:
  NoiseJudge(const Model& model, Precision precision, const OtherRoundings& others)
      : model_(model),
        precision_(precision),
        right_model_(model),
        right_(*right_model_.stages),
        with_larger_scores_(with_larger_scores(model)) {
    if (others.in_sums) {
      Model with_sums = model;
      with_sums.arithmetic.precision = precision, with_sums.arithmetic.sums_rounded = true;
      sums_.emplace(with_sums);
    }
    for (std::size_t k = 0; k < n_draws(model); ++k)
      draws_.push_back(std::make_unique<Draw>(model, precision, others.in_softmax, k));
  }

  NoiseVerdict judge(const std::vector<ObservedStage>& stages) {
    for (const Stage stage : compared_stages()) {
      const auto given = std::ranges::find(stages, stage, &ObservedStage::stage);
      // A softmax rounds within itself: its noise is that of scores that are computed.
      if (given == stages.end() || !has_shape(*given) || is_score_step_stage(stage) || stage == Stage::scores)
        continue;
      if (is_sum(stage)) judge(*given);
      right_.give(stage, given->matrices);
      with_larger_scores_.stages->give(stage, given->matrices);
      if (sums_) sums_->stages->give(stage, given->matrices);
      for (std::size_t k = 0; k < draws_.size(); ++k) draws_[k]->give(stage, before_rounding(*given, k));
    }
    return verdict_;
  }

 private:
  /// The factor by which differences follow a direction, in how many standard errors of the median row.
  struct Share {
    double part, errors, error;
  };

  bool has_shape(const ObservedStage& given) {
    return right_.find(given.stage) && given.n_sequences == model_.sequences.size() &&
           given.matrices.size() == given.n_sequences * right_.n_matrices(given.stage) &&
           arma::size(*given.matrices[0]) == arma::size(*right_.matrix(given.stage, 0, 0));
  }

  /// Returns numbers that given ones may be the roundings of.
  std::vector<SharedMatrix> before_rounding(const ObservedStage& given, std::size_t draw) const {
    std::vector<SharedMatrix> all;
    for (std::size_t m = 0; m < given.matrices.size(); ++m) {
      const CellNoise noise(draw, graph::index(given.stage), m);
      arma::mat numbers = given.matrices[m];
      for (std::size_t j = 0; j < numbers.n_cols; ++j)
        for (std::size_t i = 0; i < numbers.n_rows; ++i)
          numbers.at(i, j) += attention::rounding_error(precision_, numbers.at(i, j)) * noise.symmetric(i, j);
      all.emplace_back(std::move(numbers));
    }
    return all;
  }

  Matrices differences(LazyStages& stages, Stage stage, const Matrices& right) const {
    Matrices all;
    const std::size_t n = stages.n_matrices(stage);
    for (std::size_t m = 0; m < right.size(); ++m) {
      all.push_back(arma::mat(stages.matrix(stage, m / n, m % n)) - right[m]);
      all.back().replace(arma::datum::nan, 0);  // −∞ in both
    }
    return all;
  }

  void judge(const ObservedStage& given) {
    drawn_ = {};
    Matrices& right = drawn_.right;
    const std::size_t n = right_.n_matrices(given.stage);
    for (std::size_t m = 0; m < given.matrices.size(); ++m)
      right.push_back(right_.matrix(given.stage, m / n, m % n));
    for (auto& draw : draws_) drawn_.of_draws.push_back(differences(*draw->stages, given.stage, right));
    if (sums_) drawn_.of_sums = differences(*sums_->stages, given.stage, right);
    for (std::size_t m = drawn_.of_sums.size(); m < right.size(); ++m)
      drawn_.of_sums.emplace_back(arma::size(right[m]), arma::fill::zeros);
    Matrices of_given;
    for (std::size_t m = 0; m < right.size(); ++m)
      of_given.push_back(arma::mat(given.matrices[m]) - right[m]);

    const auto [found, noise, limit, is_exceeded, medians] = drawn_.judge(of_given);
    if (found.rows.empty()) return;
    for (const DrawnNoise::Row& row : found.rows)
      if (row.size > 0) verdict_.row = std::max(verdict_.row, std::sqrt(limit * row.noise / row.size));
    if (is_exceeded) {
      report(given.stage,
             fmt::format("row {}{} is further off than rounding to {} explains: {} times its noise, the "
                         "median row {} times",
                         found.worst.row, n > 1 ? fmt::format(" of head {}", found.worst.nth % n) : "",
                         attention::name_of(precision_), graph::digits(std::sqrt(found.worst.mean_square), 3),
                         graph::digits(std::sqrt(std::max(found.median, least_of_rows)), 3)));
    }
    judge_heads(given.stage, of_given, noise, found.median, medians);
    judge_scores(given.stage, right, of_given, noise, found.median, medians);
  }

  void judge_heads(Stage stage, const Matrices& of_given, const Matrices& noise, double median,
                   const std::vector<double>& medians) {
    const bool is_shared = stage == Stage::output || stage == Stage::concatenated;
    if (!is_shared || !right_.find(Stage::contexts) || model_.n_heads == 1) return;
    for (std::size_t h = 0; h < model_.n_heads; ++h) {
      Matrices part;
      for (std::size_t s = 0; s < noise.size(); ++s) {
        part.push_back(part_of_head(model_, stage, right_, s, h));
        if (arma::size(part[s]) != arma::size(noise[s])) return;
      }
      verdict_.head = std::max(verdict_.head, judge_direction(stage, fmt::format("head {} is", h), part,
                                                              of_given, noise, median, medians));
    }
  }

  void judge_scores(Stage stage, const Matrices& right, const Matrices& of_given, const Matrices& noise,
                    double median, const std::vector<double>& medians) {
    if (!with_larger_scores_.editing.find(Stage::scaled_scores)) return;
    Matrices direction = differences(*with_larger_scores_.stages, stage, right);
    for (arma::mat& matrix : direction) matrix /= small_factor;
    judge_direction(stage, "the scores are", direction, of_given, noise, median, medians);
  }

  /// Reports that something is off by a factor if the differences go in its direction, what the output would
  /// change by if it were twice as large; returns the largest part that would not be seen.
  double judge_direction(Stage stage, const std::string& what, const Matrices& direction,
                         const Matrices& of_given, const Matrices& noise, double median,
                         const std::vector<double>& medians) {
    const Share share = share_of(direction, of_given, noise, median);
    double limit = max_share;
    for (std::size_t k = 0; k < drawn_.of_draws.size(); ++k)
      limit = std::max(
          limit, beyond_draws * std::abs(share_of(direction, drawn_.of_draws[k], noise, medians[k]).errors));
    if (std::abs(share.errors) > limit)
      report(stage, fmt::format("{} off by about {} %, which rounding to {} does not explain", what,
                                graph::digits(100 * share.part, 2), attention::name_of(precision_)));
    return limit * share.error;
  }

  static Share share_of(const Matrices& parts, const Matrices& differences, const Matrices& noise,
                        double median) {
    double along = 0, size = 0;
    for (std::size_t s = 0; s < noise.size(); ++s)
      for (std::size_t k = 0; k < noise[s].n_elem; ++k) {
        if (noise[s][k] == 0 || !std::isfinite(differences[s][k])) continue;
        along += differences[s][k] * parts[s][k] / noise[s][k];
        size += parts[s][k] * parts[s][k] / noise[s][k];
      }
    if (size == 0) return {0, 0, 0};
    const double error = std::sqrt(std::max(median, least_of_shares) / size);
    return {along / size, along / size / error, error};
  }

  void report(Stage stage, const std::string& words) {
    if (verdict_.stage) return;
    verdict_.stage = stage;
    verdict_.words = graph::words_of(stage) + ": " + words;
  }

  const Model& model_;
  Precision precision_;
  EditedModel right_model_;
  LazyStages& right_;
  EditedModel with_larger_scores_;
  std::optional<EditedModel> sums_;  ///< a model that rounds partial sums, too
  std::vector<std::unique_ptr<Draw>> draws_;
  DrawnNoise drawn_;
  NoiseVerdict verdict_;
};

}  // namespace

NoiseVerdict judge_noise(const Model& model, const std::vector<ObservedStage>& stages, Precision precision,
                         const OtherRoundings& others) {
  return NoiseJudge(model, precision, others).judge(stages);
}

}  // namespace core::check
