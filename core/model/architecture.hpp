#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/positions.hpp"
#include "core/files/config.hpp"
#include "core/files/gguf.hpp"

/// Whole models: tokens go in, and what may come next comes out.
namespace core::transformer {

using formats::checkpoints::Activation;
using formats::checkpoints::Family;
using formats::checkpoints::Mlp;
using formats::checkpoints::Norm;
using formats::checkpoints::NormKind;
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
  std::optional<positions::Rotary> rotary;  ///< else positions are learned
  std::size_t first_position = 0;           ///< row of the first token among learned positions
  /// It has no place of its own: it has the row of its own number among learned positions.
  std::optional<std::size_t> padding_token = {};
  bool scales_by_layer = false;  ///< scores are also divided by the number of the layer, from 1
  bool tied = false;  ///< tokens are predicted with their embeddings, as they are without weights for it
  bool has_neighbours = false;  ///< in GGUF: numbers 2k and 2k + 1 of queries and keys are a pair, not halves
  std::vector<std::size_t> windows =
      {};  ///< [layer]: tokens that a query attends to at most, 0 for all; or none
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// The tokens that a query of a layer attends to at most, itself among them; 0 for no limit.
inline std::size_t window_of(const Architecture& architecture, std::size_t layer) {
  return architecture.windows.empty() ? 0 : architecture.windows[layer];
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
