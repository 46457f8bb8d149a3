#include "core/files/pickle_bytes.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/little_endian.hpp"

namespace core::formats::readers {
namespace {

constexpr std::uint64_t fetched_in_one_go = std::uint64_t{1} << 16;
constexpr std::uint64_t longest_item = std::uint64_t{1} << 24;  // of a text, or of bytes
constexpr std::size_t longest_line = 4096;

}  // namespace

PickleBytes::PickleBytes(Fetch fetch, std::uint64_t from, std::uint64_t end, std::string place,
                         const Token& progress)
    : fetch_(std::move(fetch)), at_(from), end_(end), place_(std::move(place)), progress_(progress) {}

void PickleBytes::fail(const std::string& what) const {
  throw Error(place_ + "damaged pickle: " + what + " at byte " + std::to_string(at_));
}

std::string_view PickleBytes::take(std::uint64_t count) {
  if (count > end_ - at_) fail("expected " + std::to_string(count) + " more bytes, got the end");
  if (count > longest_item)
    fail("expected a text of at most 2^24 bytes, got one of " + std::to_string(count));
  if (window_.size() < count) {
    // Only what follows is fetched: a byte that was passed may cost as much as all before it.
    fetched_.erase(0, fetched_.size() - window_.size());
    const std::uint64_t held = fetched_.size();
    const std::uint64_t more = std::min(std::max(count - held, fetched_in_one_go), end_ - at_ - held);
    fetched_ += fetch_(at_ + held, more, buffer_, progress_);
    progress_.add(0);
    window_ = fetched_;
  }
  const std::string_view taken = window_.substr(0, count);
  window_.remove_prefix(count);
  at_ += count;
  return taken;
}

std::string PickleBytes::line() {
  std::string line;
  for (char c = take(1)[0]; c != '\n'; c = take(1)[0]) {
    line += c;
    if (line.size() > longest_line) fail("expected the end of a line");
  }
  return line;
}

std::uint64_t PickleBytes::number(std::uint64_t n_bytes) {
  return little_endian(take(n_bytes));
}

void PickleBytes::go_to(std::uint64_t at) {
  const std::uint64_t passed = at - at_;
  window_.remove_prefix(at >= at_ && passed < window_.size() ? passed : window_.size());
  at_ = at;
}

}  // namespace core::formats::readers
