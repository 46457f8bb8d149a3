#include "app/window/window_main.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "app/screen/window.hpp"
#include "app/window/program.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"

namespace app {

namespace {

constexpr std::chrono::milliseconds signal_poll_interval(50);  // between two checks for a signal

/// Returns the exit status of a program ended by a signal, as in shells.
int status_of_signal(int signal) {
  return 128 + signal;
}

/// Waits in the background for SIGTERM, SIGHUP and SIGINT. Before there is a window, such a signal ends the
/// program at once.
class SignalWatcher {
 public:
  explicit SignalWatcher(const core::system::SignalBlocker& blocker)
      : thread_([this, &blocker](const std::stop_token& ends) {
          for (; !ends.stop_requested(); std::this_thread::sleep_for(signal_poll_interval))
            if (const int came = blocker.take()) take(came);
        }) {}

  /// Declares that there is a window; `wake` is called from another thread when a signal arrives, until it is
  /// replaced.
  void set_wake_callback(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    has_window_ = true;
    wake_ = std::move(wake);
  }
  /// Returns the signal that arrived, or 0.
  int signal() const { return signal_; }

 private:
  void take(int signal) {
    const std::lock_guard lock(mutex_);
    signal_ = signal;
    if (!has_window_)
      std::_Exit(status_of_signal(signal));  // there are no edits yet, and a display may not respond
    if (wake_) wake_();
  }

  std::atomic<int> signal_ = 0;
  std::mutex mutex_;
  std::function<void()> wake_;  // guarded by the mutex, as its target must exist during the call
  bool has_window_ = false;
  std::jthread thread_;
};

}  // namespace

int run_window(const OpenWindow& options) {
  if (options.file) core::system::buffer_pipe_to_file(*options.file);  // may be ended by a signal
  const core::system::SignalBlocker blocker;
  SignalWatcher end(blocker);
  Program program(options, [](Jobs& jobs, int width, int height, float font_scale) {
    return std::make_unique<platform::Window>(jobs, "attnscope", width, height, font_scale);
  });
  try {
    end.set_wake_callback([&program] { program.wake(); });
    while (program.step())
      if (end.signal() != 0) program.quit();
  } catch (...) {
    end.set_wake_callback({});
    program.quit();  // the next window offers the unsaved work
    throw;
  }
  end.set_wake_callback({});
  program.finish();
  return end.signal() == 0 ? 0 : status_of_signal(end.signal());
}

}  // namespace app
