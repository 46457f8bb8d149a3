#pragma once

#include <armadillo>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/config.hpp"
#include "core/files/families.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"

/// Attention in a checkpoint: where its layers are, what they do, and their numbers.
namespace core::formats::checkpoints {

/// Where the numbers of one projection are in a file.
struct Source {
  std::vector<std::string> weights;   ///< tensors side by side along d_out: one, or one for each head
  std::vector<std::string> biases;    ///< as many, or none
  bool out_by_in = false;             ///< rows are outputs, as torch.nn.Linear keeps them; else it is x·W
  std::size_t part = 0, n_parts = 1;  ///< of d_out: queries, keys, values are 0, 1, 2 of 3
  std::size_t bias_part = 0, n_bias_parts = 1;  ///< the same of the bias
  Fused fused = Fused::side_by_side;            ///< how the parts lie
  bool head_first = false;  ///< a tensor of three dimensions, of which the first counts heads
  friend bool operator==(const Source&, const Source&) = default;
};

/// Where all projections of one attention are.
struct Mapping {
  Source query, key, value;
  std::optional<Source> output;
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// One attention found in a file.
struct Layer {
  std::string prefix;  ///< of its tensors' names: "h.2.attn."
  const Naming* naming;
  Mapping mapping;
  std::size_t n_heads = 0;  ///< when the names tell it, else 0
};

/// Every attention in a file whose naming is known, or that is one class for each head, in the order of the
/// numbers in their names; cross-attention comes last.
std::vector<Layer> find_layers(std::span<const TensorInfo> tensors);

/// The layer that a person means by a number, counted from 0, or by its prefix.
///
/// Throws core::Error, "PLACEexpected …", naming what there is.
const Layer& choose_layer(std::span<const Layer> layers, const std::string& chosen, const std::string& place);

/// Throws core::Error, "FILE: TENSOR: …", when the weights of a file are quantized: whole numbers that mean
/// something with their scales alone, as GPTQ, AWQ and bitsandbytes keep them. configured is what config.json
/// calls it, or "".
void refuse_quantized(const TensorFile& file, const std::string& configured);

/// Rotary embeddings; the columns that are rotated are a fraction of a head's unless rotary tells their
/// number.
struct LayerRotary {
  positions::Rotary rotary;
  double fraction = 1;
};

struct LayerAlibi {
  Slopes slopes = Slopes::bloom;
  double largest = 8;  ///< the last slope is 2 to the minus this
};

struct LayerBiasTable {
  std::string table;  ///< a tensor [buckets, heads]
  std::size_t max_distance = 128;
  bool bidirectional = true;
};

struct LayerHeadNorms {
  std::vector<std::string> query,
      key;                ///< tensors of the factors, one after the other: [d_head], or of all heads
  bool plus_one = false;  ///< whether factors are 1 + the tensor's numbers, as in Gemma
  double epsilon = 1e-6;
  attention::NormRule rule = attention::NormRule::rms;
  attention::NormOver over = attention::NormOver::head;
};

/// A window of n_keys: the query's own and those before it; without a causal mask, half of them on each
/// side.
constexpr attention::MaskWindow window_of(std::size_t n_keys, bool causal) {
  if (causal) return {n_keys - 1, std::nullopt};
  return {n_keys / 2, n_keys / 2};
}

/// What the attention of a layer does, and what of that is only assumed, before its tensors are read.
struct LayerRules {
  const Family* family = nullptr;  ///< or nullptr when nothing tells it
  Mapping mapping;                 ///< of the layer, a fused weight cut as this family has it
  std::string unknown_type;        ///< model_type, where that is of no known family, or ""
  bool causal = true;
  bool is_cross = false;                      ///< its keys and values are of another sequence
  bool norm_before = false;                   ///< what enters it has gone through a norm
  ConfigHeads heads;                          ///< as far as the configuration tells them
  std::vector<std::string> known, assumed;    ///< a few words each: "causal, as GPT-2 is"
  std::vector<const Feature*> not_supported;  ///< what it does and this program does not
  attention::MaskWindow window;               ///< keys that a query attends to at most
  std::optional<LayerRotary> rotary;
  std::optional<LayerAlibi> alibi;
  std::optional<LayerBiasTable> bias_table;
  std::optional<LayerHeadNorms> head_norms;
  std::optional<double> softcap;
  std::string sink;  ///< a tensor [heads], or ""

  /// The tensors beside the projections that it needs.
  std::vector<std::string> tensors() const;
};

/// Finds out what a layer of a checkpoint does by its configuration, or else by the names of its tensors.
///
/// A feature whose name is among ignored is not computed even where it could be. Throws core::Error,
/// "PLACETENSOR: …", when a fused weight is laid out in a way that is not known.
LayerRules rules_of(std::span<const TensorInfo> tensors, const Layer& layer, const Config& config,
                    const std::string& place, std::span<const std::string> ignored = {});

/// The factor between scores and scaled scores of a layer.
attention::Scale scale_of(const LayerRules& rules, const Config& config, const Layer& layer,
                          std::size_t d_head);

/// The same by what a configuration says of scores, which are scaled or not.
attention::Scale scale_by(const ConfigScale& said, bool scaled, std::size_t layer, std::size_t d_head);

/// The attention of one layer as far as a checkpoint tells it.
struct Attention {
  attention::Projections projections;
  std::size_t n_heads = 1;
  std::optional<std::size_t> n_kv_heads;  ///< where heads share keys and values
  std::vector<std::string> notes;         ///< what a person must know to trust the numbers, a sentence each
};

/// How many heads there are; what is not said is told by the shapes of the weights.
struct HeadCount {
  std::size_t n = 1;
  std::optional<std::size_t> kv_heads = {}, width = {};  ///< heads of keys and values, columns of a head
};

/// How a weight for all of queries, keys and values is shared by them.
struct Share {
  std::size_t d_head, kv_heads;
};

/// The columns of queries (0), keys (1) or values (2) among those of a fused weight, which has d_head columns
/// for each of n_heads and twice for each of kv_heads; kv_heads divides n_heads.
arma::uvec fused_columns(std::size_t part, const Share& share, std::size_t n_heads, Fused fused);

/// Reads the projections that a mapping names, transposed and split so that each is used as x·W.
///
/// Keys and values may have fewer heads than queries (grouped queries); an output projection of other inputs
/// is left out, which is noted. Throws core::Error, "FILE: TENSOR: …", when shapes do not fit one another or
/// the number of heads.
Attention read_attention(const TensorFile& file, const Mapping& mapping, const HeadCount& heads,
                         const Token& progress);

/// The heads of a layer: as said, or by its names, or by the configuration. Throws core::Error, which says
/// how to say it, when nothing tells, and when the names tell another number than was said.
HeadCount heads_of(const TensorFile& file, const Layer& layer, const LayerRules& rules,
                   std::optional<std::size_t> said);

/// ALiBi's slopes for heads of that number and width.
positions::Alibi alibi_of(const LayerAlibi& alibi, std::size_t n_heads, std::size_t d_head);

/// Reads what a layer of heads of these numbers and that width adds to the paper's attention. Throws
/// core::Error, "FILE: …", when it does not fit them.
attention::Additions read_additions(const TensorFile& file, const LayerRules& rules, std::size_t n_heads,
                                    std::size_t kv_heads, std::size_t d_head, const Token& progress);

}  // namespace core::formats::checkpoints
