#include "core/graph/editing.hpp"

#include <algorithm>
#include <array>

namespace core::graph {
Stage linear_stage(ProjectionName part) {
  constexpr std::array stages{all_queries, all_keys, all_values, Stage::output};
  return stages[static_cast<std::size_t>(part)];
}
Stage normed_stage(ProjectionName part) {
  return part == ProjectionName::query ? Stage::normed_queries : Stage::normed_keys;
}
Stage rotated_stage(ProjectionName part) {
  return part == ProjectionName::query ? Stage::rotated_queries : Stage::rotated_keys;
}

Editing::Editing(std::shared_ptr<const Model> model, Precision precision_of_numbers)
    : graph(attention(*model)), words(*model, precision_of_numbers), model_(std::move(model)) {}

Editing::Editing(Graph shown, const Model& model)
    : graph(std::move(shown)),
      words(model, Precision::float64),
      model_(std::shared_ptr<const Model>(), &model),
      is_shown_(true) {}

void Editing::rebuild(Model model) {
  model_ = std::make_shared<const Model>(std::move(model));
  graph = attention(*model_);
}

const Project* Editing::linear(ProjectionName part) const {
  return graph.get<Project>(linear_stage(part));
}
Project* Editing::linear(ProjectionName part) {
  return graph.get<Project>(linear_stage(part));
}

mat Editing::matrix_of(const Input& input) const {
  return input.numbers ? *input.numbers : *find_matrix(*model_, {std::get<MatrixName>(input.source)});
}

mat Editing::weight(ProjectionName part) const {
  const Project* own = linear(part);
  if (!own) return {};
  return own->is_transposed() ? mat(matrix_of(own->inputs[1]).t()) : matrix_of(own->inputs[1]);
}

bool Editing::has_own_weight(ProjectionName part) const {
  constexpr std::array weights{MatrixName::query_weight, MatrixName::key_weight, MatrixName::value_weight,
                               MatrixName::output_weight};
  const Project* own = linear(part);
  return own && !own->inputs[1].numbers &&
         own->inputs[1].source == Source(weights[static_cast<std::size_t>(part)]);
}

mat Editing::bias(ProjectionName part) const {
  const Project* own = linear(part);
  return own && own->has_bias() ? matrix_of(own->inputs[2]) : mat();
}

void Editing::set_weight(ProjectionName part, mat weight) {
  Project* own = linear(part);
  if (own) own->inputs[1].cells = ":j", own->inputs[1].numbers = std::move(weight);
}

void Editing::set_bias(ProjectionName part, mat bias) {
  Project* own = linear(part);
  if (!own) return;
  own->inputs.resize(2);
  if (bias.is_empty()) return;
  own->inputs.push_back({MatrixName::query_bias, "0j"});
  own->inputs.back().numbers = std::move(bias);
}

void Editing::change_norm(ProjectionName part, const std::function<void(NormVariant&)>& change_variant) {
  const Stage stage = normed_stage(part);
  if (const Normalize* own = get<Normalize>(stage); own && !dynamic_cast<const NormVariant*>(own)) {
    const MatrixName name = std::get<MatrixName>(own->inputs[1].source);
    graph.replace(own, NormVariant(*own, arma::rowvec(**find_matrix(*model_, {name}))));
  }
  change<NormVariant>(stage, change_variant);
}

void Editing::change_rotation(ProjectionName part,
                              const std::function<void(RotationVariant&)>& change_variant) {
  const Stage stage = rotated_stage(part);
  if (const Rotate* own = get<Rotate>(stage); own && !dynamic_cast<const RotationVariant*>(own)) {
    const std::size_t n_rows = part == ProjectionName::query ? model_->n_tokens() : model_->n_keys();
    graph.replace(own, RotationVariant(*own, model_->d_head(), n_rows));
  }
  change<RotationVariant>(stage, change_variant);
}

const Softmax* Editing::softmax() const {
  const Softmax* own = get<Softmax>(Stage::weights);
  return own ? own : get<Softmax>(Stage::unmasked_weights);
}

std::optional<RotationVariant> Editing::rotation(ProjectionName part) const {
  std::optional<RotationVariant> found;
  Editing copy = *this;
  copy.change_rotation(part, [&](RotationVariant& own) { found.emplace(own); });
  return found;
}

void Editing::change_softmax(const std::function<void(SoftmaxVariant&)>& change_variant) {
  for (const Stage stage : {Stage::weights, Stage::unmasked_weights}) {
    const Softmax* own = get<Softmax>(stage);
    if (!own) continue;
    if (!dynamic_cast<const SoftmaxVariant*>(own)) graph.replace(own, SoftmaxVariant(*own));
    change<SoftmaxVariant>(stage, change_variant);
  }
}

void Editing::change_mask(const std::function<void(attention::Mask&)>& change_rules) {
  change<AttentionMask>(Stage::mask, [&](AttentionMask& own) { change_rules(own.mask); });
}

void Editing::mask_also(
    std::function<bool(std::int64_t query, std::int64_t key, std::int64_t first)> condition) {
  if (const auto* own = get<AttentionMask>(Stage::mask); own && !dynamic_cast<const MaskVariant*>(own))
    graph.replace(own, MaskVariant(*own));
  change<MaskVariant>(Stage::mask, [&](MaskVariant& own) { own.also = std::move(condition); });
}

void Editing::compute(Stage stage, std::vector<Input> from, StageFunction::Function function) {
  Node* node = graph.find(stage);
  if (!node) return;
  node->operation = SharedOperation(StageFunction(std::move(from), std::move(function)));
  graph.sort();
}

void Editing::wrap(Stage stage, StageFunction::Function function, std::vector<Input> others,
                   const char* cells) {
  others.insert(others.begin(), {stage, cells});
  graph.wrap(stage, StageFunction(std::move(others), std::move(function)));
}

void Editing::map(Stage stage, std::function<double(double)> function) {
  wrap(stage, [function = std::move(function)](const OperationInputs& in) {
    mat y = in[0];
    y.transform(function);
    return y;
  });
}

void Editing::scale(Stage stage, double factor) {
  wrap(stage, [factor](const OperationInputs& in) { return mat(in[0] * factor); });
}

void Editing::leave_out(Stage stage) {
  if (is_shown_) return graph.bypass(stage);
  const Node* node = find(stage);
  if (node)
    compute(stage, {{node->operation->inputs[0].source}}, [](const OperationInputs& in) { return in[0]; });
}

void Editing::reorder_heads(Stage stage, std::vector<std::size_t> order) {
  wrap(stage, [](const OperationInputs& in) { return in[0]; });
  if (Node* node = graph.find(stage))
    node->operation.edit().inputs[0].heads =
        std::make_shared<const std::vector<std::size_t>>(std::move(order));
}

void Editing::report(Stage stage, NodeHeads heads, std::vector<Input> from,
                     StageFunction::Function function) {
  const Stage other = graph.next_internal();
  const bool has_key_rows = attention::info(stage).rows == attention::RowTokens::keys;
  graph.nodes.push_back(
      {other, heads, has_key_rows, SharedOperation(StageFunction(std::move(from), std::move(function)))});
  reported_.emplace_back(stage, other);
}

Stage Editing::reported(Stage stage) const {
  const auto found = std::ranges::find(reported_, stage, &std::pair<Stage, Stage>::first);
  return found == reported_.end() ? stage : found->second;
}

std::vector<Stage> Editing::score_steps() const {
  std::vector<Stage> steps;
  for (const Node& node : graph.nodes)
    if (std::ranges::find(score_step_stages, node.stage) != score_step_stages.end())
      steps.push_back(node.stage);
  return steps;
}

void Editing::order_scores(std::span<const Stage> steps) {
  const Stage last = score_steps().back();
  Stage before = Stage::scores;
  for (const Stage step : steps) {
    graph.find(step)->operation.edit().inputs[0].source = before;
    before = step;
  }
  for (Node& node : graph.nodes) {
    if (std::ranges::find(steps, node.stage) != steps.end()) continue;
    const auto& inputs = node.operation->inputs;
    if (std::ranges::find(inputs, Source(last), &Input::source) == inputs.end()) continue;
    for (Input& input : node.operation.edit().inputs)
      if (input.source == Source(last)) input.source = before;
  }
  has_reordered_scores_ = true;
  graph.sort();
}

}  // namespace core::graph
