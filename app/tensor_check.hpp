#pragma once

#include <string>
#include <vector>

#include "core/attention/stages.hpp"
#include "core/check/check.hpp"

namespace app {

/// Somebody's tensors against the live model.
struct TensorCheck {
  core::check::Matched matched;
  core::check::Report report;                  ///< points into matched
  bool searched = false;                       ///< whether all causes were tried
  std::string problem;                         ///< why nothing can be compared, or ""
  std::vector<core::attention::Stage> stages;  ///< that the tensors have
};

}  // namespace app
