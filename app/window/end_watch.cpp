#include "app/window/end_watch.hpp"

#include <cstdlib>
#include <utility>

#include "core/base/signals.hpp"

namespace app {
namespace {

constexpr timespec between_looks{0, 100'000'000};  // at whether the window has ended by itself

}  // namespace

EndWatch::EndWatch() {
  thread_ = std::jthread([this](const std::stop_token& ends) {
    const sigset_t signals = core::ending_signals();
    while (!ends.stop_requested())
      if (const int came = ::sigtimedwait(&signals, nullptr, &between_looks); came > 0) take(came);
  });
}

void EndWatch::take(int signal) {
  const std::lock_guard lock(mutex_);
  signal_ = signal;
  if (!had_window_)
    std::_Exit(status_of_signal(signal));  // nothing has been edited; a display may not answer
  if (wake_) wake_();
}

EndWatch::Window::Window(EndWatch& watch, std::function<void()> wake) : watch_(watch) {
  const std::lock_guard lock(watch.mutex_);
  watch.had_window_ = true;
  watch.wake_ = std::move(wake);
}

EndWatch::Window::~Window() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.wake_ = nullptr;
}

}  // namespace app
