#include "core/circuits/composition.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"

namespace core::circuits {
namespace {

using arma::mat;

/// Returns a weight that reads the residual stream through a norm, without the norm's scale.
mat reading(const mat& weight, const Norm64& norm) {
  mat result = weight;
  if (norm.is_empty()) return result;
  result.each_col() %= norm.factors.t();
  if (norm.is_centered) result.each_row() -= arma::rowvec(arma::mean(result, 0));
  return result;
}

/// The weights of one head, d_model × d_head, that of the output transposed; and their Gram matrices.
struct HeadWeights {
  mat query, key, value, output;
  mat queries, keys, values, outputs;
  double qk = 0, ov = 0;  ///< Frobenius norms of W_Q W_Kᵀ and W_V W_O
};

/// Returns ‖A B‖ where gram is AᵀA and outer is BBᵀ.
double norm_of(const mat& gram, const mat& outer) {
  return std::sqrt(arma::accu(gram % outer));
}

std::vector<HeadWeights> weights_of(const Float64Model& model, std::size_t index,
                                    const CallContext& context) {
  const Layer64 layer = model.read_attention(index, context);
  const std::size_t d = model.rules().sizes.d_head;
  const Norm64 norm = model.input_norm(layer);
  mat output = layer.output.weight;
  if (const Norm64& after = layer.attention_output_norm; !after.is_empty()) {
    if (after.is_centered) output.each_col() -= arma::vec(arma::mean(output, 1));
    output.each_row() %= after.factors;
  }
  std::vector<HeadWeights> heads(model.rules().sizes.n_heads);
  context.pool.run(heads.size(), [&](std::size_t h) {
    HeadWeights& head = heads[h];
    const std::size_t group = model.group_of(h) * d;
    head.query = reading(layer.queries.weight.cols(h * d, (h + 1) * d - 1), norm);
    head.key = reading(layer.keys.weight.cols(group, group + d - 1), norm);
    head.value = reading(layer.values.weight.cols(group, group + d - 1), norm);
    head.output = output.rows(h * d, (h + 1) * d - 1).t();
    head.queries = head.query.t() * head.query, head.keys = head.key.t() * head.key;
    head.values = head.value.t() * head.value, head.outputs = head.output.t() * head.output;
    head.qk = norm_of(head.queries, head.keys), head.ov = norm_of(head.values, head.outputs);
  });
  return heads;
}

}  // namespace

Composition composition(const Float64Model& model, const CallContext& context) {
  const std::size_t n_layers = model.rules().sizes.n_layers, n_heads = model.rules().sizes.n_heads;
  if (n_layers < 2)
    throw Error(
        model.model().description().path.string() +
        ": expected a model of at least 2 layers, as heads compose with those of later layers, got 1");
  const mat none(n_layers * n_heads, n_layers * n_heads, arma::fill::value(arma::datum::nan));
  Composition result{n_heads, none, none, none};
  for (std::size_t from = 0; from + 1 < n_layers; ++from) {
    const std::vector<HeadWeights> writers = weights_of(model, from, context);
    for (std::size_t to = from + 1; to < n_layers; ++to) {
      context.progress.add(1);
      const std::vector<HeadWeights> readers = weights_of(model, to, context);
      context.pool.run(n_heads * n_heads, [&](std::size_t pair) {
        const HeadWeights &writer = writers[pair / n_heads], &reader = readers[pair % n_heads];
        const std::size_t row = from * n_heads + pair / n_heads, column = to * n_heads + pair % n_heads;
        const auto share = [&](const mat& reads, const mat& outer, double size) {
          const mat core = writer.output.t() * reads;
          return std::sqrt(arma::accu((core.t() * writer.values * core) % outer)) / (writer.ov * size);
        };
        result.queries(row, column) = share(reader.query, reader.keys, reader.qk);
        result.keys(row, column) = share(reader.key, reader.queries, reader.qk);
        result.values(row, column) = share(reader.value, reader.outputs, reader.ov);
      });
    }
  }
  return result;
}

namespace {

/// Returns the number of tokens that both the tokenizer and the model have.
std::size_t n_tokens_of(const Float64Model& model) {
  return std::min(model.model().description().n_tokens, model.rules().sizes.n_vocabulary);
}

/// Returns the token embeddings of the vocabulary after a norm, n_tokens × d_model.
mat normalized_vocabulary(const Float64Model& model, const Norm64& norm, const CallContext& context) {
  const std::size_t n = n_tokens_of(model), at_once = std::min(n, model.rules().sizes.n_context);
  mat rows(n, model.rules().sizes.d_model);
  for (std::size_t first = 0; first < n; first += at_once) {
    std::vector<std::size_t> ids(std::min(at_once, n - first));
    std::iota(ids.begin(), ids.end(), first);
    rows.rows(first, first + ids.size() - 1) = norm.apply(model.embed(ids, context).front().rows);
  }
  return rows;
}

/// Returns the largest cells of left · right.
std::vector<TokenPair> largest_pairs(const mat& left, const mat& right, std::size_t n_pairs,
                                     const CallContext& context) {
  constexpr std::size_t rows_at_once = 256;
  const auto is_larger = [](const TokenPair& one, const TokenPair& other) {
    return std::tuple(-one.value, one.from, one.to) < std::tuple(-other.value, other.from, other.to);
  };
  std::vector<std::vector<TokenPair>> found((left.n_rows + rows_at_once - 1) / rows_at_once);
  context.pool.run(found.size(), [&](std::size_t block) {
    context.progress.add(1);
    const std::size_t first = block * rows_at_once,
                      last = std::min<std::size_t>(left.n_rows, first + rows_at_once);
    const mat cells = left.rows(first, last - 1) * right;
    std::vector<TokenPair>& best = found[block];
    double least = -arma::datum::inf;
    for (std::size_t j = 0; j < cells.n_cols; ++j)
      for (std::size_t i = 0; i < cells.n_rows; ++i) {
        if (cells.at(i, j) < least) continue;
        best.push_back({first + i, j, cells.at(i, j)});
        if (best.size() < 4 * n_pairs) continue;
        std::ranges::sort(best, is_larger);
        best.resize(n_pairs), least = best.back().value;
      }
  });
  std::vector<TokenPair> all;
  for (const auto& block : found) all.insert(all.end(), block.begin(), block.end());
  std::ranges::sort(all, is_larger);
  all.resize(std::min(n_pairs, all.size()));
  return all;
}

}  // namespace

HeadCircuits head_circuits(const Float64Model& model, std::size_t index, std::size_t head,
                           std::size_t n_pairs, const CallContext& context) {
  const auto& sizes = model.rules().sizes;
  const auto& of = model.model().description();
  if (index >= sizes.n_layers)
    throw Error(fmt::format("layer: expected a layer below {}, got {}", sizes.n_layers, index));
  if (head >= sizes.n_heads)
    throw Error(fmt::format("head: expected a head below {}, got {}", sizes.n_heads, head));
  if (!of.no_prediction_reason.empty()) throw Error(of.path.string() + ": " + of.no_prediction_reason);
  const Layer64 layer = model.read_attention(index, context);
  Norm64 norm = model.input_norm(layer),
         last = model.norm_of(model.model().weights().head(context)->final_norm);
  norm.bias.reset();
  const std::size_t d = sizes.d_head, group = model.group_of(head) * d;
  const mat vocabulary = normalized_vocabulary(model, norm, context);
  const auto columns = [&](const Affine64& of_all, std::size_t first) {
    return mat(vocabulary * of_all.weight.cols(first, first + d - 1));
  };
  std::vector<std::size_t> tokens(n_tokens_of(model));
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  mat output = layer.output.weight.rows(head * d, (head + 1) * d - 1);
  if (last.is_centered) output.each_col() -= arma::vec(arma::mean(output, 1));
  if (!last.is_empty()) output.each_row() %= last.factors;
  HeadCircuits result;
  result.qk = largest_pairs(columns(layer.queries, head * d),
                            columns(layer.keys, group).t() * model.scale(layer), n_pairs, context);
  result.ov = largest_pairs(columns(layer.values, group), output * model.unembeddings(tokens, context),
                            n_pairs, context);
  return result;
}

}  // namespace core::circuits
