#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/system/file.hpp"

namespace core::system {

/// Returns whether a text is a socket address: HOST:PORT, or the path of an existing Unix socket. An existing
/// file or folder of that name is not an address.
bool is_socket_address(const std::string& text);

/// A bidirectional byte stream to another process. One thread may send while another receives.
class Socket {
 public:
  /// Connects to HOST:PORT or to the path of a Unix socket. Throws core::Error, "ADDRESS: …", also without an
  /// answer within patience.
  Socket(const std::string& address, std::chrono::milliseconds timeout);
  /// Takes over a connected socket.
  explicit Socket(Descriptor connected);

  /// Sends all bytes. Throws core::Error with only the reason, also when none are accepted for 10 s.
  void send(std::string_view bytes) const;
  /// Waits for bytes and receives at most count of them; 0 once the other side has closed. Throws core::Error
  /// with only the reason, also when none arrive within patience; 0 ms waits forever.
  std::size_t receive(char* to, std::size_t count, std::chrono::milliseconds timeout) const;
  /// Ends the connection, also for a thread that waits for bytes.
  void shut_down() const;

 private:
  Descriptor descriptor_;
};

}  // namespace core::system
