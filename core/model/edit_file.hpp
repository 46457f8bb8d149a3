#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/model/experiment.hpp"

/// An edited layer as it stands in a session file.
namespace core::experiment {

/// A list of items that are JSON.
inline std::string json_list(const std::vector<std::string>& items) {
  return "[" + text::joined(items, ", ") + "]";
}

/// What was edited in a layer, beside the layer as the pass gives it: JSON, without the numbers that are as
/// they were.
std::string edit_json(std::size_t layer, const LayerEdit& edit, const attention::Model& of_pass,
                      std::size_t n_tokens, std::size_t d_model);

/// The layer that was edited. Throws core::Error when it is none below n_layers.
std::size_t edited_layer(const formats::Json& place, std::size_t n_layers);

/// What was edited in it. Throws core::Error, "PLACE…".
LayerEdit read_edit(const formats::Json& place, const attention::Model& of_pass);

}  // namespace core::experiment
