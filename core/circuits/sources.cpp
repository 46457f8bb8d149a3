#include "core/circuits/sources.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/error.hpp"

namespace core::circuits {
namespace {

using arma::mat;
using arma::rowvec;

void require_below(const char* name, const char* what, std::size_t got, std::size_t n) {
  if (got >= n) throw Error(fmt::format("{}: expected {} below {}, got {}", name, what, n, got));
}

void require_cell(const Float64Model& model, std::size_t n_tokens, const ScoreCell& cell) {
  const auto& sizes = model.rules().sizes;
  require_below("layer", "a layer", cell.layer, sizes.n_layers);
  require_below("head", "a head", cell.head, sizes.n_heads);
  require_below("query", "a position", cell.query, n_tokens);
  require_below("key", "a position", cell.key, n_tokens);
  Layer64 layer;
  layer.index = cell.layer;
  const auto [begin, end] = model.visible_keys(layer, cell.query, n_tokens);
  if (cell.key < begin || cell.key >= end)
    throw Error(fmt::format("key: expected one that query {} attends to, from {} to {}, got {}", cell.query,
                            begin, end - 1, cell.key));
}

/// Collects the parts of the query and of the keys that it attends to while a pass goes through the layers.
class PartCollector {
 public:
  PartCollector(const Float64Model& model, const Layer64& layer, const ScoreCell& cell, std::size_t n_tokens)
      : model_(model),
        layer_(layer),
        cell_(cell),
        n_tokens_(n_tokens),
        visible_(model.visible_keys(layer, cell.query, n_tokens)),
        norm_(model.input_norm(layer)),
        query_(model.head_projection(layer, true, cell.head)),
        key_(model.head_projection(layer, false, model.group_of(cell.head))) {}

  /// Adds a part of the residual stream before the layer.
  void add(const std::string& name, const mat& rows) {
    // The scale of the norm is known only at the end; it divides each row as a whole.
    const arma::vec ones(rows.n_rows, arma::fill::ones);
    const mat normalized = norm_.apply_frozen(rows, ones);
    names_.push_back(name);
    queries_.push_back(normalized.row(cell_.query) * query_.affine.weight);
    keys_.push_back(normalized.rows(visible_.begin, visible_.end - 1) * key_.affine.weight);
  }

  /// Completes the parts; residual: the whole stream before the layer.
  void finish(const mat& residual, ScoreSources& result) {
    const arma::vec divisors = norm_.divisors(residual);
    const std::size_t n_keys = visible_.end - visible_.begin;
    if (!norm_.is_empty())
      for (std::size_t k = 0; k < names_.size(); ++k) {
        queries_[k] /= divisors[cell_.query];
        keys_[k].each_col() /= divisors.rows(visible_.begin, visible_.end - 1);
      }
    const mat query_bias = bias(query_.affine), key_bias = bias(key_.affine);
    if (!query_bias.empty() || !key_bias.empty()) {
      names_.emplace_back("bias");
      queries_.push_back(query_bias.empty() ? mat(arma::size(queries_[0]), arma::fill::zeros) : query_bias);
      keys_.push_back(key_bias.empty() ? mat(arma::size(keys_[0]), arma::fill::zeros)
                                       : arma::repmat(key_bias, n_keys, 1));
    }
    const mat input = norm_.apply(residual);
    end(queries_, query_, input.row(cell_.query), cell_.query);
    end(keys_, key_, input.rows(visible_.begin, visible_.end - 1), visible_.begin);
    const std::size_t n = names_.size(), key = cell_.key - visible_.begin;
    mat query_parts(n, queries_[0].n_cols), key_parts(n, queries_[0].n_cols), means(n, queries_[0].n_cols);
    for (std::size_t k = 0; k < n; ++k) {
      query_parts.row(k) = queries_[k];
      key_parts.row(k) = keys_[k].row(key);
      means.row(k) = arma::mean(keys_[k], 0);
    }
    result.parts = names_;
    result.pairs = query_parts * key_parts.t() * model_.scale(layer_);
    result.pairs_above_row_mean = result.pairs - query_parts * means.t() * model_.scale(layer_);
  }

