#include "core/system/socket.hpp"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"

namespace core::system {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds send_timeout{10'000};

std::string error_text(int error) {
  if (error == EPIPE || error == ECONNRESET) return "the other side has closed it";
  return std::generic_category().message(error);
}

/// Waits until a socket can be read or written. Returns whether it can.
bool wait_for(int socket, short what, milliseconds timeout) {
  pollfd waiting{socket, what, 0};
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (int left = timeout.count() == 0 ? -1 : static_cast<int>(timeout.count());;) {
    const int ready = ::poll(&waiting, 1, left);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) throw Error(error_text(errno));
    const auto rest = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    if (left >= 0) left = static_cast<int>(std::max<milliseconds::rep>(0, rest.count()));
  }
}

/// Returns the descriptor of a connected socket, or none and the error number in error.
Descriptor connected(int family, const sockaddr* address, socklen_t size, milliseconds timeout, int& error) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error = errno;
  if (!socket.is_open()) return socket;
  error = 0;
  if (::connect(socket.number(), address, size) == 0) return socket;
  error = errno;
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    socklen_t length = sizeof error;
    if (wait_for(socket.number(), POLLOUT, timeout))
      ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  return error == 0 ? std::move(socket) : Descriptor();
}

struct HostAndPort {
  std::string host, port;
};

/// Splits HOST:PORT; the host may be in brackets, as addresses with colons are.
std::optional<HostAndPort> parse_host_and_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || text.find('/') != text.npos) return std::nullopt;
  HostAndPort parts{text.substr(0, colon), text.substr(colon + 1)};
  if (parts.host.front() == '[' && parts.host.back() == ']')
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  const auto port = text::parse_unsigned(parts.port);
  if (!port || *port == 0 || *port > 65535 || parts.host.empty()) return std::nullopt;
  return parts;
}

Descriptor connect_to_path(const std::string& path, milliseconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw Error(fmt::format("{}: expected HOST:PORT or the path of a Unix socket of at most {} bytes", path,
                            sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int error = 0;
  Descriptor socket =
      connected(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, timeout, error);
  if (!socket.is_open()) throw Error(path + ": cannot be reached: " + error_text(error));
  return socket;
}

Descriptor connect_to_host(const std::string& name, const HostAndPort& endpoint, milliseconds timeout) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int problem = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &list))
    throw Error(name + ": cannot be reached: " + ::gai_strerror(problem));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  int error = 0;
  for (const addrinfo* each = list; each; each = each->ai_next) {
    Descriptor socket = connected(each->ai_family, each->ai_addr, each->ai_addrlen, timeout, error);
    if (!socket.is_open()) continue;
    const int on = 1;
    ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket.number(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return socket;
  }
  throw Error(name + ": cannot be reached: " + error_text(error));
}

}  // namespace

bool is_socket_address(const std::string& text) {
  struct stat found {};
  if (::stat(text.c_str(), &found) == 0) return S_ISSOCK(found.st_mode);
  return parse_host_and_port(text).has_value();
}

Socket::Socket(Descriptor connected) : descriptor_(std::move(connected)) {}

Socket::Socket(const std::string& address, milliseconds timeout) {
  const auto endpoint = parse_host_and_port(address);
  descriptor_ = endpoint ? connect_to_host(address, *endpoint, timeout) : connect_to_path(address, timeout);
}

void Socket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(descriptor_.number(), POLLOUT, send_timeout)) throw Error("nothing was taken for 10 s");
    } else if (errno != EINTR) {
      throw Error(error_text(errno));
    }
  }
}

std::size_t Socket::receive(char* to, std::size_t count, milliseconds timeout) const {
  while (true) {
    const ssize_t got = ::recv(descriptor_.number(), to, count, 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) {
      if (!wait_for(descriptor_.number(), POLLIN, timeout))
        throw Error(fmt::format("nothing came for {} s", timeout.count() / 1000));
    } else if (errno != EINTR) {
      throw Error(error_text(errno));
    }
  }
}

void Socket::shut_down() const {
  ::shutdown(descriptor_.number(), SHUT_RDWR);
}

}  // namespace core::system
