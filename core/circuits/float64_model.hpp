#pragma once

#include <armadillo>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/model/transformer.hpp"

/// Causes of the numbers of a whole model: its parts, what they write, and what changes without them.
namespace core::circuits {

using transformer::Architecture;
using transformer::CallContext;
using transformer::Patch;
using transformer::PatchedPart;
using transformer::Transformer;

/// LayerNorm or RMSNorm in float64; without factors the identity.
struct Norm64 {
  arma::rowvec factors, bias;  ///< bias is empty where there is none
  bool is_centered = false;
  double epsilon = 0;

  bool is_empty() const { return factors.empty(); }
  /// Returns what each row is divided by.
  arma::vec divisors(const arma::mat& x) const;
  /// Returns a part of rows after the norm, with the divisors of the whole rows and without bias. Linear in
  /// the part, so that parts of a sum are parts of its norm.
  arma::mat apply_frozen(const arma::mat& part, const arma::vec& divisors) const;
  arma::mat apply(const arma::mat& x) const;
  /// Returns the norm of `count` columns from `first` on.
  Norm64 columns(std::size_t first, std::size_t count) const;
};

/// x·weight + bias; the bias is empty where there is none.
struct Affine64 {
  arma::mat weight;
  arma::rowvec bias;

  bool is_empty() const { return weight.empty(); }
  arma::mat apply(const arma::mat& x) const;
  Affine64 columns(std::size_t first, std::size_t count) const;
};

struct Mlp64 {
  Affine64 up, down;
  std::optional<transformer::Xielu> xielu = {};
};

/// The numbers of a layer in float64.
struct Layer64 {
  std::size_t index = 0;
  Norm64 attention_norm, query_norm, key_norm, attention_output_norm, mlp_norm, mlp_output_norm;
  Affine64 queries, keys, values, output;
  Mlp64 mlp, shared;
  std::vector<Mlp64> experts;
  Affine64 router, shared_expert_gate;
  arma::rowvec router_correction;
};

/// A layer on a text, a token per row.
struct LayerPass {
  arma::mat residual;                            ///< before the layer
  std::vector<arma::mat> queries, keys, values;  ///< [head], [KV head]: after QK norm and RoPE
  arma::mat contexts;                            ///< n_tokens × n_heads · d_head
  arma::mat attention;                           ///< what attention adds to the residual stream
  arma::mat middle;                              ///< what the MLP's output is added to
  arma::mat mlp;                                 ///< what the MLP adds
  arma::mat next;                                ///< the residual stream after the layer
};

/// A part of the residual stream, n_tokens × d_model.
struct StreamSummand {
  std::string name;
  arma::mat rows;
};

/// A model in float64, computed from its stored numbers; layers are read when they are used.
class Float64Model {
 public:
  /// The model must outlive it.
  explicit Float64Model(const Transformer& model);
  const Transformer& model() const { return model_; }
  const Architecture& rules() const { return rules_; }

  Layer64 read_layer(std::size_t index, const CallContext& context) const;
  /// Returns a layer without its MLP.
  Layer64 read_attention(std::size_t index, const CallContext& context) const;
  /// Returns what the residual stream before the first layer is the sum of: "token", "position", "segment"
  /// and "embedding bias", those that the model has. The scale of the embedding norm is that of the sum.
  /// The part `without` counts as zero.
  std::vector<StreamSummand> embed(const std::vector<std::size_t>& ids, const CallContext& context,
                                   const std::string& without = {}) const;

  /// Returns their sum, n_tokens × d_model.
  arma::mat embedded(const std::vector<std::size_t>& ids, const CallContext& context) const;

  /// Computes a layer up to its context vectors, and the rest of it.
  LayerPass compute_heads(const Layer64& layer, const arma::mat& residual) const;
  void finish(const Layer64& layer, LayerPass& pass) const;
  LayerPass run_layer(const Layer64& layer, const arma::mat& residual) const;
  /// Returns a layer's pass over another text with the rows that those of `own` are aligned with, and its own
  /// rows elsewhere; queries and keys are rotated to their new positions.
  LayerPass aligned(const Layer64& layer, const LayerPass& other, const LayerPass& own,
                    const transformer::TokenAlignment& rows) const;
  /// Returns the residual stream after a layer in which a part is that of another pass, or writes nothing
  /// without one, as heads and MLPs can.
  arma::mat with_change(const Layer64& layer, const LayerPass& pass, const Patch& patch,
                        const LayerPass* source) const;
  /// Returns the residual stream after a layer that reads another stream, but whose attention adds the same.
  arma::mat with_frozen_attention(const Layer64& layer, const LayerPass& pass,
                                  const arma::mat& residual) const;

  /// Returns the norm before attention; the identity where there is none.
  Norm64 input_norm(const Layer64& layer) const;
  /// Returns what a head adds to the residual stream, n_tokens × d_model. Where attention has an output norm,
  /// its scale is that of the whole output.
  arma::mat head_addition(const Layer64& layer, const LayerPass& pass, std::size_t head) const;
  /// Returns what attention adds to it apart from the heads: biases, n_tokens × d_model, or empty.
  arma::mat attention_bias(const Layer64& layer, const LayerPass& pass) const;

