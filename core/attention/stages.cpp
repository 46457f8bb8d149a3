#include "core/attention/stages.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/attention/shown_stages.hpp"

namespace core::attention {
namespace {

using F = std::string;

template <Stage stage>
bool shown(const Model& m) {
  return contains(shown_stages(m), stage);
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

F scores_formula(const Model& m, bool) {
  if (m.scores == ScoreRule::uniform) return "all zero";
  return m.departures.scores_swapped ? "KQᵀ" : "QKᵀ";
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
  const F fill = m.mask.method == MaskMethod::large_negative ? fill_words(m.departures.large_negative) : "−∞";
  const bool by_hand = !m.mask.cells.empty(),
             otherwise = m.departures.mask_diagonal != 0 || m.departures.mask_transposed;
  if (by_hand || otherwise) return fill + (brief ? " if hidden" : " where hidden");
  return fill + (brief ? " ahead" : " where key > query");
}

F softmax_formula(const Model& m, bool brief) {
  const bool by_columns = m.departures.softmax_over == SoftmaxOver::queries;
  if (brief) return by_columns ? "softmax, columns" : "softmax";
  return by_columns ? "softmax of each column" : "softmax of each row";
}

F weights_formula(const Model& m, bool brief) {
  if (renormalises(m)) return brief ? "÷ row sum" : "each row ÷ its sum";
  if (masks_after_softmax(m)) return brief ? "0 if hidden" : "0 where hidden, not renormalised";
  return softmax_formula(m, brief);
}

F dropout_formula(const Model& m, bool brief) {
  if (!m.dropout.training) return brief ? "off" : "off in evaluation";
  if (m.dropout.rate == 0) return "off";
  return m.dropout.rescale ? "0 or 1/(1−p)" : "0 or 1";
}

bool drops_scores(const Model& m) {
  return m.dropout.active() && m.departures.dropout_place != DropoutPlace::weights;
}

F dropped_formula(const Model& m, bool brief) {
  if (drops_scores(m)) return brief ? "before" : "scores were dropped before";
  return brief ? "× mask" : "weights × mask";
}

F merge_formula(const Model& m, bool brief) {
  if (m.merge == MergeRule::reshape_without_transpose)
    return brief ? "no transpose" : "reshaped without the transpose";
  if (!m.heads_off.empty())
    return std::to_string(m.n_heads - m.heads_off.size()) + (brief ? " on" : " heads on");
  if (m.n_heads == 1) return "one head";
  if (m.departures.merge == HeadColumns::interleaved) return "interleaved";
  if (brief) return F();
  return m.n_heads == 2 ? "heads 0, 1" : "heads 0 … " + std::to_string(m.n_heads - 1);
}

F output_formula(const Model& m, bool brief) {
  if (!m.projections || !m.projections->output) return brief ? "" : "no projection";
  return m.projections->output->bias ? "·W_o + b_o" : "·W_o";
}

const std::array table{
    StageInfo{Stage::embeddings, "embeddings", "Embeddings", "Embedding", false, Rows::queries,
              Columns::features, Colouring::signed_values, 1, [](const Model&, bool) { return F("X"); },
              shown<Stage::embeddings>,
              [](const Trace& t, std::size_t) -> const StageMatrix& { return t.embeddings; }},
    StageInfo{Stage::queries, "queries", "Queries", "Query", true, Rows::queries, Columns::features,
              Colouring::signed_values, 1,
              [](const Model& m, bool) {
                return projected(m, "q", m.projections ? &m.projections->query.bias : nullptr);
              },
              shown<Stage::queries>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].queries; }},
    StageInfo{Stage::keys, "keys", "Keys", "Key", true, Rows::keys, Columns::features,
              Colouring::signed_values, 1,
              [](const Model& m, bool) {
                return projected(m, "k", m.projections ? &m.projections->key.bias : nullptr);
              },
              shown<Stage::keys>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].keys; }},
    StageInfo{Stage::values, "values", "Values", "Value", true, Rows::keys, Columns::features,
              Colouring::signed_values, 1,
              [](const Model& m, bool) {
                return projected(m, "v", m.projections ? &m.projections->value.bias : nullptr);
              },
              shown<Stage::values>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].values; }},
    StageInfo{Stage::scores, "scores", "Scores", "Score", true, Rows::queries, Columns::tokens,
              Colouring::signed_values, 2, scores_formula, shown<Stage::scores>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].scores; }},
    StageInfo{Stage::scaled_scores, "scaled_scores", "Scaled", "Scaled score", true, Rows::queries,
              Columns::tokens, Colouring::signed_values, 2, scale_formula, shown<Stage::scaled_scores>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].scaled_scores; }},
    StageInfo{Stage::mask, "mask", "Mask", "Mask", false, Rows::queries, Columns::tokens, Colouring::mask, 2,
              [](const Model& m, bool brief) {
                return F(!hides(m) ? "all 1" : brief ? "1 visible" : "1 visible, 0 hidden");
              },
              shown<Stage::mask>, [](const Trace& t, std::size_t) -> const StageMatrix& { return t.mask; }},
    StageInfo{Stage::masked_scores, "masked_scores", "Masked", "Masked score", true, Rows::queries,
              Columns::tokens, Colouring::signed_values, 2, masked_formula, shown<Stage::masked_scores>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].masked_scores; }},
    StageInfo{
        Stage::unmasked_weights, "unmasked_weights", "Unmasked weights", "Unmasked weight", true,
        Rows::queries, Columns::tokens, Colouring::weights, 3, softmax_formula,
        shown<Stage::unmasked_weights>,
        [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].unmasked_weights; }},
    StageInfo{Stage::zeroed_weights, "zeroed_weights", "Zeroed weights", "Zeroed weight", true, Rows::queries,
              Columns::tokens, Colouring::weights, 3,
              [](const Model&, bool brief) { return F(brief ? "× mask" : "0 where hidden"); },
              shown<Stage::zeroed_weights>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].zeroed_weights; }},
    StageInfo{Stage::row_sums, "row_sums", "Row sums", "Row sum", true, Rows::queries, Columns::single,
              Colouring::weights, 3, [](const Model&, bool) { return F("Σ"); }, shown<Stage::row_sums>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].row_sums; }},
    StageInfo{Stage::weights, "weights", "Weights", "Weight", true, Rows::queries, Columns::tokens,
              Colouring::weights, 3, weights_formula, shown<Stage::weights>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].weights; }},
    StageInfo{Stage::dropout_mask, "dropout_mask", "Dropout mask", "Dropout factor", true, Rows::queries,
              Columns::tokens, Colouring::mask, 3, dropout_formula, shown<Stage::dropout_mask>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].dropout_mask; }},
    StageInfo{Stage::dropped_weights, "dropped_weights", "Dropped", "Dropped weight", true, Rows::queries,
              Columns::tokens, Colouring::weights, 3, dropped_formula, shown<Stage::dropped_weights>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].dropped_weights; }},
    StageInfo{Stage::contexts, "contexts", "Contexts", "Context", true, Rows::queries, Columns::features,
              Colouring::signed_values, 4, [](const Model&, bool) { return F("weights·V"); },
              shown<Stage::contexts>,
              [](const Trace& t, std::size_t h) -> const StageMatrix& { return t.heads[h].contexts; }},
    StageInfo{Stage::concatenated, "concatenated", "Concatenated", "Concatenated", false, Rows::queries,
              Columns::features, Colouring::signed_values, 4, merge_formula, shown<Stage::concatenated>,
              [](const Trace& t, std::size_t) -> const StageMatrix& { return t.concatenated; }},
    StageInfo{Stage::output, "output", "Output", "Output", false, Rows::queries, Columns::features,
              Colouring::signed_values, 4, output_formula, shown<Stage::output>,
              [](const Trace& t, std::size_t) -> const StageMatrix& { return t.output; }},
};

}  // namespace

