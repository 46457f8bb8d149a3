#pragma once

#include <string>

#include "core/graph/visible.hpp"

namespace core::explain {

/// Why a query of a sequence sees a key or does not, by what decides it: "key 5 > query 3", "key 0 is
/// padding".
std::string sight_formula(const attention::Model& model, std::size_t sequence, std::size_t query,
                          std::size_t key);

/// The same as a sentence for a cell that is hidden or shown: "hidden: key 5 comes after query 3".
std::string visibility_words(const attention::Model& model, std::size_t sequence, std::size_t query,
                             std::size_t key);

}  // namespace core::explain
