#pragma once

namespace app::platform {

/// Closes the popups that were opened and not yet drawn, when Escape is down. Before ImGui::NewFrame.
///
/// Dear ImGui before 1.87 gives one menu a frame to go before another comes; Escape in that frame would make
/// it read the window that the other one does not have.
void close_undrawn_popups_on_escape();

}  // namespace app::platform
