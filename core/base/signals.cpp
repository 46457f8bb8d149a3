#include "core/base/signals.hpp"

#include <ucontext.h>
#include <unistd.h>
#include <initializer_list>

#include "core/base/token.hpp"

namespace core {
namespace {

constexpr std::initializer_list<int> numbers{SIGINT, SIGTERM, SIGHUP};

/// nohup has some ignored, and what is ignored waits all the same where it is held back.
bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN;
}

/// Another thread than the first holds the signal back from now on, so that it waits for one that does not.
void pass_on(int number, siginfo_t*, void* context) {
  if (::gettid() == ::getpid()) {
    ::signal(number, SIG_DFL);
    ::raise(number);  // it arrives when this returns
    return;
  }
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, number);
  ::kill(::getpid(), number);
}

}  // namespace

void leave_to_first_thread(int number) {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

void leave_ending_signals_to_first_thread() {
  for (const int number : numbers)
    if (!is_ignored(number)) leave_to_first_thread(number);
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers)
    if (!is_ignored(number)) sigaddset(&set, number);
  return set;
}

SignalBlocker::SignalBlocker() {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalBlocker::~SignalBlocker() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalBlocker::check() const {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return;
  for (const int number : numbers)  // what was held before is somebody else's to answer
    if (sigismember(&waiting, number) == 1 && sigismember(&before_, number) == 0 && !is_ignored(number))
      throw Stopped();
}

}  // namespace core
