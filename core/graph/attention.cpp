#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"

/// What attention computes, and what a model's departures change in it.
namespace core::graph {
namespace {

using attention::DropoutPlace;
using attention::HeadColumns;
using attention::MaskMethod;
using enum Stage;

/// Scaled dot-product attention and what models have added since, without departures.
Graph intended(const Model& m) {
  const attention::Additions& added = m.additions;
  const auto& rotary = added.positions.rotary;
  const std::size_t n_heads = m.n_heads, n_kv_heads = m.n_groups();
  Graph g;
  g.nodes.reserve(max_stages / 2);
  for (std::size_t h = 0; h < n_heads; ++h) g.kv_head.push_back(m.group_of(h));

  g.add(embeddings, Parameter(MatrixName::embeddings, m.has_embeddings()));
  if (m.has_memory()) g.add(key_embeddings, Parameter(MatrixName::key_embeddings, true));
  const Stage source = m.has_memory() ? key_embeddings : embeddings;
  const char* symbol = m.has_memory() ? "M" : "X";
  Stage x_q = embeddings, x_k = source, x_v = source;
  if (m.projections) {
    x_q = g.add(all_queries, Linear(embeddings, "X", MatrixName::query_weight, MatrixName::query_bias, m));
    x_k = g.add(all_keys, Linear(source, symbol, MatrixName::key_weight, MatrixName::key_bias, m));
    x_v = g.add(all_values, Linear(source, symbol, MatrixName::value_weight, MatrixName::value_bias, m));
  }
  Stage q = g.add(queries, SplitHeads(x_q, split_layout(m, queries), n_heads, m.d_head()));
  Stage k = g.add(keys, SplitHeads(x_k, split_layout(m, keys), n_kv_heads, m.d_head()));
  const Stage v = g.add(values, SplitHeads(x_v, split_layout(m, values), n_kv_heads, m.d_head()));
  if (!m.has_memory() && m.n_keys() != m.n_tokens())  // the embeddings say nothing of other keys
    for (const Stage stage : {all_keys, all_values, keys, values})
      if (Node* node = g.find(stage)) node->operation->known = false;

  if (added.normalise) q = g.add(normed_queries, Norm(q, MatrixName::query_norm, *added.normalise));
  if (rotary) q = g.add(rotated_queries, Rotate(q, *rotary, position_of_query(m, 0)));
  if (added.normalise) k = g.add(normed_keys, Norm(k, MatrixName::key_norm, *added.normalise));
  if (rotary) k = g.add(rotated_keys, Rotate(k, *rotary, position_of_key(m, 0)));

  const bool uniform = m.scores == attention::ScoreRule::uniform;
  Stage s = uniform ? g.add(scores, EqualScores(q, k)) : g.add(scores, DotProducts(q, k));
  s = g.add(scaled_scores, Scale(s, m));
  if (added.score_cap) s = g.add(capped_scores, Softcap(s, *added.score_cap));
  if (added.positions.relative)
    g.add(position_bias, RelativeBias(m));
  else if (added.positions.alibi)
    g.add(position_bias, Alibi(m));
  const auto by_position = added.positions.has_bias() ? std::optional(position_bias) : std::nullopt;
  if (added.has_bias()) s = g.add(biased_scores, AddBiases(s, by_position, m));

  g.add(mask, AttentionMask(m));
  const MaskMethod method = m.mask.method;
  const bool masks_later = method == MaskMethod::zero_after_softmax || method == MaskMethod::renormalise;
  if (masks_later)
    g.add(masked_scores, MaskedLater(s, mask, m));
  else if (method == MaskMethod::large_negative)
    g.add(masked_scores, MaskedFill(s, mask, m.departures.large_negative, m));
  else
    g.add(masked_scores, MaskedFill(s, mask, -infinity, m));
  g.add(masks_later ? unmasked_weights : weights, Softmax(masked_scores, m));
  if (method == MaskMethod::zero_after_softmax)
    g.add(weights, Multiply(unmasked_weights, mask, "0 if hidden", "0 where hidden, not renormalised"));
  if (method == MaskMethod::renormalise) {
    g.add(zeroed_weights, Multiply(unmasked_weights, mask, "× mask", "0 where hidden"));
    g.add(row_sums, RowSum(zeroed_weights));
    g.add(weights, DivideByRowSum(zeroed_weights, row_sums));
  }
  if (m.mask.empty_rows == attention::EmptyRows::zeros) {
    const bool reads_mask = masks_later || !m.given.find(masked_scores);
    g.wrap(weights, ZeroEmptyRows(weights, masked_scores, reads_mask ? std::optional(mask) : std::nullopt));
  }

  if (DrawKept::is_needed(m.dropout)) g.add(kept_weights, DrawKept(m));
  g.add(dropout_mask, DropoutFactors(kept_weights, m));
  g.add(dropped_weights, Multiply(weights, dropout_mask, "× mask", "weights × mask"));

  g.add(contexts, WeightedSum(dropped_weights, v));
  g.add(concatenated, CombineHeads(contexts, m));
  if (m.projections && m.projections->output)
    g.add(output, Linear(concatenated, "", MatrixName::output_weight, MatrixName::output_bias, m));
  else
    g.add(output, Unprojected(concatenated));
  return g;
}

void depart_in_rotation(Graph& g, const Model& m) {
  const attention::Misplaced& d = m.departures.misplaced;
  if (d.norm_after_rotation && g.find(rotated_queries) && g.find(normed_queries)) {
    g.move_before(rotated_queries, normed_queries);
    g.move_before(rotated_keys, normed_keys);
    for (Norm* norm : g.all<Norm>()) norm->is_after_rotation = true;
  }
  if (d.values_turned && g.find(rotated_keys)) {
    Rotate rotation(values, *m.additions.positions.rotary, position_of_key(m, 0));
    g.wrap(values, std::move(rotation));
  }
  for (Rotate* rotation : g.all<Rotate>())
    if (d.turned_backwards) {
      rotation->is_backwards = true;
      rotation->rotary.inverse_frequencies =
          mat(-arma::rowvec(positions::frequencies(rotation->rotary, m.d_head())));
    }
  if (auto* rotation = g.get<Rotate>(rotated_queries)) rotation->offset = d.query_offset;
  if (const auto* rotation = g.get<Rotate>(rotated_keys); rotation && d.queries_turned_alone)
    g.replace(rotation, Copy(rotation->inputs[0].source, "not turned", "not turned"));
}

void depart_in_scores(Graph& g, const Model& m) {
  const attention::Departures& d = m.departures;
  if (auto* products = g.get<DotProducts>(scores)) {
    products->is_swapped = d.scores_swapped;
    if (d.scores_swapped) std::swap(products->inputs[0].source, products->inputs[1].source);
    if (d.scores_prescaled) products->scaled_before = scale_factor(m);
  }
  if (d.misplaced.cap_before_scale) g.move_before(capped_scores, scaled_scores);
  if (d.misplaced.bias_before_scale) g.move_before(biased_scores, scaled_scores);
}

void depart_in_softmax(Graph& g, const Model& m) {
  const attention::Departures& d = m.departures;
  for (Softmax* softmax : g.all<Softmax>()) {
    softmax->precision = d.softmax_precision;
    if (d.softmax_over == attention::SoftmaxOver::queries)
      g.replace(softmax, SoftmaxOverQueries(*softmax));
    else if (d.blocks.rule != attention::BlockRule::whole)
      g.replace(softmax, SoftmaxInBlocks(*softmax, d.blocks));
  }
  if (d.dropout_place == DropoutPlace::weights) return;
  const bool drops = m.dropout.active();
  if (d.dropout_place == DropoutPlace::scaled_scores)
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

/// Makes a graph depart as the model says.
///
/// Two departures in one place: a view or a reshape without the transpose wins over interleaved columns, the
/// softmax over queries over one in blocks, and dropout falls on one place only. All others come to the sum
/// of their changes, whatever their order.
void depart(Graph& g, const Model& m) {
  const attention::Departures& d = m.departures;
  depart_in_rotation(g, m);
  depart_in_scores(g, m);
  depart_in_softmax(g, m);
  g.precision = d.precision;
  for (Product* product : g.all<Product>()) {
    product->factors = d.product_inputs;
    if (d.sums_rounded) product->sums = d.precision;
  }
}

}  // namespace

Graph attention(const Model& m) {
  Graph g = intended(m);
  if (!(m.departures == attention::Departures())) depart(g, m);
  return g;
}

}  // namespace core::graph
