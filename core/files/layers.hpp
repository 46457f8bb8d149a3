#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/config.hpp"
#include "core/files/families.hpp"
#include "core/files/namings.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"

/// Attention layers of a checkpoint: their location, features and values.
namespace core::formats::checkpoints {

/// Axis of the heads in a weight of three dimensions: [heads, d_in, d_head], or [d_in, heads, d_head]; of an
/// output projection [heads, d_head, d_out] in both.
enum class HeadAxis { none, first, inside };

/// Location of one projection in a file.
struct ProjectionSource {
  std::vector<std::string> weights;   ///< tensors to concatenate along d_out: one, or one for each head
  std::vector<std::string> biases;    ///< one for each weight, or none
  bool out_by_in = false;             ///< [out, in], as in torch.nn.Linear; otherwise [in, out] (x·W)
  std::size_t part = 0, n_parts = 1;  ///< of d_out: 0, 1, 2 of 3 for queries, keys, values
  std::size_t bias_part = 0, n_bias_parts = 1;    ///< the same for the bias
  FusedLayout fused = FusedLayout::concatenated;  ///< layout of the parts
  HeadAxis head_axis = HeadAxis::none;            ///< of a tensor of three dimensions
  friend bool operator==(const ProjectionSource&, const ProjectionSource&) = default;
};

/// Location of all projections of one attention.
struct ProjectionMapping {
  ProjectionSource query, key, value;
  std::optional<ProjectionSource> output;
  friend bool operator==(const ProjectionMapping&, const ProjectionMapping&) = default;
};

/// One attention found in a file.
struct Layer {
  std::string prefix;  ///< of its tensor names: "h.2.attn."
  const Naming* naming;
  ProjectionMapping mapping;
  std::size_t n_heads = 0;  ///< if the tensors reveal it, else 0
};

/// Returns every attention in a file with a known naming, also one with a module per head, ordered by the
/// numbers in the names; cross-attention comes last.
std::vector<Layer> find_layers(const TensorFile& file);

class FeatureMarks;

/// What a file of tensors holds, found once when it is opened.
struct Checkpoint {
  std::shared_ptr<const TensorFile> file = nullptr;
  std::optional<Json> config_json = {};  ///< config.json next to it, if there is one
  Config config = {};                    ///< the same, or empty
  std::vector<Layer> layers = {};
  std::shared_ptr<const FeatureMarks> features = nullptr;  ///< tensors whose names reveal features

  /// Returns the configuration read as that of a model type; of its own for "".
  Config config_as(const std::string& type_override) const;
};

/// Finds what a file holds, in time linear in the number of its tensors; its weights are composed.
///
/// Throws core::Error as compose_weights() does, or when config.json is damaged.
Checkpoint read_checkpoint(std::shared_ptr<const TensorFile> file);

/// Returns the layer that the user chose by its number, counted from 0, or by its prefix.
///
/// Throws core::Error, "PLACEexpected …", naming the available layers.
const Layer& choose_layer(std::span<const Layer> layers, const std::string& chosen, const std::string& place);

struct LayerAlibi {
  AlibiSlopes slopes = AlibiSlopes::bloom;
  double largest = 8;  ///< the last slope is 2^−largest
};

struct LayerBiasTable {
  std::string table;  ///< name of a tensor [buckets, heads]
  std::size_t max_distance = 128;
  bool bidirectional = true;
};

struct LayerHeadNorms {
  std::vector<std::string> query,
      key;                ///< tensors of the factors, to be concatenated: [d_head], or for all heads
  bool plus_one = false;  ///< whether factors are 1 + the tensor's numbers, as in Gemma
  double epsilon = 1e-6;
  attention::NormRule rule = attention::NormRule::rms;
  attention::NormScope over = attention::NormScope::head;
};

/// Returns a window of n_keys: the query's own and those before it; without a causal mask, half of them on
/// each side.
constexpr attention::MaskWindow window_of(std::size_t n_keys, bool causal) {
  if (causal) return {n_keys - 1, std::nullopt};
  return {n_keys / 2, n_keys / 2};
}

/// Returns the tensors of a layer's projections; the output only if has_output.
std::vector<std::string> projection_tensors(const ProjectionMapping& mapping, bool has_output = true);

/// Features of a layer's attention, known or assumed, before its tensors are read.
struct LayerRules {
  const Family* family = nullptr;  ///< or nullptr if unknown
  ProjectionMapping mapping;       ///< of the layer, with fused weights split as in this family
  std::string unknown_type;        ///< model_type, if it is of no known family, or ""
  bool causal = true;
  bool is_cross = false;                      ///< its keys and values come from another sequence
  bool norm_before = false;                   ///< whether its input has been normalized
  ConfigHeads heads;                          ///< from the configuration
  std::vector<std::string> known, assumed;    ///< a few words each: "causal, as GPT-2 is"
  std::vector<std::string> not_used;          ///< "sliding_window of config.json, which llama does not read"
  std::vector<const Feature*> not_supported;  ///< its unsupported or ignored features
  std::vector<std::string> unknown_tensors;   ///< that belong to it, if "tensors" is among these
  attention::MaskWindow window;
  std::optional<LayerRotary> rotary;
  std::optional<LayerAlibi> alibi;
  std::optional<LayerBiasTable> bias_table;
  std::optional<LayerHeadNorms> head_norms;
  std::optional<double> softcap;
  std::string sink;  ///< name of a tensor [heads], or ""

  /// Returns the names of the tensors that it needs in addition to the projections.
  std::vector<std::string> tensors() const;
  /// Returns the words for an unsupported feature: "rotary positions", or unknown tensors by name.
  std::string words_of(const Feature& feature) const;
};

/// Determines the features of a checkpoint layer from its configuration, or else from its tensor names.
///
/// A feature named in ignored is not computed even if it is supported. Throws core::Error, "FILE: TENSOR: …",
/// when the layout of a fused weight is unknown.
LayerRules infer_layer_rules(const Checkpoint& checkpoint, const Layer& layer, const Config& config,
                             std::span<const std::string> ignored = {});

/// Returns the scale of a layer's scores.
attention::Scale layer_scale(const LayerRules& rules, const Config& config, const Layer& layer,
                             std::size_t d_head);

/// Returns the scale for the values of a configuration; scaled: whether scores are divided by √d_head.
attention::Scale scale_from_config(const ConfigScale& specified, bool scaled, std::size_t layer,
                                   std::size_t d_head);

}  // namespace core::formats::checkpoints
