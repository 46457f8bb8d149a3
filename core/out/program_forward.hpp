#pragma once

#include <string>

#include "core/graph/model.hpp"

namespace core::formats {

/// The methods of the class of a PyTorch program: what attend() does to the model, stage by stage.
std::string program_forward(const attention::Model& model);

/// Whether forward() knows how many keys there are.
bool names_keys(const attention::Model& model);

/// Whether the program cannot draw the model's dropout mask, so that it stands in it as a tensor named kept.
bool writes_kept_weights(const attention::Model& model);

}  // namespace core::formats
