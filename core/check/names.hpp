#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/stages.hpp"

namespace core::check {

using attention::Stage;

/// A tensor's name taken apart: "sequence1/weights.head0" is "weights", of sequence 1, head 0.
struct Name {
  std::string base;
  std::optional<std::size_t> sequence, head;
};
Name take_apart(std::string_view name);

/// What a name can mean.
struct Meaning {
  std::vector<Stage> stages;  ///< the likeliest first; empty when the name says nothing
  bool certain = false;       ///< it is the name of a stage in attnscope itself
};

/// The stages that people call so, in any case of letters: "attn_weights", "Q", "layer.context_vec".
Meaning meaning_of(std::string_view base);

/// What of a pass through a whole model a name can mean besides: what enters a layer, what leaves it, what
/// leaves the last one after its norm, or the scores of tokens.
enum class Held { nothing, entering, leaving, normed, logits };
/// Of "hidden_states", "model.my_hidden_states", "hook_resid_post", "logits", in any case of letters.
Held held_by(std::string_view base);

/// A name without a number in it, as of a layer: "attn_weights.3", "layer3_attn", "attn_layer_3".
struct WithoutNumber {
  std::string base, number;
  bool is_parted = false;  ///< by a joint or a word, so that "x2" is not
  std::string behind;      ///< what follows the number: "attn" of "layer3_attn"
};
/// For each number in a name, from left to right.
std::vector<WithoutNumber> without_numbers(const std::string& name);

/// All that the name of a tensor says.
struct Said {
  Name parts;
  Meaning meaning;    ///< without stages when it says none
  std::string layer;  ///< "model.layers.3", "3", or ""
  std::string own;    ///< what of it is not the layer's: "q"
};
Said said_by(std::string_view name);

/// The layers that names tell apart, numbers in order; none when no two of them are of one stage in two
/// layers.
std::vector<std::string> layers_of(const std::vector<Said>& names);

}  // namespace core::check
