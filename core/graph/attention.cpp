#include "core/graph/injected_bugs.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"

/// Construction of the graph.
namespace core::graph {
namespace {

using attention::DropoutPlace;
using attention::MaskMethod;
using enum Stage;

/// Returns scaled dot-product attention and what models have added since, without bugs.
Graph intended(const Model& m) {
  const attention::Additions& added = m.additions;
  const auto rotary = rotary_of(m);
  const std::size_t n_heads = m.n_heads, n_kv_heads = m.kv_heads();
  Graph g;
  g.nodes.reserve(max_stages / 2);
  g.precision = m.arithmetic.precision;
  for (std::size_t h = 0; h < n_heads; ++h) g.kv_head.push_back(m.kv_head_of(h));

  g.add(embeddings, Parameter(MatrixName::embeddings, m.has_embeddings()));
  if (m.has_key_embeddings()) g.add(key_embeddings, Parameter(MatrixName::key_embeddings, true));
  const Stage source = m.has_key_embeddings() ? key_embeddings : embeddings;
  const char* symbol = m.has_key_embeddings() ? "M" : "X";
  Stage x_q = embeddings, x_k = source, x_v = source;
  if (m.projections) {
    x_q = g.add(all_queries, Project(embeddings, "X", MatrixName::query_weight, MatrixName::query_bias, m));
    x_k = g.add(all_keys, Project(source, symbol, MatrixName::key_weight, MatrixName::key_bias, m));
    x_v = g.add(all_values, Project(source, symbol, MatrixName::value_weight, MatrixName::value_bias, m));
  }
  Stage q = g.add(queries, SplitHeads(x_q, n_heads, m.d_head()));
  Stage k = g.add(keys, SplitHeads(x_k, n_kv_heads, m.d_head()));
  const Stage v = g.add(values, SplitHeads(x_v, n_kv_heads, m.d_head()));
  if (!m.has_key_embeddings() && m.n_keys() != m.n_tokens())  // the embeddings do not determine other keys
    for (const Stage stage : {all_keys, all_values, keys, values})
      if (Node* node = g.find(stage)) node->operation.edit().known = false;

  if (added.normalize)
    q = g.add(normed_queries, Normalize(q, MatrixName::query_norm, *added.normalize, n_heads, m.d_head()));
  if (rotary) q = g.add(rotated_queries, Rotate(q, *rotary, position_of_query(m, 0)));
  if (added.normalize)
    k = g.add(normed_keys, Normalize(k, MatrixName::key_norm, *added.normalize, n_kv_heads, m.d_head()));
  if (rotary) k = g.add(rotated_keys, Rotate(k, *rotary, position_of_key(m, 0)));

  const bool uniform = m.scores == attention::ScoreRule::uniform;
  Stage s = uniform ? g.add(scores, UniformScores(q, k)) : g.add(scores, DotProducts(q, k));
  s = g.add(scaled_scores, ScaleScores(s, m));
  if (added.softcap) s = g.add(capped_scores, Softcap(s, *added.softcap));
  if (added.positions.relative)
    g.add(position_bias, RelativeBias(m));
  else if (added.positions.alibi)
    g.add(position_bias, AlibiBias(m));
  const auto by_position = added.positions.has_bias() ? std::optional(position_bias) : std::nullopt;
  if (added.has_bias()) s = g.add(biased_scores, AddBiases(s, by_position, m));

  const attention::Mask rules = bugs::effective_mask(m);
  g.add(mask, AttentionMask(m, rules));
  const MaskMethod method = m.mask.method;
  const bool masks_later = method == MaskMethod::zero_after_softmax || method == MaskMethod::renormalize;
  if (masks_later)
    g.add(masked_scores, DeferredMask(s, mask, rules));
  else if (method == MaskMethod::large_negative)
    g.add(masked_scores, MaskedFill(s, mask, rules.large_negative, rules));
  else
    g.add(masked_scores, MaskedFill(s, mask, -infinity, rules));
  g.add(masks_later ? unmasked_weights : weights, Softmax(masked_scores, m));
  if (method == MaskMethod::zero_after_softmax)
    g.add(weights, Multiply(unmasked_weights, mask, "0 if masked", "0 where masked, not renormalized"));
  if (method == MaskMethod::renormalize) {
    g.add(zeroed_weights, Multiply(unmasked_weights, mask, "× mask", "0 where masked"));
    g.add(row_sums, RowSum(zeroed_weights));
    g.add(weights, DivideByRowSum(zeroed_weights, row_sums));
  }
  if (m.mask.empty_rows == attention::EmptyRows::zeros) {
    const bool reads_mask = masks_later || !m.given.find(masked_scores);
    g.wrap(weights, ZeroEmptyRows(weights, masked_scores, reads_mask ? std::optional(mask) : std::nullopt));
  }

  if (SampleKeepMask::is_needed(m.dropout)) g.add(kept_weights, SampleKeepMask(m));
  g.add(dropout_mask, DropoutFactors(kept_weights, m));
  g.add(dropped_weights, Multiply(weights, dropout_mask, "× dropout mask", "weights × mask"));

  g.add(contexts, WeightedSum(dropped_weights, v));
  g.add(concatenated, CombineHeads(contexts, m));
  if (m.projections && m.projections->output)
    g.add(output, Project(concatenated, "", MatrixName::output_weight, MatrixName::output_bias, m));
  else
    g.add(output, Unprojected(concatenated));
  return g;
}

}  // namespace

void drop_scores(Graph& g, DropoutPlace place, bool drops) {
  if (place == DropoutPlace::scaled_scores)
    g.insert_before(
        g.find(masked_scores)->operation.get(),
        Multiply(scores, dropout_mask, drops ? "× drop, " : "", drops ? "scores × dropout mask, " : ""));
  else
    for (Softmax* softmax : g.all<Softmax>())
      g.insert_before(softmax, Multiply(masked_scores, dropout_mask, drops ? " of dropped" : "",
                                        drops ? " of scores × dropout mask" : ""));
  g.replace(g.get<Multiply>(dropped_weights),
            Copy(weights, drops ? "before" : "weights", drops ? "scores were dropped before" : "weights",
                 dropout_mask));
}

Graph attention(const Model& m) {
  Graph g = intended(m);
  for (Product* product : g.all<Product>()) {
    product->factors = m.arithmetic.product_inputs;
    if (m.arithmetic.sums_rounded) product->sums = m.arithmetic.precision;
  }
  if (m.dropout.place != DropoutPlace::weights) drop_scores(g, m.dropout.place, m.dropout.active());
  bugs::edit_graph(g, m);
  return g;
}

}  // namespace core::graph
