#include "core/model/run.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/model/blocks.hpp"
#include "core/model/finite.hpp"
#include "core/model/products.hpp"

namespace core::transformer {
namespace {

/// Normed where a norm stands before, else as it is.
arma::fmat before_block(const arma::fmat& x, const Affine& numbers, const Norm& norm) {
  return norm.place == NormPlace::before ? normed(x, numbers, norm.kind, norm.epsilon) : x;
}

arma::fmat after_block(arma::fmat x, const Affine& numbers, const Norm& norm) {
  return norm.place == NormPlace::after ? normed(x, numbers, norm.kind, norm.epsilon) : x;
}

void compute_heads(const Architecture& rules, const LayerWeights& weights, LayerRun& layer,
                   KeysAndValues before, ThreadPool& pool) {
  const std::size_t d = rules.sizes.d_head, d_queries = rules.sizes.n_heads * d,
                    d_keys = rules.sizes.n_groups * d;
  const arma::fmat all = projected(layer.attention_input, weights.queries_keys_values, pool);
  layer.queries = all.cols(0, d_queries - 1);
  arma::fmat keys = all.cols(d_queries, d_queries + d_keys - 1);
  if (!weights.query_norm.is_empty()) norm_heads(layer.queries, d, weights.query_norm, rules.norm);
  if (!weights.key_norm.is_empty()) norm_heads(keys, d, weights.key_norm, rules.norm);
  if (rules.rotary) {
    rotate(layer.queries, d, *rules.rotary, before.n);
    rotate(keys, d, *rules.rotary, before.n);
  }
  layer.keys = std::move(before);
  layer.keys.append(keys, all.cols(d_queries + d_keys, all.n_cols - 1));
}

arma::fmat attention_output(const Architecture& rules, std::size_t index, const LayerWeights& weights,
                            const LayerRun& layer, const Interventions& interventions, ThreadPool& pool) {
  if (const auto given = interventions.outputs.find(index); given != interventions.outputs.end())
    return given->second;
  if (const auto other = interventions.attentions.find(index); other != interventions.attentions.end())
    return other->second(layer.attention_input);
  const std::size_t d = rules.sizes.d_head;
  arma::fmat contexts = attended(layer.queries, layer.keys, rules.sizes, sight_of(rules, index), pool);
  for (const std::size_t head : heads_off_in(interventions.heads_off, index, rules.sizes.n_heads))
    contexts.cols(head * d, head * d + d - 1).zeros();
  return projected(contexts, weights.output, pool);
}

/// The layers from one on, appended to a run that has those before it.
void go_on(const Transformer& model, Pass& result, arma::fmat residual, const Interventions& interventions,
           const Means& means) {
  for (std::size_t l = result.layers.size(); l < model.architecture.sizes.n_layers; ++l) {
    means.progress.add(1);
    arma::fmat next;
    result.layers.push_back(run_layer(model, l, std::move(residual), {}, interventions, means, next));
    if (!result.first_not_finite && !next.is_finite()) result.first_not_finite = l;
    residual = std::move(next);
  }
  result.last = std::move(residual);
}

}  // namespace

std::vector<std::size_t> heads_off_in(const std::set<std::pair<std::size_t, std::size_t>>& heads_off,
                                      std::size_t layer, std::size_t n_heads) {
  std::vector<std::size_t> heads;
  const auto end = heads_off.lower_bound({layer, n_heads});
  for (auto off = heads_off.lower_bound({layer, 0}); off != end; ++off) heads.push_back(off->second);
  return heads;
}

std::shared_ptr<LayerRun> run_layer(const Transformer& model, std::size_t index, arma::fmat residual,
                                    KeysAndValues before, const Interventions& interventions,
                                    const Means& means, arma::fmat& next) {
  const Architecture& rules = model.architecture;
  const auto weights = model.weights->layer(index, means.progress);
  auto layer = std::make_shared<LayerRun>();
  layer->residual = std::move(residual);
  layer->attention_input = before_block(layer->residual, weights->attention_norm, rules.norm);
  compute_heads(rules, *weights, *layer, std::move(before), means.pool);
  layer->output = attention_output(rules, index, *weights, *layer, interventions, means.pool);
  next = layer->residual + layer->output;
  if (rules.mlp.parallel) {
    next +=
        mlp(before_block(layer->residual, weights->mlp_norm, rules.norm), *weights, rules.mlp, means.pool);
    return layer;
  }
  next = after_block(std::move(next), weights->attention_norm, rules.norm);
  next += mlp(before_block(next, weights->mlp_norm, rules.norm), *weights, rules.mlp, means.pool);
  next = after_block(std::move(next), weights->mlp_norm, rules.norm);
  return layer;
}

void require_tokens(const Transformer& model, const std::vector<std::size_t>& ids, std::size_t n_before) {
  const Sizes& sizes = model.architecture.sizes;
  if (ids.empty()) throw Error("the text has no tokens to run the model on");
  if (n_before + ids.size() > sizes.n_context)
    throw Error("expected at most " + std::to_string(sizes.n_context) +
                " tokens, as many as the model takes at once, got " + std::to_string(n_before + ids.size()));
  for (const std::size_t id : ids)
    if (id >= sizes.n_vocabulary)
      throw Error("expected tokens below " + std::to_string(sizes.n_vocabulary) + ", got " +
                  std::to_string(id));
}

arma::fmat embedded(const Transformer& model, const std::vector<std::size_t>& ids, std::size_t first,
                    const Token& progress) {
  arma::fmat embeddings = model.weights->embedded(ids, first, progress);
  const auto norm = model.weights->embedding_norm(progress);
  if (norm->is_empty()) return embeddings;
  return normed(embeddings, *norm, model.architecture.norm.kind, model.architecture.norm.epsilon);
}

Pass run(const Transformer& model, const std::vector<std::size_t>& ids, const Interventions& interventions,
         const Means& means) {
  require_tokens(model, ids, 0);
  Pass result;
  result.ids = ids;
  go_on(model, result, embedded(model, ids, 0, means.progress), interventions, means);
  return result;
}

Pass run_from(const Transformer& model, const Pass& before, std::size_t layer,
              const Interventions& interventions, const Means& means) {
  Pass result;
  result.ids = before.ids;
  result.layers.assign(before.layers.begin(), before.layers.begin() + static_cast<std::ptrdiff_t>(layer));
  if (before.first_not_finite && *before.first_not_finite < layer)
    result.first_not_finite = before.first_not_finite;
  go_on(model, result, layer < before.layers.size() ? before.layers[layer]->residual : before.last,
        interventions, means);
  return result;
}

Pass run_on(const Transformer& model, const Pass& before, const std::vector<std::size_t>& more,
            const Interventions& interventions, const Means& means) {
  require_tokens(model, more, before.ids.size());
  Pass result;
  result.ids = before.ids;
  result.ids.insert(result.ids.end(), more.begin(), more.end());
  result.first_not_finite = before.first_not_finite;
  arma::fmat residual = embedded(model, more, before.ids.size(), means.progress);
  for (std::size_t l = 0; l < before.layers.size(); ++l) {
    means.progress.add(1);
    const LayerRun& first = *before.layers[l];
    arma::fmat next;
    const auto layer = run_layer(model, l, std::move(residual), first.keys, interventions, means, next);
    layer->residual = arma::join_cols(first.residual, layer->residual);
    layer->attention_input = arma::join_cols(first.attention_input, layer->attention_input);
    layer->queries = arma::join_cols(first.queries, layer->queries);
    layer->output = arma::join_cols(first.output, layer->output);
    result.layers.push_back(layer);
    if (!result.first_not_finite && !next.is_finite()) result.first_not_finite = l;
    residual = std::move(next);
  }
  result.last = arma::join_cols(before.last, residual);
  return result;
}

arma::fmat before_prediction(const Transformer& model, const arma::fmat& last, const Means& means) {
  const auto head = model.weights->head(means.progress);
  const Norm& norm = model.architecture.norm;
  return head->final_norm.is_empty() ? last : normed(last, head->final_norm, norm.kind, norm.epsilon);
}

arma::fmat logits_of(const Transformer& model, const arma::fmat& last, const Means& means) {
  if (!model.weights->predicts())
    throw Error(model.path.string() +
                ": it has nothing that predicts tokens, which a checkpoint would have as " +
                family_named(model.architecture.family).names.of(Role::head_dense) + ".weight");
  const auto head = model.weights->head(means.progress);
  const Norm& norm = model.architecture.norm;
  arma::fmat x = before_prediction(model, last, means);
  if (!head->dense.is_empty()) {
    x = projected(x, head->dense, means.pool);
    const auto& own = family_named(model.architecture.family).head_activation;
    activate(x.memptr(), x.n_elem, own.value_or(model.architecture.mlp.activation));
    x = normed(x, head->norm, norm.kind, norm.epsilon);
  }
  const std::size_t n_vocabulary = model.architecture.sizes.n_vocabulary;
  arma::fmat logits(x.n_rows, n_vocabulary, arma::fill::none);
  model.weights->for_each_prediction_part(
      [&](std::size_t first, const arma::fmat& part) {
        if (first >= n_vocabulary) return;
        const std::size_t count = std::min<std::size_t>(part.n_cols, n_vocabulary - first);
        const arma::fmat made = product(x, part, means.pool);
        logits.cols(first, first + count - 1) = made.cols(0, count - 1);
      },
      means.progress);
  for (std::size_t k = 0; k < std::min<std::size_t>(head->bias.n_elem, n_vocabulary); ++k)
    logits.col(k) += head->bias[k];
  if (last.is_finite()) require_finite_scores(model, logits, means.progress);
  return logits;
}

arma::fmat weights_in(const Transformer& model, const Pass& run, std::size_t layer, std::size_t head) {
  const LayerRun& of = *run.layers[layer];
  return weights_of_head(of.queries, of.keys, model.architecture.sizes, sight_of(model.architecture, layer),
                         head)
      .t();
}

}  // namespace core::transformer