std::span<const StageInfo> stages() {
  return table;
}

std::vector<const StageInfo*> givable_stages() {
  std::vector<const StageInfo*> list;
  for (const StageInfo& stage : table)
    if (can_be_given(stage.stage)) list.push_back(&stage);
  return list;
}

const StageInfo& info(Stage stage) {
  return table[static_cast<std::size_t>(stage)];
}

const StageInfo* find_stage(std::string_view name) {
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const StageInfo& s) { return name == s.name; });
  return row == table.end() ? nullptr : &*row;
}

std::string fill_words(double fill) {
  static constexpr std::array digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const double power = std::round(std::log10(-fill));
  if (fill < 0 && power >= 1 && power < 10 && std::pow(10, power) == -fill)
    return F("−10") + digits[static_cast<std::size_t>(power)];
  char text[32];
  std::snprintf(text, sizeof text, "%g", fill);
  return text;
}

std::string formula_of(const StageInfo& stage, const Model& model, bool brief) {
  return model.given.find(stage.stage) ? "given" : stage.formula(model, brief);
}

StageShape shape_of(const Model& model, Stage stage) {
  const StageInfo& row = info(stage);
  const std::size_t n_rows = row.rows == Rows::keys ? model.n_keys() : model.n_tokens();
  if (row.columns == Columns::tokens) return {n_rows, model.n_keys()};
  switch (stage) {
    case Stage::embeddings:
      return {n_rows, model.d_model()};
    case Stage::queries:
    case Stage::keys:
      return {n_rows, model.d_head()};
    case Stage::values:
    case Stage::contexts:
      return {n_rows, model.d_value()};
    case Stage::concatenated:
    case Stage::output:
      return {n_rows, model.n_heads * model.d_value()};
    default:
      return {n_rows, 1};
  }
}

const std::vector<std::string>& row_tokens(const StageInfo& stage, const Sequence& sequence) {
  return stage.rows == Rows::keys ? sequence.keys() : sequence.tokens;
}

double top_of_range(const Model& model, Stage stage) {
  const bool dropped = stage == Stage::dropout_mask || stage == Stage::dropped_weights;
  const GivenStage* given = dropped ? model.given.find(Stage::dropout_mask) : nullptr;
  if (given) return std::max(1.0, given->matrices.front()->max());  // that of the first head stands for all
  return dropped && model.dropout.active() && model.dropout.rate < 1 ? survivor_factor(model.dropout) : 1;
}

}  // namespace core::attention
