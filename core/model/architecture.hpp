#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/positions.hpp"

/// Whole models: tokens go in, and what may come next comes out.
namespace core::transformer {

enum class NormKind { layer, rms };
/// Where a norm stands: before attention and before the MLP, or after each of them has been added.
enum class NormPlace { before, after };
/// Between the two halves of an MLP. Source of both GELUs: Hendrycks and Gimpel 2016.
enum class Activation { gelu_erf, gelu_tanh, quick_gelu, relu, silu };

struct Sizes {
  std::size_t n_layers = 0, d_model = 0;
  std::size_t n_heads = 0, n_groups = 0;  ///< heads of queries; of keys and values
  std::size_t d_head = 0, d_hidden = 0;
  std::size_t n_vocabulary = 0, n_context = 0;  ///< n_context: tokens at most
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

struct Norm {
  NormKind kind = NormKind::layer;
  NormPlace place = NormPlace::before;
  double epsilon = 1e-5;
  friend bool operator==(const Norm&, const Norm&) = default;
};

struct Mlp {
  Activation activation = Activation::gelu_erf;
  bool gated = false;     ///< one half of what goes in is activated and multiplies the other
  bool parallel = false;  ///< it reads what attention reads, not what attention leaves
  friend bool operator==(const Mlp&, const Mlp&) = default;
};

/// The sizes and rules of a model, all that its weights do not say.
struct Architecture {
  std::string family;  ///< its name in families()
  Sizes sizes;
  Norm norm;
  Mlp mlp;
  bool causal = true;
  std::optional<positions::Rotary> rotary;  ///< else positions are learned
  std::size_t first_position = 0;           ///< row of the first token among learned positions
  /// Whose place does not count: it has the row of its own number among learned positions.
  std::optional<std::size_t> padding_token = {};
  bool scales_by_layer = false;  ///< scores are also divided by the number of the layer, from 1
  bool tied = false;  ///< tokens are predicted with their embeddings, as they are without weights for it
  bool has_neighbours = false;  ///< in GGUF: numbers 2k and 2k + 1 of queries and keys are a pair, not halves
  std::vector<std::size_t> windows = {};  ///< [layer]: tokens that a query sees at most, 0 for all; or none
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// The tokens that a query of a layer sees at most, itself among them; 0 for no limit.
inline std::size_t window_of(const Architecture& architecture, std::size_t layer) {
  return architecture.windows.empty() ? 0 : architecture.windows[layer];
}

}  // namespace core::transformer
