#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/stages.hpp"

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

}  // namespace core::check
