#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace app {

/// Waits beside the window for what asks the program to end: SIGTERM, SIGHUP, SIGINT, which every thread must
/// hold back; see core::HeldSignals.
class EndWatch {
 public:
  /// wake is called from another thread.
  explicit EndWatch(std::function<void()> wake);

  /// The signal that came, or 0.
  int signal() const { return signal_; }

 private:
  std::atomic<int> signal_ = 0;
  std::jthread thread_;
};

}  // namespace app
