#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/system/process.hpp"

namespace app {

/// Waits beside the window for what asks the program to end: SIGTERM, SIGHUP, SIGINT. As long as there is no
/// window such a signal ends the program at once.
class EndWatch {
 public:
  explicit EndWatch(const core::system::SignalBlocker& blocker);

  /// A window that is called when a signal comes, until this is gone.
  class Window {
   public:
    /// wake is called from another thread.
    Window(EndWatch& watch, std::function<void()> wake);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    EndWatch& watch_;
  };

  /// The signal that came, or 0.
  int signal() const { return signal_; }

 private:
  void take(int signal);

  std::atomic<int> signal_ = 0;
  std::mutex mutex_;
  std::function<void()> wake_;  // guarded by the mutex, as what it calls must still be there
  bool had_window_ = false;
  std::jthread thread_;
};

/// What a program returns that a signal has ended, as shells say it.
inline int status_of_signal(int signal) {
  return 128 + signal;
}

/// What the command line says about the window.
struct WindowOptions {
  std::optional<std::filesystem::path> file;  ///< to open at once
  std::string preset = {};                    ///< its name, to begin with instead, or ""
  std::string address = {}, token = {};       ///< of an attached model to be opened, or ""
  std::string text = {};                      ///< that a whole model is to read, or ""
  std::size_t layer = 0;                      ///< of it, to be looked at
};

/// Opens the window and returns when it is closed: the exit status.
///
/// Throws core::Error when there is no display or the file cannot be opened.
int run_window(const WindowOptions& options);

}  // namespace app
