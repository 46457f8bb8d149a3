#pragma once

#include <cstddef>
#include <memory>

#include "core/graph/model.hpp"

namespace app {

/// Where a person stands in the tour over the window.
struct Tour {
  std::size_t step = 0;
  std::shared_ptr<const core::attention::Model> start;  ///< the model as the step found it
};

}  // namespace app
