// A page has no connection to processes of its computer.
#include "core/base/error.hpp"
#include "core/system/socket.hpp"

namespace core::system {
namespace {

[[noreturn]] void fail() {
  throw Error("a page cannot attach to a Python process; the program for Linux can");
}

}  // namespace

bool is_socket_address(const std::string&) {
  return false;
}

Socket::Socket(const std::string&, std::chrono::milliseconds) {
  fail();
}
Socket::Socket(Descriptor) {
  fail();
}
void Socket::send(std::string_view) const {
  fail();
}
std::size_t Socket::receive(char*, std::size_t, std::chrono::milliseconds) const {
  fail();
}
void Socket::shut_down() const {}

}  // namespace core::system
