#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/session/comparison.hpp"
#include "core/check/check.hpp"
#include "core/graph/stages.hpp"

namespace app {

/// Somebody's tensors against the live model.
struct TensorCheck {
  core::check::Matched matched;
  core::check::Report report;                  ///< points into matched
  bool searched = false;                       ///< whether all causes were tried
  std::string problem;                         ///< why nothing can be compared, or ""
  std::vector<core::attention::Stage> stages;  ///< that the tensors have
  core::attention::Trace observed;             ///< which has only these
};

/// What a check is of.
struct CheckKey {
  std::uint64_t reference = 0, version = 0;  ///< of the tensors and of the live trace
  std::size_t sequence = 0, mapped = 0;
  bool searches = false;  ///< for what explains them
  bool is_near(const CheckKey& other) const {
    return reference == other.reference && !searches && !other.searches;
  }
  friend bool operator==(const CheckKey&, const CheckKey&) = default;
};

/// Reads a reference's tensors as stages of the live model and checks them; counts what was tried to explain
/// them. What the search has not found once goes_on says no is missing.
std::shared_ptr<const TensorCheck> checked_tensors(const CheckKey& key, const Reference& reference,
                                                   const core::attention::Model& live,
                                                   const core::Token& token);

}  // namespace app
