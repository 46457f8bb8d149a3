// Threads do what takes long.
#include "app/session/fibers.hpp"

namespace app {

void run_in_fiber(std::function<void(core::StopToken::Pause)> work) {
  work(nullptr);
}

}  // namespace app