 private:
  /// Returns what the biases of the norm and of a projection add to each row, or nothing.
  mat bias(const Affine64& affine) const {
    mat sum = affine.bias;
    if (!norm_.bias.empty())
      sum = affine.bias.empty() ? mat(norm_.bias * affine.weight)
                                : mat(norm_.bias * affine.weight + affine.bias);
    return sum;
  }
  /// Applies QK norm with the scales of the whole rows, and RoPE.
  void end(std::vector<mat>& parts, const Float64Model::HeadProjection& to, const mat& input,
           std::size_t first) const {
    const arma::vec divisors = to.norm.divisors(to.affine.apply(input));
    const std::size_t d = model_.rules().sizes.d_head;
    for (mat& part : parts) {
      part = to.norm.apply_frozen(part, divisors);
      part = model_.rotated(layer_, part.cols(to.first, to.first + d - 1), first, n_tokens_);
    }
  }

  const Float64Model& model_;
  const Layer64& layer_;
  ScoreCell cell_;
  std::size_t n_tokens_;
  transformer::VisibleKeys visible_;
  Norm64 norm_;
  Float64Model::HeadProjection query_, key_;
  std::vector<std::string> names_;
  std::vector<mat> queries_, keys_;
};

using AddPart = std::function<void(const std::string& name, const mat& rows)>;

/// Adds the parts that a layer writes, if norms come before the blocks.
void add_parts(const Float64Model& model, const Layer64& layer, const LayerPass& pass, const AddPart& add) {
  const std::string number = std::to_string(layer.index);
  for (std::size_t h = 0; h < model.rules().sizes.n_heads; ++h)
    add(fmt::format("head {}.{}", number, h), model.head_addition(layer, pass, h));
  if (const mat bias = model.attention_bias(layer, pass); !bias.empty()) add("output bias " + number, bias);
  add("MLP " + number, pass.mlp);
}

/// Adds the parts of a layer's output where its last norm comes after them.
void add_parts_since_norm(const Layer64& layer, const LayerPass& pass, const AddPart& add) {
  const Norm64& norm = layer.mlp_norm;
  const arma::vec divisors = norm.divisors(pass.middle + pass.mlp);
  add("layer below", norm.apply_frozen(pass.middle, divisors));
  add("MLP " + std::to_string(layer.index), norm.apply_frozen(pass.mlp, divisors));
  if (!norm.bias.empty()) add("norm bias", arma::repmat(norm.bias, pass.mlp.n_rows, 1));
}

/// Returns the residual stream after n_layers layers, and adds the parts that it is the sum of.
mat collect_parts(const Float64Model& model, const std::vector<std::size_t>& ids, std::size_t n_layers,
                  const CallContext& context, const AddPart& add, const VisitLayer& visit = {}) {
  const bool is_post_norm = model.rules().norm.place == transformer::NormPlace::after;
  if (!is_post_norm || n_layers == 0)
    for (const StreamSummand& part : model.embed(ids, context)) add(part.name, part.rows);
  const mat residual = run_forks(model, model.embedded(ids, context), nullptr, {}, 0, n_layers, context,
                                 [&](const Layer64& layer, const LayerPass& pass, const LayerPass* source) {
                                   if (!is_post_norm) add_parts(model, layer, pass, add);
                                   if (is_post_norm && layer.index + 1 == n_layers)
                                     add_parts_since_norm(layer, pass, add);
                                   if (visit) visit(layer, pass, source);
                                 })
                           .base;
  require_finite(residual, model.model());
  return residual;
}

/// The scores of a row for the keys that the query attends to, and its weights.
struct RowOfScores {
  double score, above_mean, weight;
};

RowOfScores row_of(const Float64Model& model, const Layer64& layer, const ScoreCell& cell,
                   const mat& residual) {
  const mat input = model.input_norm(layer).apply(residual);
  const mat queries = model.head_rows(layer, input, true, cell.head),
            keys = model.head_rows(layer, input, false, model.group_of(cell.head));
  const rowvec scaled = queries.row(cell.query) * keys.t() * model.scale(layer);
  const auto [begin, end] = model.visible_keys(layer, cell.query, keys.n_rows);
  rowvec biased = scaled;
  for (std::size_t j = begin; j < end; ++j) biased[j] += model.alibi_bias(cell.head, cell.query, j);
  return {biased[cell.key], biased[cell.key] - arma::mean(biased.cols(begin, end - 1)),
          model.softmax(layer, cell.head, cell.query, scaled)[cell.key]};
}

KeyReading most_read(const Float64Model& model, const Layer64& layer, const LayerPass& pass, std::size_t head,
                     std::size_t position) {
  const rowvec weights = model.weights_row(layer, pass, head, position);
  return {weights.index_max(), weights.max()};
}

/// Returns the sources before a layer, and the fork without each.
std::pair<std::vector<ScoreSource>, std::vector<Fork>> forks_before(const Float64Model& model,
                                                                    std::size_t layer,
                                                                    const std::vector<std::size_t>& ids,
                                                                    const CallContext& context) {
  std::vector<ScoreSource> sources;
  std::vector<Fork> forks;
  const auto add = [&](ScoreSource source, Fork fork) {
    sources.push_back(std::move(source));
    forks.push_back(std::move(fork));
  };
  for (const StreamSummand& part : model.embed(ids, context)) {
    if (part.name == "embedding bias") continue;
    mat rest(arma::size(part.rows), arma::fill::zeros);
    for (const StreamSummand& other : model.embed(ids, context, part.name)) rest += other.rows;
    add({.name = part.name}, {{}, std::move(rest)});
  }
  for (std::size_t l = 0; l < layer; ++l) {
    for (std::size_t h = 0; h < model.rules().sizes.n_heads; ++h)
      add({.name = fmt::format("head {}.{}", l, h), .head = std::pair(l, h)}, {{l, PatchedPart::head, h}});
    add({.name = "MLP " + std::to_string(l)}, {{l, PatchedPart::mlp}});
  }
  return {std::move(sources), std::move(forks)};
}

}  // namespace

ScoreSources sources_of(const Float64Model& model, const std::vector<std::size_t>& ids, const ScoreCell& cell,
                        const CallContext& context, Totals totals) {
  transformer::require_tokens(model.model().description(), ids);
  require_cell(model, ids.size(), cell);
  const Layer64 layer = model.read_attention(cell.layer, context);
  PartCollector collector(model, layer, cell, ids.size());
  ScoreSources result;
  std::vector<Fork> forks;
  std::tie(result.sources, forks) = forks_before(model, cell.layer, ids, context);
  const mat residual = collect_parts(
      model, ids, cell.layer, context,
      [&](const std::string& name, const mat& rows) { collector.add(name, rows); },
      [&](const Layer64& before, const LayerPass& pass, const LayerPass*) {
        for (ScoreSource& source : result.sources)
          if (source.head && source.head->first == before.index)
            source.read = most_read(model, before, pass, source.head->second, cell.key);
      });
  collector.finish(residual, result);
  const RowOfScores row = row_of(model, layer, cell, residual);
  result.score = row.score, result.above_row_mean = row.above_mean, result.weight = row.weight;
  result.softcap = model.rules().softcap;
  result.has_alibi = model.rules().alibi.has_value();
  const auto [begin, end] = model.visible_keys(layer, cell.query, ids.size());
  result.alibi = model.alibi_bias(cell.head, cell.query, cell.key);
  for (std::size_t j = begin; j < end; ++j)
    result.alibi_above_row_mean -=
        model.alibi_bias(cell.head, cell.query, j) / static_cast<double>(end - begin);
  result.alibi_above_row_mean += result.alibi;
  result.has_totals = totals == Totals::all;
  if (!result.has_totals) return result;
  const std::size_t at_once = forks_at_once(model.rules(), ids.size());
  const mat base = model.embedded(ids, context);
  for (std::size_t first = 0; first < forks.size(); first += at_once) {
    const auto from = forks.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<Fork> some(from,
                                 from + static_cast<std::ptrdiff_t>(std::min(at_once, forks.size() - first)));
    const ForkResult ends = run_forks(model, base, nullptr, some, 0, cell.layer, context);
    context.pool.run(some.size(), [&](std::size_t k) {
      const RowOfScores without = row_of(model, layer, cell, ends.forks[k]);
      result.sources[first + k].total = row.above_mean - without.above_mean;
      result.sources[first + k].weight_without = without.weight;
    });
  }
  return result;
}

namespace {

/// Returns parts of a row, by name, along a direction: a unit vector, or that of the row.
WrittenSum sum_along(const std::vector<std::string>& names, const mat& parts,
                     const std::optional<std::size_t>& column) {
  if (column) require_below("column", "a column", *column, parts.n_cols);
  const rowvec whole = arma::sum(parts, 0);
  WrittenSum result{.names = names};
  result.parts = column ? arma::vec(parts.col(*column)) : arma::vec(parts * whole.t() / arma::norm(whole));
  result.value = column ? whole[*column] : arma::norm(whole);
  return result;
}

}  // namespace

WrittenSum context_sources(const Float64Model& model, const std::vector<std::size_t>& ids,
                           const ScoreCell& cell, const std::optional<std::size_t>& column,
                           const CallContext& context) {
  transformer::require_tokens(model.model().description(), ids);
  require_below("layer", "a layer", cell.layer, model.rules().sizes.n_layers);
  require_below("head", "a head", cell.head, model.rules().sizes.n_heads);
  require_below("query", "a position", cell.query, ids.size());
  const mat residual =
      run_forks(model, model.embedded(ids, context), nullptr, {}, 0, cell.layer, context).base;
  require_finite(residual, model.model());
  const Layer64 layer = model.read_attention(cell.layer, context);
  const LayerPass pass = model.compute_heads(layer, residual);
  mat parts = pass.values[model.group_of(cell.head)];
  parts.each_col() %= model.weights_row(layer, pass, cell.head, cell.query).t();
  std::vector<std::string> names;
  for (std::size_t j = 0; j < ids.size(); ++j) names.push_back(std::to_string(j));
  return sum_along(names, parts, column);
}

WrittenSum stream_sources(const Float64Model& model, const std::vector<std::size_t>& ids, std::size_t layer,
                          std::size_t position, const std::optional<std::size_t>& column,
                          const CallContext& context) {
  transformer::require_tokens(model.model().description(), ids);
  require_below("layer", "a layer", layer, model.rules().sizes.n_layers + 1);
  require_below("query", "a position", position, ids.size());
  std::vector<std::string> names;
  mat parts(0, model.rules().sizes.d_model);
  collect_parts(model, ids, layer, context, [&](const std::string& name, const mat& rows) {
    names.push_back(name);
    parts.insert_rows(parts.n_rows, rows.row(position));
  });
  return sum_along(names, parts, column);
}

WrittenSum logit_sources(const Float64Model& model, const std::vector<std::size_t>& ids, std::size_t token,
                         const CallContext& context) {
  const auto& of = model.model().description();
  transformer::require_tokens(of, ids);
  if (!of.has_logit_attributions)
    throw Error(of.path.string() + ": its logits are not sums of what its parts write");
  const auto places = transformer::find_predicted_positions(model.model(), ids);
  if (places.all.empty()) throw Error(of.path.string() + ": " + places.no_prediction_reason);
  const std::size_t row = places.all.front().row, n_heads = model.rules().sizes.n_heads;
  const auto head = model.model().weights().head(context);
  const Norm64 norm = model.norm_of(head->final_norm);
  const arma::vec unembedding = model.unembeddings({token}, context) * model.rules().logit_factor;
  arma::vec direction = unembedding;  // without the norm's scale, which is that of the whole row
  if (!norm.is_empty()) direction %= norm.factors.t();
  if (norm.is_centered) direction -= arma::mean(direction);
  WrittenSum result;
  std::vector<double> parts;
  result.by_token.zeros(model.rules().sizes.n_layers * n_heads, ids.size());
  const mat last = collect_parts(
      model, ids, model.rules().sizes.n_layers, context,
      [&](const std::string& name, const mat& rows) {
        result.names.push_back(name);
        parts.push_back(arma::as_scalar(rows.row(row) * direction));
      },
      [&](const Layer64& layer, const LayerPass& pass, const LayerPass*) {
        const std::size_t d = model.rules().sizes.d_head;
        for (std::size_t h = 0; h < n_heads; ++h)
          result.by_token.row(layer.index * n_heads + h) =
              model.weights_row(layer, pass, h, row) %
              (pass.values[model.group_of(h)] * layer.output.weight.rows(h * d, (h + 1) * d - 1) * direction)
                  .t();
      });
  const double divisor = norm.is_empty() ? 1 : norm.divisors(last.row(row))[0];
  result.by_token /= divisor;
  for (double& part : parts) part /= divisor;
  double bias = token < head->bias.size() ? head->bias[token] * model.rules().logit_factor : 0.0;
  if (!norm.bias.empty()) bias += arma::as_scalar(norm.bias * unembedding);
  result.names.emplace_back("last bias");
  parts.push_back(bias);
  result.parts = arma::vec(parts);
  result.value = arma::as_scalar(model.logits(last.row(row), {token}, context));
  return result;
}

}  // namespace core::circuits
