#include "core/graph/stages.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/base/find.hpp"
#include "core/base/text.hpp"

namespace core::attention {
namespace {

using F = std::string;

template <StageMatrix Trace::*part>
const StageMatrix& of_all(const Trace& t, std::size_t) {
  return t.*part;
}

template <StageMatrix HeadTrace::*part>
const StageMatrix& of_head(const Trace& t, std::size_t head) {
  return t.heads[head].*part;
}
template <auto group, auto part>
const StageMatrix& of_head(const Trace& t, std::size_t head) {
  return t.heads[head].*group.*part;
}

const std::array table{
    StageInfo{Stage::embeddings, "embeddings", "Embeddings", "Embedding", false, Rows::queries,
              Columns::features, Coloring::signed_values, 1, of_all<&Trace::embeddings>},
    StageInfo{Stage::key_embeddings, "key_embeddings", "Encoder states", "Encoder state", false, Rows::keys,
              Columns::features, Coloring::signed_values, 1, of_all<&Trace::key_embeddings>},
    StageInfo{Stage::queries, "queries", "Queries", "Query", true, Rows::queries, Columns::features,
              Coloring::signed_values, 1, of_head<&HeadTrace::queries>},
    StageInfo{Stage::keys, "keys", "Keys", "Key", true, Rows::keys, Columns::features,
              Coloring::signed_values, 1, of_head<&HeadTrace::keys>},
    StageInfo{Stage::values, "values", "Values", "Value", true, Rows::keys, Columns::features,
              Coloring::signed_values, 1, of_head<&HeadTrace::values>},
    StageInfo{Stage::normed_queries, "normed_queries", "Normalized queries", "Normalized query", true,
              Rows::queries, Columns::features, Coloring::signed_values, 1,
              of_head<&HeadTrace::prepared, &Prepared::normed_queries>},
    StageInfo{Stage::normed_keys, "normed_keys", "Normalized keys", "Normalized key", true, Rows::keys,
              Columns::features, Coloring::signed_values, 1,
              of_head<&HeadTrace::prepared, &Prepared::normed_keys>},
    StageInfo{Stage::rotated_queries, "rotated_queries", "Rotated queries", "Rotated query", true,
              Rows::queries, Columns::features, Coloring::signed_values, 1,
              of_head<&HeadTrace::prepared, &Prepared::rotated_queries>},
    StageInfo{Stage::rotated_keys, "rotated_keys", "Rotated keys", "Rotated key", true, Rows::keys,
              Columns::features, Coloring::signed_values, 1,
              of_head<&HeadTrace::prepared, &Prepared::rotated_keys>},
    StageInfo{Stage::scores, "scores", "Scores", "Score", true, Rows::queries, Columns::tokens,
              Coloring::signed_values, 2, of_head<&HeadTrace::scores>},
    StageInfo{Stage::scaled_scores, "scaled_scores", "Scaled", "Scaled score", true, Rows::queries,
              Columns::tokens, Coloring::signed_values, 2, of_head<&HeadTrace::scaled_scores>},
    StageInfo{Stage::capped_scores, "capped_scores", "Soft-capped", "Soft-capped score", true, Rows::queries,
              Columns::tokens, Coloring::signed_values, 2,
              of_head<&HeadTrace::adjusted, &Adjusted::capped_scores>},
    StageInfo{Stage::position_bias, "position_bias", "Position bias", "Position bias", true, Rows::queries,
              Columns::tokens, Coloring::signed_values, 2,
              of_head<&HeadTrace::adjusted, &Adjusted::position_bias>},
    StageInfo{Stage::biased_scores, "biased_scores", "Biased", "Biased score", true, Rows::queries,
              Columns::tokens, Coloring::signed_values, 2,
              of_head<&HeadTrace::adjusted, &Adjusted::biased_scores>},
    StageInfo{Stage::mask, "mask", "Mask", "Mask", false, Rows::queries, Columns::tokens, Coloring::mask, 2,
              of_all<&Trace::mask>},
    StageInfo{Stage::masked_scores, "masked_scores", "Masked", "Masked score", true, Rows::queries,
              Columns::tokens, Coloring::signed_values, 2, of_head<&HeadTrace::masked_scores>},
    StageInfo{Stage::unmasked_weights, "unmasked_weights", "Unmasked weights", "Unmasked weight", true,
              Rows::queries, Columns::tokens, Coloring::weights, 3, of_head<&HeadTrace::unmasked_weights>},
    StageInfo{Stage::zeroed_weights, "zeroed_weights", "Zeroed weights", "Zeroed weight", true, Rows::queries,
              Columns::tokens, Coloring::weights, 3, of_head<&HeadTrace::zeroed_weights>},
    StageInfo{Stage::row_sums, "row_sums", "Row sums", "Row sum", true, Rows::queries, Columns::single,
              Coloring::weights, 3, of_head<&HeadTrace::row_sums>},
    StageInfo{Stage::weights, "weights", "Weights", "Weight", true, Rows::queries, Columns::tokens,
              Coloring::weights, 3, of_head<&HeadTrace::weights>},
    StageInfo{Stage::dropout_mask, "dropout_mask", "Dropout mask", "Dropout factor", true, Rows::queries,
              Columns::tokens, Coloring::mask, 3, of_head<&HeadTrace::dropout_mask>},
    StageInfo{Stage::dropped_weights, "dropped_weights", "Weights after dropout", "Weight after dropout",
              true, Rows::queries, Columns::tokens, Coloring::weights, 3,
              of_head<&HeadTrace::dropped_weights>},
    StageInfo{Stage::contexts, "contexts", "Context vectors", "Context vector", true, Rows::queries,
              Columns::features, Coloring::signed_values, 4, of_head<&HeadTrace::contexts>},
    StageInfo{Stage::concatenated, "concatenated", "Concatenated", "Concatenated", false, Rows::queries,
              Columns::features, Coloring::signed_values, 4, of_all<&Trace::concatenated>},
    StageInfo{Stage::output, "output", "Output", "Output", false, Rows::queries, Columns::features,
              Coloring::signed_values, 4, of_all<&Trace::output>},
};

}  // namespace

bool StageInfo::present(const Model& model) const {
  return contains(shown_stages(model), stage);
}

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

StageMatrix& matrix_of(Trace& trace, const StageInfo& stage, std::size_t head) {
  return const_cast<StageMatrix&>(stage.matrix(trace, head));  // the trace itself may be written to
}

const StageInfo* find_stage(std::string_view name) {
  return find_by(table, name, &StageInfo::name);
}

std::string fill_words(double fill) {
  if (std::isinf(fill)) return "−∞";
  static constexpr std::array digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const double power = std::round(std::log10(-fill));
  if (fill < 0 && power >= 1 && power < 10 && std::pow(10, power) == -fill)
    return F("−10") + digits[static_cast<std::size_t>(power)];
  char text[32];
  std::snprintf(text, sizeof text, "%g", fill);
  return text;
}

StageShape shape_of(const Model& model, Stage stage) {
  const StageInfo& row = info(stage);
  const std::size_t n_rows = row.rows == Rows::keys ? model.n_keys() : model.n_tokens();
  if (row.columns == Columns::tokens) return {n_rows, model.n_keys()};
  switch (stage) {
    case Stage::embeddings:
      return {n_rows, model.d_model()};
    case Stage::key_embeddings:
      return {n_rows, model.d_source()};
    case Stage::queries:
    case Stage::keys:
    case Stage::normed_queries:
    case Stage::normed_keys:
    case Stage::rotated_queries:
    case Stage::rotated_keys:
      return {n_rows, model.d_head()};
    case Stage::values:
    case Stage::contexts:
      return {n_rows, model.d_value()};
    case Stage::concatenated:
      return {n_rows, model.n_heads * model.d_value()};
    case Stage::output:
      return {n_rows, model.d_output()};
    default:
      return {n_rows, 1};
  }
}

std::string shape_words(const Model& model, Stage stage) {
  const auto [n_rows, n_cols] = shape_of(model, stage);
  const std::size_t n = model.sequences.size();
  return n > 1 ? text::tuple_text({n, n_rows, n_cols}) : text::tuple_text({n_rows, n_cols});
}

const std::vector<std::string>& row_tokens(const StageInfo& stage, const Sequence& sequence) {
  return stage.rows == Rows::keys ? sequence.keys() : sequence.tokens;
}

double top_of_range(const Model& model, Stage stage) {
  const bool dropped = stage == Stage::dropout_mask || stage == Stage::dropped_weights;
  const GivenStage* given = dropped ? model.given.find(Stage::dropout_mask) : nullptr;
  if (given) return std::max(1.0, given->matrices.front()->max());  // that of the first head stands for all
  return dropped && model.dropout.active() && model.dropout.rate < 1 ? dropout_scale(model.dropout) : 1;
}

}  // namespace core::attention
