#pragma once

#include "app/state/view.hpp"
#include "core/attention/model.hpp"

namespace app {

/// What edits change, whatever the pictures are of.
struct Newest {
  const core::attention::Model& model;
  const View& view;  ///< of that model
};

}  // namespace app
