#pragma once

#include <imgui.h>

#include <vector>

namespace app::platform {

/// Makes a key that went down and up between two frames be down for one of them.
///
/// Dear ImGui before 1.87 has no queue of keys and sees only how they stand when a frame begins. Keys are
/// named as in ImGuiIO::KeysDown.
class ShortPresses {
 public:
  void went_down(int key) { went_down_.push_back(key); }
  /// Before ImGui::NewFrame, when the devices were read.
  void put(ImGuiIO& io);

 private:
  std::vector<int> went_down_;   // since the last frame
  std::vector<int> lengthened_;  // down in the last frame only because they are here
};

}  // namespace app::platform
