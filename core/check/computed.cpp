#include "core/check/computed.hpp"

#include <cmath>
#include <memory>

#include "core/check/cut_products.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/formulas.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"

namespace core::check {
namespace {

using attention::HeadTrace;

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

const attention::Trace& Computed::trace(std::size_t sequence) const {
  const auto known = traces_.find(sequence);
  if (known != traces_.end()) return known->second;
  return traces_
      .emplace(sequence, sampler_         ? sampler_->trace(model_)
                         : cuts_products_ ? trace_with_cut_products(model_, sequence)
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
  const attention::Trace& t = trace(sequence);
  const arma::mat& own = attention::info(known.stage).matrix(t, head);
  return reading.layout.is_masked ? attention::masked(own, t.mask, -arma::datum::inf) : own;
}

std::vector<arma::mat> Computed::forms(const Reading& reading, std::size_t sequence, std::size_t head) const {
  std::vector<arma::mat> all{form(reading, sequence, head)};
  const attention::Trace& t = trace(sequence);
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

}  // namespace core::check
