#pragma once

#include <vector>

#include "core/model/roles.hpp"
#include "core/model/run.hpp"

namespace core::experiment {

/// What every head does where nothing is to be read but what was there before: in the mean over some rows of
/// random tokens, each followed by itself once more; [layer][head].
///
/// Empty for a model whose tokens see both sides or that takes too few of them. Source: Olsson et al. 2022.
std::vector<std::vector<transformer::HeadRoles>> usual_roles(const transformer::Transformer& model,
                                                             const transformer::Means& means);

}  // namespace core::experiment
