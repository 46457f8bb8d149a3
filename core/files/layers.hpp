#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/tensor.hpp"

namespace core::formats::checkpoints {

/// How one weight for queries, keys and values holds them: side by side; by head (by group of heads, where
/// several share a key and a value); or in four blocks of heads, each with its queries, its values and its
/// keys.
enum class Fused { side_by_side, by_head, in_fours };

/// Where the numbers of one projection are in a file.
struct Source {
  std::vector<std::string>
      weights;  ///< tensors that stand side by side along d_out: one, or one for each head
  std::vector<std::string> biases;  ///< as many, or none
  bool out_by_in = false;  ///< rows are outputs, as torch.nn.Linear keeps them; else it is used as x·W
  std::size_t part = 0,
              n_parts = 1;  ///< which part of d_out is meant: queries, keys, values are 0, 1, 2 of 3
  std::size_t bias_part = 0, n_bias_parts = 1;  ///< the same of the bias
  Fused fused = Fused::side_by_side;            ///< how the parts lie
  bool head_first = false;                      ///< a tensor of three axes, of which the first counts heads
  friend bool operator==(const Source&, const Source&) = default;
};

/// Where all projections of one attention are.
struct Mapping {
  Source query, key, value;
  std::optional<Source> output;
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// A way in which a family of programs names and lays out its projections.
struct Layout {
  const char* name;   ///< "gpt2"
  const char* about;  ///< one line for people
  const char* kind;  ///< the kind of models that it is of, by its name in kinds(), or "" when several have it
  bool causal;       ///< whether such models mask what comes later, when nothing else tells it
};

/// One attention found in a file.
struct Layer {
  std::string prefix;  ///< of its tensors' names: "h.2.attn."
  const Layout* layout;
  Mapping mapping;
  std::size_t n_heads = 0;  ///< when the names tell it, else 0
};

/// Every attention in a file whose layout is known, in the order of the numbers in their names; those whose
/// keys are of another sequence come last.
///
/// Known are those of layout_rows(), and one class for each head.
std::vector<Layer> find_layers(std::span<const TensorInfo> tensors);

/// The layer that a person means by a number, counted from 0, or by its prefix.
///
/// Throws core::Error, "PLACEexpected …", naming what there is.
const Layer& choose_layer(std::span<const Layer> layers, const std::string& chosen, const std::string& place);

}  // namespace core::formats::checkpoints
