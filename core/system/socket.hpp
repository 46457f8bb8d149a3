#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/system/file.hpp"

namespace core::system {

/// Whether a text is the address of a socket: HOST:PORT, or the path of a Unix socket that is there. A file
/// or a folder of that name is no address.
bool is_socket_address(const std::string& text);

/// A stream of bytes to another process and back. One thread may send while another receives.
class Socket {
 public:
  /// Connects to HOST:PORT or to the path of a Unix socket. Throws core::Error, "ADDRESS: …", also when
  /// nobody has answered after so long.
  Socket(const std::string& address, std::chrono::milliseconds patience);
  /// One that is connected already.
  explicit Socket(Descriptor connected);

  /// Sends all bytes. Throws core::Error, which says why alone, also when nobody takes them for 10 s.
  void send(std::string_view bytes) const;
  /// Waits for bytes, at most count of them; 0 once the other side has hung up. Throws core::Error, which
  /// says why alone, also when none came for so long; 0 ms: waits for any time.
  std::size_t receive(char* to, std::size_t count, std::chrono::milliseconds patience) const;
  /// Ends the connection, also for who is waiting for bytes.
  void shut_down() const;

 private:
  Descriptor descriptor_;
};

}  // namespace core::system
