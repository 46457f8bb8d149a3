#pragma once

#include "app/session/forms.hpp"
#include "app/session/look.hpp"
#include "app/session/selection.hpp"
#include "app/session/settings.hpp"
#include "app/session/whole_model.hpp"

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
