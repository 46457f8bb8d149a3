#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/positions.hpp"
#include "core/files/config.hpp"
#include "core/files/gguf.hpp"
#include "core/files/layers.hpp"

/// Whole models: tokens go in, and what may come next comes out.
namespace core::transformer {

using formats::checkpoints::Activation;
using formats::checkpoints::Family;
using formats::checkpoints::Mlp;
using formats::checkpoints::Norm;
using formats::checkpoints::NormKind;
using formats::checkpoints::NormOver;
using formats::checkpoints::NormPlace;
using formats::checkpoints::Role;
using formats::checkpoints::Sizes;

/// The sizes and rules of a model, all that its weights do not say.
struct Architecture {
  std::string family;  ///< Family::whole
  Sizes sizes;
  Norm norm;
  Mlp mlp;
  bool causal = true;
  std::optional<positions::Rotary> rotary;
  std::optional<positions::Rotary> rotary_in_window;  ///< of layers with a window, where it is another
  std::vector<bool> rotated = {};                     ///< [layer], or none: all
  std::optional<positions::Alibi> alibi;              ///< without either positions are learned
  std::size_t first_position = 0;                     ///< row of the first token among learned positions
  /// It has no place of its own: it has the row of its own number among learned positions.
  std::optional<std::size_t> padding_token = {};
  formats::checkpoints::ConfigScale scale = {};
  bool is_scaled = true;          ///< scores by 1/√d_head, unless scale says otherwise
  std::optional<double> softcap;  ///< of scaled scores
  double embedding_factor = 1;    ///< of the embeddings of tokens
  double residual_factor = 1;     ///< of what attention and the MLP add
  double logit_factor = 1;
  std::optional<double> logit_cap;
  formats::checkpoints::Experts experts = {};
  bool tied = false;  ///< tokens are predicted with their embeddings, as they are without weights for it
  bool has_neighbours = false;  ///< in GGUF: numbers 2k and 2k + 1 of queries and keys are a pair, not halves
  /// [layer]: tokens that a query attends to at most, 0 for all; or none. Where it is not causal half of them
  /// are on each side.
  std::vector<std::size_t> windows = {};
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// The tokens that a query of a layer attends to at most, itself among them; 0 for no limit.
inline std::size_t window_of(const Architecture& architecture, std::size_t layer) {
  return architecture.windows.empty() ? 0 : architecture.windows[layer];
}

/// The rotary positions of a layer, if it has any.
inline const std::optional<positions::Rotary>& rotary_of(const Architecture& architecture,
                                                         std::size_t layer) {
  static const std::optional<positions::Rotary> none;
  if (layer < architecture.rotated.size() && !architecture.rotated[layer]) return none;
  const bool is_other = architecture.rotary_in_window && window_of(architecture, layer) > 0;
  return is_other ? architecture.rotary_in_window : architecture.rotary;
}

/// The factor between scores and scaled scores of a layer.
inline attention::Scale scale_of(const Architecture& a, std::size_t layer) {
  return formats::checkpoints::scale_by(a.scale, a.is_scaled, layer, a.sizes.d_head);
}

/// The architecture that a config.json of Hugging Face's describes.
///
/// Throws core::Error, "FILE: PLACE: …", when a size is missing or does not fit the others, the model is of
/// no known family, or it does something that is not supported, which is named.
Architecture architecture_of(const formats::Json& config);

/// The architecture that the metadata of a GGUF file describes; what of it only tensors tell comes from
/// these. Throws core::Error, "FILE: KEY: …", as the other does.
Architecture architecture_of(const formats::GgufMetadata& metadata, const formats::TensorFile& file);

/// Throws core::Error, "PLACEexpected …", when sizes do not fit one another or are beyond reason.
void require_sizes(const Architecture& architecture, const std::string& place);

}  // namespace core::transformer
