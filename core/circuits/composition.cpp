#include "core/circuits/composition.hpp"

#include <cmath>

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

}  // namespace core::circuits
