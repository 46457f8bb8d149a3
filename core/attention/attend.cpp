#include "core/attention/attend.hpp"

#include <limits>
#include <utility>

#include "core/attention/dropout.hpp"
#include "core/attention/formulas.hpp"
#include "core/attention/rounding.hpp"
#include "core/attention/stage_source.hpp"
#include "core/error.hpp"

namespace core::attention {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void require(const Model& model, std::size_t sequence) {
  if (auto problem = check(model)) throw Error(problem->path + ": " + problem->message);
  if (sequence >= model.sequences.size())
    throw Error("sequence " + std::to_string(sequence) + ": there is no such sequence");
}

arma::mat softmax(const Departures& d, const HeadTrace& head) {
  const bool drops = d.dropout_place == DropoutPlace::masked_scores;
  const arma::mat scores = drops ? arma::mat(*head.masked_scores % *head.dropout_mask) : *head.masked_scores;
  return d.softmax_over == SoftmaxOver::keys ? softmax_rows(scores) : softmax_columns(scores);
}

/// From scaled scores to weights; stage gives each of them, or computes it.
void mask_and_normalise(const Model& model, const arma::mat& visible, const auto& stage, HeadTrace& head) {
  using enum Stage;
  const Mask& rule = model.mask;
  const Departures& d = model.departures;
  const double fill = rule.method == MaskMethod::large_negative ? d.large_negative : -infinity;
  const auto normalised = [&]() -> arma::mat {
    switch (rule.method) {
      case MaskMethod::zero_after_softmax:
        return *head.unmasked_weights % visible;
      case MaskMethod::renormalise:
        return renormalised(head.zeroed_weights, head.row_sums);
      case MaskMethod::negative_infinity:
      case MaskMethod::large_negative:
        break;
    }
    return softmax(d, head);
  };
  const bool masks_after =
      rule.method == MaskMethod::zero_after_softmax || rule.method == MaskMethod::renormalise;
  head.masked_scores = stage(masked_scores, [&] {
    const bool drops = d.dropout_place == DropoutPlace::scaled_scores;
    const arma::mat s = drops ? arma::mat(*head.scaled_scores % *head.dropout_mask) : *head.scaled_scores;
    return masks_after ? s : masked(s, visible, fill);
  });
  head.unmasked_weights = stage(unmasked_weights, [&] { return softmax(d, head); });
  head.zeroed_weights = stage(zeroed_weights, [&] { return *head.unmasked_weights % visible; });
  head.row_sums = stage(row_sums, [&] { return arma::sum(*head.zeroed_weights, 1); });
  head.weights = stage(weights, [&] {
    return rule.empty_rows == EmptyRows::zeros ? with_empty_rows_zeroed(normalised(), visible) : normalised();
  });
}

arma::mat scores_of(const Model& model, const HeadTrace& head) {
  if (model.scores == ScoreRule::uniform) return arma::zeros(model.n_tokens(), model.n_keys());
  return model.departures.scores_swapped ? scores(head.keys, head.queries) : scores(head.queries, head.keys);
}

arma::mat merged(const Model& model, const std::vector<arma::mat>& contexts) {
  if (model.merge == MergeRule::reshape_without_transpose) return reshaped_without_transpose(contexts);
  return model.departures.merge == HeadColumns::bands ? concatenated(contexts) : interleaved(contexts);
}

}  // namespace

Trace attend(const Model& model, std::size_t sequence) {
  require(model, sequence);
  const StageSource source(model, sequence);
  Trace t;
  t.sequence = sequence;
  t.embeddings = *model.sequences[sequence].embeddings;
  t.mask = source.shows(Stage::mask) ? visible_cells(model) : arma::ones(model.n_tokens(), model.n_keys());

  const auto round = [&](arma::mat m) { return rounded(model.departures.precision, std::move(m)); };
  const auto& p = model.projections;
  const auto projected = [&](Stage stage, Linear Projections::*part) -> arma::mat {
    if (!source.computes(stage)) return {};
    return round(p ? project(t.embeddings, (*p).*part) : *t.embeddings);
  };
  const arma::mat q = projected(Stage::queries, &Projections::query);
  const arma::mat k = projected(Stage::keys, &Projections::key);
  const arma::mat v = projected(Stage::values, &Projections::value);
  const std::vector<arma::mat> dropout_masks = drawn_dropout_masks(model, sequence);

  const auto columns = model.departures.split == HeadColumns::bands ? band : every_nth_column;

  std::vector<arma::mat> contexts;
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    const auto stage = [&](Stage s, const auto& formula) {  // given, or computed
      return source(s, h, [&] { return round(formula()); });
    };
    HeadTrace& head = t.heads.emplace_back();
    head.queries = stage(Stage::queries, [&] { return columns(q, h, model.n_heads); });
    head.keys = stage(Stage::keys, [&] { return columns(k, h, model.n_heads); });
    head.values = stage(Stage::values, [&] { return columns(v, h, model.n_heads); });
    head.scores = stage(Stage::scores, [&] { return scores_of(model, head); });
    head.scaled_scores = stage(Stage::scaled_scores, [&] { return *head.scores * scale_factor(model); });
    head.dropout_mask = source(Stage::dropout_mask, h, [&] { return dropout_masks[h]; });
    mask_and_normalise(model, t.mask, stage, head);
    head.dropped_weights = stage(Stage::dropped_weights, [&]() -> arma::mat {
      if (model.departures.dropout_place != DropoutPlace::weights) return head.weights;
      return *head.weights % *head.dropout_mask;
    });
    head.contexts = stage(Stage::contexts, [&] { return *head.dropped_weights * *head.values; });
    contexts.push_back(model.is_off(h) ? arma::zeros(arma::size(*head.contexts)) : *head.contexts);
  }

  t.concatenated = source(Stage::concatenated, 0, [&] { return merged(model, contexts); });
  t.output = source(Stage::output, 0, [&] {
    return p && p->output ? round(project(t.concatenated, *p->output)) : *t.concatenated;
  });
  return t;
}

}  // namespace core::attention
