#include "core/attention/attend.hpp"

#include <limits>

#include "core/attention/dropout.hpp"
#include "core/attention/formulas.hpp"
#include "core/attention/rounding.hpp"
#include "core/error.hpp"

namespace core::attention {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void require(const Model& model, std::size_t sequence) {
  if (auto problem = check(model)) throw Error(problem->path + ": " + problem->message);
  if (sequence >= model.sequences.size())
    throw Error("sequence " + std::to_string(sequence) + ": there is no such sequence");
}

/// What every stage of a model is rounded by; in float64 that is not at all.
auto rounding_of(const Model& model) {
  return [precision = model.departures.precision](arma::mat stage) {
    return rounded(precision, std::move(stage));
  };
}

arma::mat softmax(const Departures& d, const HeadTrace& head) {
  const arma::mat scores = d.dropout_place == DropoutPlace::masked_scores
                               ? arma::mat(*head.masked_scores % *head.dropout_mask)
                               : *head.masked_scores;
  return d.softmax_over == SoftmaxOver::keys ? softmax_rows(scores) : softmax_columns(scores);
}

void mask_and_normalise(const Model& model, const arma::mat& visible, HeadTrace& head) {
  const Departures& d = model.departures;
  const auto round = rounding_of(model);
  const arma::mat s = d.dropout_place == DropoutPlace::scaled_scores
                          ? arma::mat(*head.scaled_scores % *head.dropout_mask)
                          : *head.scaled_scores;
  switch (model.mask.method) {
    case MaskMethod::negative_infinity:
      head.masked_scores = round(masked(s, visible, -infinity));
      head.weights = round(softmax(d, head));
      break;
    case MaskMethod::large_negative:
      head.masked_scores = round(masked(s, visible, d.large_negative));
      head.weights = round(softmax(d, head));
      break;
    case MaskMethod::zero_after_softmax:
      head.masked_scores = round(s);
      head.unmasked_weights = round(softmax(d, head));
      head.weights = *head.unmasked_weights % visible;
      break;
    case MaskMethod::renormalise:
      head.masked_scores = round(s);
      head.unmasked_weights = round(softmax(d, head));
      head.zeroed_weights = *head.unmasked_weights % visible;
      head.row_sums = round(arma::sum(*head.zeroed_weights, 1));
      head.weights = round(renormalised(head.zeroed_weights, head.row_sums));
      break;
  }
  if (model.mask.empty_rows == EmptyRows::zeros) head.weights = with_empty_rows_zeroed(head.weights, visible);
}

arma::mat scores_of(const Model& model, const HeadTrace& head) {
  if (model.scores == ScoreRule::uniform) return arma::zeros(model.n_tokens(), model.n_tokens());
  return model.departures.scores_swapped ? scores(head.keys, head.queries) : scores(head.queries, head.keys);
}

arma::mat merged(const Model& model, const std::vector<arma::mat>& contexts) {
  if (model.merge == MergeRule::reshape_without_transpose) return reshaped_without_transpose(contexts);
  return model.departures.merge == HeadColumns::bands ? concatenated(contexts) : interleaved(contexts);
}

}  // namespace

Trace attend(const Model& model, std::size_t sequence) {
  require(model, sequence);
  Trace t;
  t.embeddings = *model.sequences[sequence].embeddings;
  t.mask = visible_cells(model);

  const auto round = rounding_of(model);
  const auto& p = model.projections;
  const arma::mat q = round(p ? project(t.embeddings, p->query) : *t.embeddings);
  const arma::mat k = round(p ? project(t.embeddings, p->key) : *t.embeddings);
  const arma::mat v = round(p ? project(t.embeddings, p->value) : *t.embeddings);
  const auto columns = model.departures.split == HeadColumns::bands ? band : every_nth_column;
  const std::vector<arma::mat> dropout_masks = drawn_dropout_masks(model, sequence);

  std::vector<arma::mat> contexts;
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    HeadTrace& head = t.heads.emplace_back();
    head.queries = columns(q, h, model.n_heads);
    head.keys = columns(k, h, model.n_heads);
    head.values = columns(v, h, model.n_heads);
    head.scores = round(scores_of(model, head));
    head.scaled_scores = round(*head.scores * scale_factor(model));
    head.dropout_mask = dropout_masks[h];
    mask_and_normalise(model, t.mask, head);
    head.dropped_weights = model.departures.dropout_place == DropoutPlace::weights
                               ? round(*head.weights % *head.dropout_mask)
                               : *head.weights;
    head.contexts = round(*head.dropped_weights * *head.values);
    contexts.push_back(head.contexts);
  }

  t.concatenated = merged(model, contexts);
  t.output = p && p->output ? round(project(t.concatenated, *p->output)) : *t.concatenated;
  return t;
}

}  // namespace core::attention
