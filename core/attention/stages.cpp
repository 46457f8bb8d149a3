#include "core/attention/stages.hpp"

#include <algorithm>
#include <array>

namespace core::attention {
namespace {

using F = std::string;

bool always(const Model&) {
  return true;
}
bool masks_after_softmax(const Model& m) {
  return m.mask.method == MaskMethod::renormalise || m.mask.method == MaskMethod::zero_after_softmax;
}
bool renormalises(const Model& m) {
  return m.mask.method == MaskMethod::renormalise;
}
bool hides(const Model& m) {
  return m.mask.causal || !m.mask.cells.empty();
}

F projected(const Model& m, const char* symbol, const std::optional<SharedMatrix>* bias) {
  if (!m.projections) return "X";
  const F s(symbol);
  return "X·W_" + s + (bias && *bias ? " + b_" + s : F());
}

F scale_formula(const Model& m, bool) {
  switch (m.scale.rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return "÷ √" + std::to_string(m.d_head());
    case ScaleRule::inverse_sqrt_d_model:
      return "÷ √" + std::to_string(m.d_model());
    case ScaleRule::factor:
      return "× factor";
    case ScaleRule::none:
      break;
  }
  return "not scaled";
}

F masked_formula(const Model& m, bool brief) {
  if (!hides(m)) return brief ? "all visible" : "every key is visible";
  if (masks_after_softmax(m)) return brief ? "later" : "masked after the softmax";
  const F fill = m.mask.method == MaskMethod::large_negative ? "−10⁹" : "−∞";
  if (!m.mask.cells.empty()) return fill + (brief ? " if hidden" : " where hidden");
  return fill + (brief ? " ahead" : " where key > query");
}

F weights_formula(const Model& m, bool brief) {
  if (renormalises(m)) return brief ? "÷ row sum" : "each row ÷ its sum";
  if (masks_after_softmax(m)) return brief ? "0 if hidden" : "0 where hidden, not renormalised";
  return brief ? "softmax" : "softmax of each row";
}

F dropout_formula(const Model& m, bool brief) {
  if (!m.dropout.training) return brief ? "off" : "off in evaluation";
  return m.dropout.rate > 0 ? "0 or 1/(1−p)" : "off";
}

F merge_formula(const Model& m, bool brief) {
  if (m.merge == MergeRule::reshape_without_transpose)
    return brief ? "no transpose" : "reshaped without the transpose";
  if (m.n_heads == 1) return "one head";
  if (brief) return F();
  return m.n_heads == 2 ? "heads 0, 1" : "heads 0 … " + std::to_string(m.n_heads - 1);
}

F output_formula(const Model& m, bool brief) {
  if (!m.projections || !m.projections->output) return brief ? "" : "no projection";
  return m.projections->output->bias ? "·W_o + b_o" : "·W_o";
}

const std::array table{
    StageInfo{Stage::embeddings, "embeddings", "Embeddings", "Embedding", false, Columns::features,
              Colouring::signed_values, 1, [](const Model&, bool) { return F("X"); }, always,
              [](const Trace& t, std::size_t) -> const StageMatrix& { return t.embeddings; }},
    StageInfo{Stage::queries, "queries", "Queries", "Query", true, Columns::features,
              Colouring::signed_values, 1,
              [](const Model& m, bool) {
                return projected(m, "q", m.projections ? &m.projections->query.bias : nullptr);
              },
              always, [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].queries; }},
    StageInfo{Stage::keys, "keys", "Keys", "Key", true, Columns::features, Colouring::signed_values, 1,
              [](const Model& m, bool) {
                return projected(m, "k", m.projections ? &m.projections->key.bias : nullptr);
              },
              always, [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].keys; }},
    StageInfo{Stage::values, "values", "Values", "Value", true, Columns::features, Colouring::signed_values,
              1,
              [](const Model& m, bool) {
                return projected(m, "v", m.projections ? &m.projections->value.bias : nullptr);
              },
              always, [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].values; }},
    StageInfo{Stage::scores, "scores", "Scores", "Score", true, Columns::tokens, Colouring::signed_values, 2,
              [](const Model& m, bool) { return F(m.scores == ScoreRule::uniform ? "all zero" : "QKᵀ"); },
              always, [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].scores; }},
    StageInfo{Stage::scaled_scores, "scaled_scores", "Scaled", "Scaled score", true, Columns::tokens,
              Colouring::signed_values, 2, scale_formula, always,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].scaled_scores; }},
    StageInfo{Stage::mask, "mask", "Mask", "Mask", false, Columns::tokens, Colouring::mask, 2,
              [](const Model& m, bool brief) {
                return F(!hides(m) ? "all 1" : brief ? "1 visible" : "1 visible, 0 hidden");
              },
              always, [](const Trace& t, std::size_t) -> const StageMatrix& { return t.mask; }},
    StageInfo{Stage::masked_scores, "masked_scores", "Masked", "Masked score", true, Columns::tokens,
              Colouring::signed_values, 2, masked_formula, always,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].masked_scores; }},
    StageInfo{Stage::unmasked_weights, "unmasked_weights", "Unmasked weights", "Unmasked weight", true,
              Columns::tokens, Colouring::weights, 3,
              [](const Model&, bool brief) { return F(brief ? "softmax" : "softmax of each row"); },
              masks_after_softmax,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].unmasked_weights; }},
    StageInfo{Stage::zeroed_weights, "zeroed_weights", "Zeroed weights", "Zeroed weight", true,
              Columns::tokens, Colouring::weights, 3,
              [](const Model&, bool brief) { return F(brief ? "× mask" : "0 where hidden"); }, renormalises,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].zeroed_weights; }},
    StageInfo{Stage::row_sums, "row_sums", "Row sums", "Row sum", true, Columns::single, Colouring::weights,
              3, [](const Model&, bool) { return F("Σ"); }, renormalises,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].row_sums; }},
    StageInfo{Stage::weights, "weights", "Weights", "Weight", true, Columns::tokens, Colouring::weights, 3,
              weights_formula, always,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].weights; }},
    StageInfo{Stage::dropout_mask, "dropout_mask", "Dropout mask", "Dropout factor", true, Columns::tokens,
              Colouring::mask, 3, dropout_formula, always,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].dropout_mask; }},
    StageInfo{Stage::dropped_weights, "dropped_weights", "Dropped", "Dropped weight", true, Columns::tokens,
              Colouring::weights, 3,
              [](const Model&, bool brief) { return F(brief ? "× mask" : "weights × mask"); }, always,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].dropped_weights; }},
    StageInfo{Stage::contexts, "contexts", "Contexts", "Context", true, Columns::features,
              Colouring::signed_values, 4, [](const Model&, bool) { return F("weights·V"); }, always,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].contexts; }},
    StageInfo{Stage::concatenated, "concatenated", "Concatenated", "Concatenated", false, Columns::features,
              Colouring::signed_values, 4, merge_formula, always,
              [](const Trace& t, std::size_t) -> const StageMatrix& { return t.concatenated; }},
    StageInfo{Stage::output, "output", "Output", "Output", false, Columns::features, Colouring::signed_values,
              4, output_formula, always,
              [](const Trace& t, std::size_t) -> const StageMatrix& { return t.output; }},
};

}  // namespace

std::span<const StageInfo> stages() {
  return table;
}

const StageInfo& info(Stage stage) {
  return table[static_cast<std::size_t>(stage)];
}

const StageInfo* find_stage(std::string_view name) {
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const StageInfo& s) { return name == s.name; });
  return row == table.end() ? nullptr : &*row;
}

double top_of_range(const Model& model, Stage stage) {
  const bool dropped = stage == Stage::dropout_mask || stage == Stage::dropped_weights;
  return dropped && model.dropout.active() && model.dropout.rate < 1 ? survivor_factor(model.dropout) : 1;
}

}  // namespace core::attention
