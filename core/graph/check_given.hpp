#pragma once

#include <optional>

#include "core/graph/model.hpp"

namespace core::attention {

/// Names the first inconsistency of what is given; the rest of the model must have passed what check() looks
/// at before.
std::optional<Problem> check_given(const Model& model);

}  // namespace core::attention
