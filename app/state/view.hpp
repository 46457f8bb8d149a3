#pragma once

#include "app/state/forms.hpp"
#include "app/state/look.hpp"
#include "app/state/selection.hpp"
#include "app/state/settings.hpp"

namespace app {

/// All that the window shows beside the model: changed by commands alone.
struct View {
  Look look;
  Selection selection;
  Settings settings;
  Forms forms;
};

}  // namespace app
