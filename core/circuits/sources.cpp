#include "core/circuits/sources.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/error.hpp"

namespace core::circuits {
namespace {

using arma::mat;
using arma::rowvec;

void require_cell(const Float64Model& model, std::size_t n_tokens, const ScoreCell& cell) {
  const auto& sizes = model.rules().sizes;
  const std::tuple<const char*, const char*, std::size_t, std::size_t> limits[]{
      {"layer", "a layer", cell.layer, sizes.n_layers},
      {"head", "a head", cell.head, sizes.n_heads},
      {"query", "a position", cell.query, n_tokens},
      {"key", "a position", cell.key, n_tokens}};
  for (const auto& [name, what, got, n] : limits)
    if (got >= n) throw Error(fmt::format("{}: expected {} below {}, got {}", name, what, n, got));
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

/// Adds the parts that a layer writes, if norms come before the blocks.
void add_parts(const Float64Model& model, const Layer64& layer, const LayerPass& pass,
               PartCollector& collector) {
  const std::string number = std::to_string(layer.index);
  for (std::size_t h = 0; h < model.rules().sizes.n_heads; ++h)
    collector.add(fmt::format("head {}.{}", number, h), model.head_addition(layer, pass, h));
  if (const mat bias = model.attention_bias(layer, pass); !bias.empty())
    collector.add("output bias " + number, bias);
  collector.add("MLP " + number, pass.mlp);
}

/// Adds the parts of a layer's output where its last norm comes after them.
void add_parts_since_norm(const Layer64& layer, const LayerPass& pass, PartCollector& collector) {
  const Norm64& norm = layer.mlp_norm;
  const arma::vec divisors = norm.divisors(pass.middle + pass.mlp);
  collector.add("layer below", norm.apply_frozen(pass.middle, divisors));
  collector.add("MLP " + std::to_string(layer.index), norm.apply_frozen(pass.mlp, divisors));
  if (!norm.bias.empty()) collector.add("norm bias", arma::repmat(norm.bias, pass.mlp.n_rows, 1));
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
  const rowvec scores =
      pass.queries[head].row(position) * pass.keys[model.group_of(head)].t() * model.scale(layer);
  const rowvec weights = model.softmax(layer, head, position, scores);
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
  const bool is_post_norm = model.rules().norm.place == transformer::NormPlace::after;
  const Layer64 layer = model.read_attention(cell.layer, context);
  PartCollector collector(model, layer, cell, ids.size());
  mat base(ids.size(), model.rules().sizes.d_model, arma::fill::zeros);
  for (const StreamSummand& part : model.embed(ids, context)) {
    base += part.rows;
    if (!is_post_norm || cell.layer == 0) collector.add(part.name, part.rows);
  }
  ScoreSources result;
  std::vector<Fork> forks;
  std::tie(result.sources, forks) = forks_before(model, cell.layer, ids, context);
  const auto visit = [&](const Layer64& before, const LayerPass& pass, const LayerPass*) {
    if (!is_post_norm) add_parts(model, before, pass, collector);
    if (is_post_norm && before.index + 1 == cell.layer) add_parts_since_norm(before, pass, collector);
    for (ScoreSource& source : result.sources)
      if (source.head && source.head->first == before.index)
        source.read = most_read(model, before, pass, source.head->second, cell.key);
  };
  const mat residual = run_forks(model, base, nullptr, {}, 0, cell.layer, context, visit).base;
  require_finite(residual, model.model());
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

}  // namespace core::circuits
