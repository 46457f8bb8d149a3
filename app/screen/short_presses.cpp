#include "app/screen/short_presses.hpp"

#include <algorithm>
#include <utility>

namespace app::platform {

#if IMGUI_VERSION_NUM < 18700
void ShortPresses::put(ImGuiIO& io) {
  const std::vector<int> pressed = std::exchange(went_down_, {});
  for (const int key : std::exchange(lengthened_, {}))
    if (std::find(pressed.begin(), pressed.end(), key) == pressed.end()) io.KeysDown[key] = false;
  for (const int key : pressed) {
    if (key < 0 || io.KeysDown[key]) continue;
    io.KeysDown[key] = true;
    lengthened_.push_back(key);
  }
}
#else
void ShortPresses::put(ImGuiIO&) {
  went_down_.clear();
}
#endif

}  // namespace app::platform
