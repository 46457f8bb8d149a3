#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

inline void close_dialog(const Frame& frame) {
  frame.commands.add(ShowDialog{Dialog::none});
}

}  // namespace app::panels
