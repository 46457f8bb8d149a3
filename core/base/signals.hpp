#pragma once

#include <csignal>

namespace core {

/// As long as it lives, what asks the program to end (SIGINT, SIGTERM, SIGHUP) waits for its thread; after
/// that it arrives. Threads that are begun meanwhile keep it back for good, and leave it to those before
/// them.
///
/// It ends in the thread that made it.
class SignalBlocker {
 public:
  SignalBlocker();
  ~SignalBlocker();
  SignalBlocker(const SignalBlocker&) = delete;
  SignalBlocker& operator=(const SignalBlocker&) = delete;

  /// Throws Stopped when one waits that would end the program, so that what is half done can be cleared away.
  void check() const;

 private:
  sigset_t before_;
};

/// The signals that ask a program to end.
sigset_t ending_signals();

/// From now on a thread that is not the first one leaves a signal that comes to it to those that wait for it,
/// and the first one ends the program.
void leave_to_first_thread(int number);

/// From now on the first thread alone decides about these signals: a thread that a library has begun before,
/// as OpenBLAS does, and that does not hold them back would end the program else. To be called once, at the
/// start of main.
void leave_ending_signals_to_first_thread();

}  // namespace core
