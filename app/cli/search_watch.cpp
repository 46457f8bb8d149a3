#include "app/cli/search_watch.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>

namespace app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds tick(20);
constexpr double seconds_unsaid = 0.4, seconds_between = 0.2;
constexpr const char* clear_line = "\r\033[K";

std::string progress_words(const core::Token& token, double seconds) {
  char text[128];
  std::snprintf(text, sizeof text, "searching for the cause: %llu tried, %.1f s; Ctrl+C stops",
                static_cast<unsigned long long>(token.done()), seconds);
  return text;
}

void watch(const std::stop_token& ended, const core::system::SignalBlocker& blocker, core::Token& token,
           std::ostream& err, bool says) {
  const auto begin = Clock::now();
  double next = seconds_unsaid;
  bool has_said = false;
  while (!ended.stop_requested()) {
    std::this_thread::sleep_for(tick);
    if (blocker.take() == SIGINT) {
      if (!token.goes_on()) core::system::end_by(SIGINT);
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

SearchWatch::SearchWatch(core::Token& token, std::ostream& err, bool is_terminal)
    : blocker_({SIGINT}), thread_([this, &token, &err, is_terminal](const std::stop_token& ended) {
        watch(ended, blocker_, token, err, is_terminal);
      }) {}

bool is_on_terminal(const std::ostream& err) {
  return &err == &std::cerr && core::system::errors_are_on_terminal();
}

}  // namespace app