  /// The projection to the queries or keys of one head, and the norm after it. With a QK norm over all heads
  /// it has the columns of all, and those of the head begin at `first`.
  struct HeadProjection {
    Affine64 affine;
    Norm64 norm;
    std::size_t first = 0;
  };
  HeadProjection head_projection(const Layer64& layer, bool is_query, std::size_t head) const;
  /// Rotates queries or keys of successive positions from `first` on in a text of n_tokens.
  arma::mat rotated(const Layer64& layer, const arma::mat& rows, std::size_t first,
                    std::size_t n_tokens) const;
  /// Returns queries (or keys, of a KV head) from the input of attention, after QK norm and RoPE.
  arma::mat head_rows(const Layer64& layer, const arma::mat& input, bool is_query, std::size_t head) const;
  std::size_t group_of(std::size_t head) const {
    return head / (rules_.sizes.n_heads / rules_.sizes.kv_heads);
  }

  /// Returns the factor between dot products and scaled scores.
  double scale(const Layer64& layer) const;
  /// Returns ALiBi's bias of a score, 0 in other models.
  double alibi_bias(std::size_t head, std::size_t query, std::size_t key) const;
  transformer::VisibleKeys visible_keys(const Layer64& layer, std::size_t query, std::size_t n_keys) const;
  /// Returns the weights of a query for all keys from its scaled scores, before soft-capping and ALiBi.
  arma::rowvec softmax(const Layer64& layer, std::size_t head, std::size_t query,
                       const arma::rowvec& scaled_scores) const;
  /// Returns the attention weights of a head, n_tokens × n_tokens.
  arma::mat weights(const Layer64& layer, std::size_t head, const arma::mat& queries,
                    const arma::mat& keys) const;
  /// Returns the weights of a row of a head's queries, n_tokens.
  arma::rowvec weights_row(const Layer64& layer, const LayerPass& pass, std::size_t head,
                           std::size_t row) const {
    return softmax(layer, head, row,
                   pass.queries[head].row(row) * pass.keys[group_of(head)].t() * scale(layer));
  }
  /// Returns the columns of the unembedding of some tokens, d_model × n.
  arma::mat unembeddings(const std::vector<std::size_t>& tokens, const CallContext& context) const;
  /// Returns the logits of some tokens after rows of the residual stream after the last layer.
  arma::mat logits(const arma::mat& last, const std::vector<std::size_t>& tokens,
                   const CallContext& context) const;
  Norm64 norm_of(const transformer::NormWeights& numbers) const;

 private:
  arma::mat normalized(const Layer64& layer, const arma::mat& rows, bool is_query) const;
  arma::mat mlp(const Layer64& layer, const LayerPass& pass) const;
  arma::mat run_mlp(const Mlp64& mlp, const arma::mat& x) const;
  void add_mlp(const Layer64& layer, LayerPass& pass) const;
  void add_attention(const Layer64& layer, LayerPass& pass) const;

  const Transformer& model_;
  const Architecture& rules_;
  const formats::checkpoints::Family& family_;
};

/// A change after which the rest of the model is recomputed: of a part of a layer, or of the residual stream
/// before the layer, where `start` is given. With a receiver, queries, keys or values of a head of a later
/// layer, only what reaches it counts: attention between is frozen, and so is all else of its layer.
struct Fork {
  Patch patch;
  arma::mat start = {};
  std::optional<Patch> receiver = {};
};

/// Residual streams after the same layer.
struct ForkResult {
  arma::mat base, source;
  std::vector<arma::mat> forks;
};
using VisitLayer = std::function<void(const Layer64&, const LayerPass& base, const LayerPass* source)>;

/// Runs a text through the layers from `first` to before n_layers, and from its layer on each fork, layer by
/// layer, so that each layer is read once. base, source: residual streams before the first of them, of the
/// text and of the one that changed parts are taken from; without a source they write nothing. rows: how the
/// text is aligned with the source, or empty for one by one.
///
/// visit is called with each layer, the base's pass and the source's, if any. on_step, after layers of forks,
/// with the number of them.
ForkResult run_forks(const Float64Model& model, arma::mat base, const arma::mat* source,
                     const std::vector<Fork>& forks, std::size_t first, std::size_t n_layers,
                     const CallContext& context, const VisitLayer& visit = {},
                     const std::function<void(std::size_t)>& on_step = {},
                     const transformer::TokenAlignment& rows = {});

/// Returns how many forks of a text run at once, within a fixed amount of memory.
std::size_t forks_at_once(const Architecture& rules, std::size_t n_tokens);

/// Throws core::Error, "MODEL: …", unless all numbers are finite.
void require_finite(const arma::mat& numbers, const Transformer& model);

}  // namespace core::circuits
