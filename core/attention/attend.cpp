#include "core/attention/attend.hpp"

#include <limits>

#include "core/attention/dropout.hpp"
#include "core/attention/formulas.hpp"
#include "core/error.hpp"

namespace core::attention {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double large_negative = -1e9;  // what implementations write that avoid -inf

void require(const Model& model, std::size_t sequence) {
  if (auto problem = check(model)) throw Error(problem->path + ": " + problem->message);
  if (sequence >= model.sequences.size())
    throw Error("sequence " + std::to_string(sequence) + ": there is no such sequence");
}

void mask_and_normalise(const Mask& rule, const arma::mat& visible, HeadTrace& head) {
  const arma::mat& s = head.scaled_scores;
  switch (rule.method) {
    case MaskMethod::negative_infinity:
      head.masked_scores = masked(s, visible, -infinity);
      head.weights = softmax_rows(head.masked_scores);
      break;
    case MaskMethod::large_negative:
      head.masked_scores = masked(s, visible, large_negative);
      head.weights = softmax_rows(head.masked_scores);
      break;
    case MaskMethod::zero_after_softmax:
      head.masked_scores = s;
      head.unmasked_weights = softmax_rows(s);
      head.weights = *head.unmasked_weights % visible;
      break;
    case MaskMethod::renormalise:
      head.masked_scores = s;
      head.unmasked_weights = softmax_rows(s);
      head.zeroed_weights = *head.unmasked_weights % visible;
      head.row_sums = arma::sum(*head.zeroed_weights, 1);
      head.weights = renormalised(head.zeroed_weights, head.row_sums);
      break;
  }
  if (rule.empty_rows == EmptyRows::zeros) head.weights = with_empty_rows_zeroed(head.weights, visible);
}

}  // namespace

Trace attend(const Model& model, std::size_t sequence) {
  require(model, sequence);
  Trace t;
  t.embeddings = *model.sequences[sequence].embeddings;
  t.mask = visible_cells(model);

  const auto& p = model.projections;
  const arma::mat q = p ? project(t.embeddings, p->query) : *t.embeddings;
  const arma::mat k = p ? project(t.embeddings, p->key) : *t.embeddings;
  const arma::mat v = p ? project(t.embeddings, p->value) : *t.embeddings;
  const std::vector<arma::mat> dropout_masks = drawn_dropout_masks(model, sequence);

  std::vector<arma::mat> contexts;
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    HeadTrace& head = t.heads.emplace_back();
    head.queries = band(q, h, model.n_heads);
    head.keys = band(k, h, model.n_heads);
    head.values = band(v, h, model.n_heads);
    head.scores = model.scores == ScoreRule::uniform ? arma::zeros(model.n_tokens(), model.n_tokens())
                                                     : scores(head.queries, head.keys);
    head.scaled_scores = *head.scores * scale_factor(model);
    mask_and_normalise(model.mask, t.mask, head);
    head.dropout_mask = dropout_masks[h];
    head.dropped_weights = *head.weights % *head.dropout_mask;
    head.contexts = *head.dropped_weights * *head.values;
    contexts.push_back(head.contexts);
  }

  t.concatenated =
      model.merge == MergeRule::concatenate ? concatenated(contexts) : reshaped_without_transpose(contexts);
  t.output = p && p->output ? project(t.concatenated, *p->output) : *t.concatenated;
  return t;
}

}  // namespace core::attention
