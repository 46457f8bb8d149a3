#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/config.hpp"
#include "core/files/layers.hpp"
#include "core/graph/model.hpp"

namespace core::formats::checkpoints {

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
  std::string query, key;  ///< tensors [d_head]
  bool plus_one = false;   ///< whether factors are 1 + the tensor's numbers, as in Gemma
  double epsilon = 1e-6;
};

/// What the attention of a layer does, and what of that is only assumed, before its tensors are read.
struct LayerRules {
  const Family* family = nullptr;  ///< or nullptr when nothing tells it
  Mapping mapping;                 ///< of the layer, a fused weight cut as this family has it
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

}  // namespace core::formats::checkpoints
