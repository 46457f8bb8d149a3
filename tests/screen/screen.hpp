#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

namespace screen {

/// Private X server of a test.
class Server {
 public:
  /// Throws std::runtime_error if none can be started.
  Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { kill(); }

  /// Value of DISPLAY for its clients.
  const std::string& display() const { return display_; }
  /// Kills the server, as a crash would.
  void kill();

 private:
  pid_t process_ = 0;
  std::string display_;
};

/// Another client of an X server.
class Neighbor {
 public:
  /// Throws std::runtime_error if there is no such display.
  explicit Neighbor(const std::string& display);
  Neighbor(const Neighbor&) = delete;
  Neighbor& operator=(const Neighbor&) = delete;
  ~Neighbor();

  /// Returns the window with a title, if it is shown.
  std::optional<unsigned long> window_called(const std::string& title) const;
  /// Presses and releases the key of a letter in a window.
  void press(unsigned long window, char letter);
  /// Makes this client the owner of the clipboard.
  void take_clipboard();
  /// Returns whether the clipboard has an owner.
  bool clipboard_is_taken() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace screen
