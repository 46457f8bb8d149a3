#include "app/window/remembering.hpp"

#include <thread>
#include <utility>

namespace app {
namespace {

using namespace std::chrono_literals;
constexpr auto pause_between = 300ms;  // two writings, as a dragged border changes a setting in each frame
constexpr auto glance = 10ms;          // between two looks at the token

/// What has changed from one memory to the next goes to where other windows write too; "" or what is wrong.
std::string write_changes(const std::filesystem::path& folder, const platform::Memory& before,
                          const platform::Memory& now) {
  const platform::Memory there = platform::read_memory(folder);
  const platform::Memory after = platform::merged(before, now, there);
  return after == there ? "" : platform::write_memory(folder, after);
}

}  // namespace

void Remembering::follow(const platform::Memory& now) {
  if (lane_.is_busy() || now == seen_) return;
  seen_ = now;
  lane_.start([this, folder = folder_, before = written_, now,
               at = next_](const core::Token& token) -> Jobs::Delivery {
    while (token.goes_on() && Jobs::Clock::now() < at) std::this_thread::sleep_for(glance);
    if (!token.goes_on()) return {};
    const std::string problem = write_changes(folder, before, now);
    return [this, now, problem] {
      next_ = Jobs::Clock::now() + pause_between;
      if (problem.empty())
        written_ = now;
      else if (!std::exchange(has_failed_, true))
        lane_.jobs().tell({problem});
    };
  });
}

void Remembering::finish(const platform::Memory& now) {
  lane_.cancel();
  lane_.wait();
  write_changes(folder_, written_, now);
}

}  // namespace app
