#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/stage.hpp"

/// What names of tensors say: a stage of attention, a layer, a head, or another tensor of a whole model.
namespace core::formats {

/// Parts of a tensor's name: "sequence1/weights.head0" is "weights", of sequence 1, head 0.
struct NameParts {
  std::string base;
  std::optional<std::size_t> sequence, head;
};
NameParts split_name(std::string_view name);

/// Possible stages of a name.
struct NameMeaning {
  std::vector<attention::Stage> stages;  ///< the likeliest first; empty if unknown
  bool certain = false;                  ///< the name is that of a stage in attnscope itself
};

/// Returns the stages commonly called so, ignoring case: "attn_weights", "Q", "layer.context_vec".
NameMeaning meaning_of(std::string_view base);

/// Other tensors of a whole model that a name can denote: a layer's input or output, the output of the last
/// layer after the final norm, or logits.
enum class ModelTensor { nothing, entering, leaving, normed, logits };
/// Reads "hidden_states", "model.my_hidden_states", "hook_resid_post", "logits", ignoring case.
ModelTensor model_tensor_of(std::string_view base);

/// A name without one of its numbers, as of a layer: "attn_weights.3", "layer3_attn", "attn_layer_3".
struct NumberedName {
  std::string base, number;
  bool is_separate = false;  ///< set apart by a separator or a word, unlike "x2"
  std::string suffix;        ///< text after the number: "attn" of "layer3_attn"
};
/// Returns one entry for each number in a name, from left to right.
std::vector<NumberedName> split_numbers(const std::string& name);

/// Everything that a tensor's name says.
struct ParsedName {
  NameParts parts;
  NameMeaning meaning;  ///< without stages if unknown
  std::string layer;    ///< "model.layers.3", "3", or ""
  std::string own;      ///< the rest of the name: "q"
};
ParsedName parse_name(std::string_view name);

}  // namespace core::formats
