#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

namespace screen {

/// An X server of the test's own.
class Server {
 public:
  /// Throws std::runtime_error where none can be started.
  Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { kill(); }

  /// What DISPLAY is for whoever is to be shown on it.
  const std::string& display() const { return display_; }
  /// Ends it at once, as a crash would.
  void kill();

 private:
  pid_t process_ = 0;
  std::string display_;
};

/// Another program on that screen.
class Neighbour {
 public:
  /// Throws std::runtime_error when there is no such display.
  explicit Neighbour(const std::string& display);
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour();

  /// The window with a title, if it is shown.
  std::optional<unsigned long> window_called(const std::string& title) const;
  /// Presses the key of a letter over a window, and lets it go.
  void press(unsigned long window, char letter);
  /// Says that the clipboard is this program's.
  void take_clipboard();
  /// Whether it is anybody's.
  bool clipboard_is_taken() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace screen
