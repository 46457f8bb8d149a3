#pragma once

#include <string>

#include "core/graph/model.hpp"

namespace core::formats {

/// The lines of forward() from the scaled scores to the weights.
std::string program_mask(const attention::Model& model);

}  // namespace core::formats
