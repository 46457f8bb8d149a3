#pragma once

#include <string>

#include "core/graph/visible.hpp"

namespace core::explain {

/// Returns why a query of a sequence attends to a key or does not, as a formula: "key 5 > query 3", "key 0 is
/// padding".
std::string visibility_formula(const attention::Model& model, std::size_t sequence, std::size_t query,
                               std::size_t key);

/// Returns the same as a sentence for a masked or unmasked cell: "masked: key 5 comes after query 3".
std::string describe_visibility(const attention::Model& model, std::size_t sequence, std::size_t query,
                                std::size_t key);

}  // namespace core::explain
