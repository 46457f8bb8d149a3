#include "core/held_signals.hpp"

#include <initializer_list>

#include "core/token.hpp"

namespace core {
namespace {

constexpr std::initializer_list<int> numbers{SIGINT, SIGTERM, SIGHUP};

}  // namespace

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

HeldSignals::HeldSignals() {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

HeldSignals::~HeldSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void HeldSignals::check() const {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return;
  for (const int number : numbers)  // what was held before is somebody else's to answer
    if (sigismember(&waiting, number) == 1 && sigismember(&before_, number) == 0) throw Stopped();
}

}  // namespace core
