#include "app/window/end_watch.hpp"

#include <utility>

#include "core/held_signals.hpp"

namespace app {
namespace {

constexpr timespec between_looks{0, 100'000'000};  // at whether the window has ended by itself

}  // namespace

EndWatch::EndWatch(std::function<void()> wake) {
  thread_ = std::jthread([this, wake = std::move(wake)](const std::stop_token& ends) {
    const sigset_t signals = core::ending_signals();
    while (!ends.stop_requested()) {
      const int came = ::sigtimedwait(&signals, nullptr, &between_looks);
      if (came <= 0) continue;
      signal_ = came;
      wake();
    }
  });
}

}  // namespace app
