#pragma once

#include <cstdint>

#include "app/session/pair.hpp"
#include "app/session/store.hpp"

namespace app {

/// What the panels get to see: the live state, or a kept one in its place.
struct ShownState {
  const LiveTrace& live;  ///< whose trace it is
  std::uint64_t version;
  LookedAt view;      ///< as far as its model has it
  bool is_a = false;  ///< a kept one

  Shown shown() const { return {live.model(), live.trace(), version, view.look, view.selection}; }
};

/// Puts the chosen A in place of B when Space goes down and takes it away when it goes up, unless the key
/// means something else where the keyboard is. To be called between ImGui::NewFrame and the panels.
void follow_held_key(Store& store);

ShownState shown_state(const Store& store);

}  // namespace app
