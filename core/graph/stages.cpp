#include "core/graph/stages.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/base/find.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"

namespace core::attention {

bool StageInfo::present(const Model& model) const {
  return contains(existing_stages(model), stage);
}

StageSet existing_stages(const graph::Graph& graph, const Model& model) {
  const graph::NodeSet existing_nodes = graph::existing_nodes(graph, model);
  StageSet set;
  for (std::size_t k = 0; k < n_stages; ++k) set[k] = existing_nodes[k];
  return set;
}

StageSet existing_stages(const Model& model) {
  return existing_stages(graph::attention(model), model);
}

Stage input_stage(const graph::Graph& graph, Stage stage) {
  const graph::Node* node = graph.find(stage);
  do node = graph.find(*node->operation->inputs[0].stage());
  while (graph::is_internal(node->stage));
  return node->stage;
}

bool is_computed(const Model& model, Stage stage) {
  return contains(existing_stages(model), stage) && !model.given.find(stage);
}

std::string formula_of(const graph::Graph& graph, const Model& model, const StageInfo& stage, bool brief) {
  return model.given.find(stage.stage) ? "given" : graph::formula(graph, model, stage.stage, brief);
}

std::vector<const StageInfo*> givable_stages() {
  std::vector<const StageInfo*> list;
  for (const StageInfo& stage : stages())
    if (can_be_given(stage.stage)) list.push_back(&stage);
  return list;
}

const StageInfo* find_stage(std::string_view name) {
  return find_by(stages(), name, &StageInfo::name);
}

std::string fill_text(double fill) {
  if (std::isinf(fill)) return "−∞";
  static constexpr std::array digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const double power = std::round(std::log10(-fill));
  if (fill < 0 && power >= 1 && power < 10 && std::pow(10, power) == -fill)
    return std::string("−10") + digits[static_cast<std::size_t>(power)];
  char text[32];
  std::snprintf(text, sizeof text, "%g", fill);
  return text;
}

StageShape shape_of(const Model& model, Stage stage) {
  const StageInfo& row = info(stage);
  const std::size_t n_rows = row.rows == RowTokens::keys ? model.n_keys() : model.n_tokens();
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

std::string torch_shape(const Model& model, Stage stage) {
  const auto [n_rows, n_cols] = shape_of(model, stage);
  const std::size_t n = model.sequences.size();
  return n > 1 ? text::tuple_text({n, n_rows, n_cols}) : text::tuple_text({n_rows, n_cols});
}

const std::vector<std::string>& row_tokens(const StageInfo& stage, const Sequence& sequence) {
  return stage.rows == RowTokens::keys ? sequence.keys() : sequence.tokens;
}

double color_range_max(const Model& model, Stage stage) {
  const bool dropped = stage == Stage::dropout_mask || stage == Stage::dropped_weights;
  const GivenStage* given = dropped ? model.given.find(Stage::dropout_mask) : nullptr;
  if (given) return std::max(1.0, given->matrices.front()->max());  // the first head represents all
  return dropped && model.dropout.active() && model.dropout.rate < 1 ? dropout_scale(model.dropout) : 1;
}

}  // namespace core::attention
