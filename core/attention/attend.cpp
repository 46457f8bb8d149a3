#include "core/attention/attend.hpp"

#include <limits>

#include "core/attention/dropout.hpp"
#include "core/attention/formulas.hpp"
#include "core/attention/stage_source.hpp"
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

/// From scaled scores to weights; stage gives each of them, or computes it.
void mask_and_normalise(const Mask& rule, const arma::mat& visible, const auto& stage, HeadTrace& head) {
  using enum Stage;
  const double fill = rule.method == MaskMethod::large_negative ? large_negative : -infinity;
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
    return softmax_rows(head.masked_scores);
  };
  const bool masks_after =
      rule.method == MaskMethod::zero_after_softmax || rule.method == MaskMethod::renormalise;
  head.masked_scores = stage(masked_scores, [&] {
    return masks_after ? *head.scaled_scores : masked(head.scaled_scores, visible, fill);
  });
  head.unmasked_weights = stage(unmasked_weights, [&] { return softmax_rows(head.masked_scores); });
  head.zeroed_weights = stage(zeroed_weights, [&] { return *head.unmasked_weights % visible; });
  head.row_sums = stage(row_sums, [&] { return arma::sum(*head.zeroed_weights, 1); });
  head.weights = stage(weights, [&] {
    return rule.empty_rows == EmptyRows::zeros ? with_empty_rows_zeroed(normalised(), visible) : normalised();
  });
}

}  // namespace

Trace attend(const Model& model, std::size_t sequence) {
  require(model, sequence);
  const StageSource source(model, sequence);
  Trace t;
  t.sequence = sequence;
  t.embeddings = *model.sequences[sequence].embeddings;
  t.mask = source.shows(Stage::mask) ? visible_cells(model) : arma::ones(model.n_tokens(), model.n_keys());

  const auto& p = model.projections;
  const auto projected = [&](Stage stage, Linear Projections::*part) -> arma::mat {
    if (!source.computes(stage)) return {};
    return p ? project(t.embeddings, (*p).*part) : *t.embeddings;
  };
  const arma::mat q = projected(Stage::queries, &Projections::query);
  const arma::mat k = projected(Stage::keys, &Projections::key);
  const arma::mat v = projected(Stage::values, &Projections::value);
  const std::vector<arma::mat> dropout_masks = drawn_dropout_masks(model, sequence);

  std::vector<arma::mat> merged;
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    const auto stage = [&](Stage s, const auto& formula) {
      return source(s, h, formula);
    };  // given, or computed
    HeadTrace& head = t.heads.emplace_back();
    head.queries = stage(Stage::queries, [&] { return band(q, h, model.n_heads); });
    head.keys = stage(Stage::keys, [&] { return band(k, h, model.n_heads); });
    head.values = stage(Stage::values, [&] { return band(v, h, model.n_heads); });
    head.scores = stage(Stage::scores, [&]() -> arma::mat {
      if (model.scores == ScoreRule::uniform) return arma::zeros(model.n_tokens(), model.n_keys());
      return scores(head.queries, head.keys);
    });
    head.scaled_scores = stage(Stage::scaled_scores, [&] { return *head.scores * scale_factor(model); });
    mask_and_normalise(model.mask, t.mask, stage, head);
    head.dropout_mask = stage(Stage::dropout_mask, [&] { return dropout_masks[h]; });
    head.dropped_weights = stage(Stage::dropped_weights, [&] { return *head.weights % *head.dropout_mask; });
    head.contexts = stage(Stage::contexts, [&] { return *head.dropped_weights * *head.values; });
    merged.push_back(model.is_off(h) ? arma::zeros(arma::size(*head.contexts)) : *head.contexts);
  }

  t.concatenated = source(Stage::concatenated, 0, [&] {
    return model.merge == MergeRule::concatenate ? concatenated(merged) : reshaped_without_transpose(merged);
  });
  t.output = source(Stage::output, 0,
                    [&] { return p && p->output ? project(t.concatenated, *p->output) : *t.concatenated; });
  return t;
}

}  // namespace core::attention
