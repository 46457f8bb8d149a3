#include "app/cli/search_watch.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "core/base/signals.hpp"

namespace app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr timespec tick{0, 20'000'000};
constexpr double seconds_unsaid = 0.4, seconds_between = 0.2;
constexpr const char* clear_line = "\r\033[K";

std::string progress_words(const core::Token& token, double seconds) {
  char text[128];
  std::snprintf(text, sizeof text, "looking for the cause: %llu tried, %.1f s; Ctrl+C stops",
                static_cast<unsigned long long>(token.done()), seconds);
  return text;
}

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

/// Ends the program as Ctrl+C does when nobody waits for it.
void end_program(const sigset_t& set) {
  signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(SIGINT);
}

void watch(const std::stop_token& ended, core::Token& token, std::ostream& err, bool says) {
  const sigset_t set = interrupts();
  const auto begin = Clock::now();
  double next = seconds_unsaid;
  bool has_said = false;
  while (!ended.stop_requested()) {
    if (sigtimedwait(&set, nullptr, &tick) == SIGINT) {
      if (!token.goes_on()) end_program(set);
      token.stop();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (!says || seconds < next) continue;
    err << clear_line << progress_words(token, seconds) << std::flush;
    has_said = true;
    next = seconds + seconds_between;
  }
  if (has_said) err << clear_line << std::flush;
}

}  // namespace

SearchWatch::SearchWatch(core::Token& token, std::ostream& err, bool is_terminal) {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, &before_);  // the thread inherits it
  sigaction(SIGINT, nullptr, &action_before_);
  core::leave_to_first_thread(SIGINT);  // also where it was to be ignored
  thread_ = std::jthread(
      [&token, &err, is_terminal](const std::stop_token& ended) { watch(ended, token, err, is_terminal); });
}

SearchWatch::~SearchWatch() {
  thread_.request_stop();
  thread_.join();
  sigaction(SIGINT, &action_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool is_on_terminal(const std::ostream& err) {
  return &err == &std::cerr && ::isatty(STDERR_FILENO) == 1;
}

}  // namespace app
