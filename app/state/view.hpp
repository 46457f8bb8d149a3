#pragma once

#include "app/state/forms.hpp"
#include "app/state/look.hpp"
#include "app/state/selection.hpp"
#include "app/state/settings.hpp"
#include "app/state/whole_model.hpp"

namespace app {

/// What is looked at of a model.
struct LookedAt {
  Look look;
  Selection selection;
};

/// All that the window shows beside the model: changed by commands alone.
struct View : LookedAt {
  Settings settings;
  Forms forms;
  LayersLook layers;
};

}  // namespace app
