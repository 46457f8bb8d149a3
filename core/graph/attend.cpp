#include "core/graph/attend.hpp"

#include "core/graph/lazy_stages.hpp"
#include "core/graph/validation.hpp"

namespace core::attention {

Trace attend(const Model& model, std::size_t sequence) {
  require(model, sequence);
  return attend_checked(model, sequence);
}

Trace attend_checked(const Model& model, std::size_t sequence) {
  const graph::Graph g = graph::attention(model);
  const graph::NodeSet present = existing_nodes(g, model);
  graph::LazyStages stages(g, model);
  Trace t(model.n_heads);
  t.sequence = sequence;
  t.at(Stage::embeddings) = model.sequences[sequence].embeddings;
  t.at(Stage::key_embeddings) = model.sequences[sequence].key_embeddings;
  if (!present[graph::index(Stage::mask)]) t.at(Stage::mask) = arma::ones(model.n_tokens(), model.n_keys());
  for (const graph::Node& node : g.nodes) {
    if (graph::is_internal(node.stage) || !present[graph::index(node.stage)]) continue;
    for (std::size_t h = 0; h < (node.heads == graph::NodeHeads::shared ? 1 : model.n_heads); ++h)
      t.at(node.stage, h) = stages.matrix(node.stage, sequence, nth_matrix(g, node, h));
  }
  return t;
}

}  // namespace core::attention
