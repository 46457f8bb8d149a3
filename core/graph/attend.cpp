#include "core/graph/attend.hpp"

#include "core/graph/graph.hpp"
#include "core/graph/validation.hpp"

namespace core::attention {

Trace attend(const Model& model, std::size_t sequence) {
  require(model, sequence);
  return attend_checked(model, sequence);
}

Trace attend_checked(const Model& model, std::size_t sequence) {
  const graph::Graph g = graph::attention(model);
  const graph::Evaluation stages = graph::evaluate(g, model, sequence);
  Trace t(model.n_heads);
  t.sequence = sequence;
  t.at(Stage::embeddings) = model.sequences[sequence].embeddings;
  t.at(Stage::key_embeddings) = model.sequences[sequence].key_embeddings;
  if (stages[Stage::mask].empty()) t.at(Stage::mask) = arma::ones(model.n_tokens(), model.n_keys());
  for (const graph::Node& node : g.nodes) {
    if (graph::is_internal(node.stage) || stages[node.stage].empty()) continue;
    for (std::size_t h = 0; h < (node.heads == graph::NodeHeads::shared ? 1 : model.n_heads); ++h)
      t.at(node.stage, h) = stages[node.stage][nth_matrix(g, node, h)];
  }
  return t;
}

}  // namespace core::attention
