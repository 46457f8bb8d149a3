#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/base/positions.hpp"
#include "core/files/config.hpp"
#include "core/files/gguf.hpp"
#include "core/files/layers.hpp"

/// Whole models: from token IDs to the logits of the next token.
namespace core::transformer {

using formats::checkpoints::Activation;
using formats::checkpoints::Family;
using formats::checkpoints::Mlp;
using formats::checkpoints::ModelNorm;
using formats::checkpoints::NormKind;
using formats::checkpoints::NormPlace;
using formats::checkpoints::NormScope;
using formats::checkpoints::Sizes;
using formats::checkpoints::TensorRole;

/// The sizes and rules of a model: everything that its weights do not determine.
struct Architecture : formats::checkpoints::ConfigNumbers {
  std::string family;  ///< Family::full_model
  Sizes sizes;
  ModelNorm norm;
  bool has_norms = true;  ///< of the family; a trained network may have none
  Mlp mlp;
  bool causal = true;
  std::optional<positions::Rotary> rotary;
  std::optional<positions::Rotary> windowed_rotary;  ///< of layers with a sliding window, if different
  /// If attention is not causal, half of a window is on each side.
  formats::checkpoints::LayerPattern layers = {};
  std::optional<positions::Alibi> alibi;  ///< without alibi and rotary, positions are learned
  std::size_t first_position = 0;         ///< row of the first token among learned positions
  /// Takes no position: reads the row of its own ID among learned positions.
  std::optional<std::size_t> padding_token = {};
  bool is_scaled = true;  ///< scores by 1/√d_head, unless `scale` says otherwise
  bool has_adjacent_pairs =
      false;  ///< in GGUF: columns 2k and 2k + 1 are rotary pairs, not those of two halves
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// Returns the rotary embedding of a layer, if it has one.
inline const std::optional<positions::Rotary>& rotary_of(const Architecture& architecture,
                                                         std::size_t layer) {
  static const std::optional<positions::Rotary> none;
  if (!architecture.layers.is_rotated(layer)) return none;
  const bool is_other = architecture.windowed_rotary && architecture.layers.is_local(layer);
  return is_other ? architecture.windowed_rotary : architecture.rotary;
}

/// Returns the factor between scores and scaled scores of a layer.
inline attention::Scale scale_of(const Architecture& a, std::size_t layer) {
  return formats::checkpoints::scale_from_config(a.scale, a.is_scaled, layer, a.sizes.d_head);
}

/// Returns the architecture that a Hugging Face config.json describes.
///
/// Throws core::Error, "FILE: PLACE: …", when a size is missing or does not fit the others, the family is
/// unknown, or a feature, which is named, is not supported.
Architecture architecture_of(const formats::Json& config);

/// Returns the architecture that the metadata of a GGUF file describes; facts missing there come from its
/// tensors. Throws core::Error, "FILE: KEY: …", as the other does.
Architecture architecture_of(const formats::GgufMetadata& metadata, const formats::TensorFile& file);

}  // namespace core::transformer
