#include "app/session/jobs.hpp"

#include <exception>
#include <filesystem>
#include <new>

#include "core/base/error.hpp"
#include "core/base/token.hpp"

namespace app {

Failure failure_of(const std::string& what) {
  const auto with = [&](const char* words, const char* link) {
    return what.empty() ? words : words + (link + what);
  };
  const std::string wrong = with("Something went wrong", " with ");
  try {
    throw;
  } catch (const core::Stopped& stopped) {
    return {stopped.what(), true};
  } catch (const core::Outside& outside) {
    return {outside.what(), false, false, true};
  } catch (const core::Error& error) {
    return {error.what()};
  } catch (const std::bad_alloc&) {
    return {with("There is not enough memory", " for "), false, true};
  } catch (const std::filesystem::filesystem_error& error) {
    return {error.path1().string() + ": " + error.code().message()};
  } catch (const std::exception& error) {
    return {wrong + ": " + error.what()};
  } catch (...) {
    return {wrong};
  }
}

namespace {

constexpr std::size_t most_threads = 16;  // a long job never keeps a short one waiting

}  // namespace

Jobs::Jobs() = default;

Jobs::~Jobs() {
  {
    const std::lock_guard lock(board_->mutex);
    board_->is_open = false;
    board_->wake = {};
    for (auto& thread : threads_) thread.request_stop();
  }
  threads_.clear();
  // What was not taken over may hold things that hold the board.
  const auto ready = std::exchange(board_->ready, {});
  const auto ended = std::exchange(board_->ended, {});
  const auto discarded = std::exchange(board_->discarded, {});
}

void Jobs::wake_by(std::function<void()> wake) {
  const std::lock_guard lock(board_->mutex);
  board_->wake = std::move(wake);
}

void Jobs::need_thread() {
  if (board_->n_idle >= board_->ready.size() + (board_->discarded.empty() ? 0 : 1) ||
      threads_.size() >= most_threads)
    return;
  threads_.emplace_back([board = board_](const std::stop_token& ends) { board->run(ends); });
}

void Jobs::start(const std::shared_ptr<Line>& line, std::shared_ptr<Started> job) {
  std::deque<std::shared_ptr<Started>> outdated;  // ends here, not under the lock
  const std::unique_lock lock(board_->mutex);
  job->line = line;
  job->epoch = line->epoch;
  job->since = Clock::now();
  ++line->undelivered;
  if (!line->keeps_every) {
    outdated = std::exchange(line->waiting, {});
    line->undelivered -= static_cast<int>(outdated.size());
  }
  if (line->running) {
    line->waiting.push_back(std::move(job));
    return;
  }
  line->running = job;
  board_->ready.push_back(std::move(job));
  need_thread();
  board_->changed.notify_all();
}

void Jobs::deliver() {
  ++frame_;
  std::vector<std::shared_ptr<Started>> ended;
  {
    const std::lock_guard lock(board_->mutex);
    ended = std::exchange(board_->ended, {});
    if (!board_->discarded.empty()) need_thread();
  }
  for (const auto& job : ended) take(*job);
}

void Jobs::take(Started& job) {
  {
    const std::lock_guard lock(board_->mutex);
    if (!job.is_wanted()) return;
    --job.line->undelivered;
  }
  if (!job.has_failed) {
    try {
      if (job.delivery) job.delivery();
      return;
    } catch (...) {
      job.problem = failure_of();
    }
  }
  if (job.failed) return job.failed(job.problem);
  tell(job.problem);
}

void Jobs::finish() {
  for (;;) {
    deliver();
    std::unique_lock lock(board_->mutex);
    board_->changed.wait(
        lock, [this] { return !board_->ended.empty() || (board_->ready.empty() && board_->n_busy == 0); });
    if (board_->ended.empty()) return;
  }
}

void Jobs::Board::bin(std::shared_ptr<void> thing) {
  const std::lock_guard lock(mutex);
  if (!is_open) return;
  discarded.push_back(std::move(thing));
  changed.notify_all();
}

void Jobs::Board::run(const std::stop_token& ends) {
  std::unique_lock lock(mutex);
  for (;;) {
    ++n_idle;
    const bool goes_on =
        changed.wait(lock, ends, [this] { return !ready.empty() || !discarded.empty(); }) && is_open;
    --n_idle;
    if (!goes_on) return;
    if (!ready.empty()) {
      run_one(lock);
      continue;
    }
    auto going = std::exchange(discarded, {});
    ++n_busy;
    lock.unlock();
    going.clear();
    lock.lock();
    --n_busy;
    changed.notify_all();
  }
}

void Jobs::Board::run_one(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Started> job = std::move(ready.front());
  ready.pop_front();
  ++n_busy;
  lock.unlock();
  try {
    job->delivery = job->job(job->token);
    if (!job->token.goes_on() && !job->line->keeps_every) job->problem.is_stopped = job->has_failed = true;
  } catch (...) {
    job->has_failed = true;
    job->problem = failure_of();
  }
  job->job = {};  // what it held may end beside the window
  lock.lock();
  --n_busy;
  job->line->running.reset();
  if (auto& waiting = job->line->waiting; !waiting.empty()) {
    job->line->running = waiting.front();
    ready.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  ended.push_back(job);
  changed.notify_all();
  if (wake) wake();
}

Lane::Lane(Jobs& jobs, Takes takes) : jobs_(jobs), line_(std::make_shared<Jobs::Line>()) {
  line_->keeps_every = takes == Takes::every;
}

Lane::~Lane() {
  if (!line_->keeps_every) cancel();
  wait();
  cancel();
}

void Lane::start(Jobs::Job job, Jobs::Failed failed, core::Token::Recalled recalled) {
  auto started = std::make_shared<Jobs::Started>(std::move(recalled));
  started->job = std::move(job);
  started->failed = std::move(failed);
  jobs_.start(line_, std::move(started));
}

void Lane::cancel() {
  std::deque<std::shared_ptr<Jobs::Started>> outdated;
  const std::unique_lock lock(jobs_.board_->mutex);
  outdated = std::exchange(line_->waiting, {});
  line_->undelivered = 0;
  ++line_->epoch;
  if (line_->running) line_->running->token.stop();
}

void Lane::stop(bool and_those_that_wait) {
  std::deque<std::shared_ptr<Jobs::Started>> outdated;  // ends here, not under the lock
  const std::lock_guard lock(jobs_.board_->mutex);
  if (and_those_that_wait) {
    outdated = std::exchange(line_->waiting, {});
    line_->undelivered -= static_cast<int>(outdated.size());
  }
  if (line_->running) line_->running->token.stop();
}

bool Lane::is_busy() const {
  const std::lock_guard lock(jobs_.board_->mutex);
  return line_->undelivered > 0;
}

bool Lane::is_running() const {
  const std::lock_guard lock(jobs_.board_->mutex);
  return line_->running != nullptr;
}

double Lane::seconds() const {
  const std::lock_guard lock(jobs_.board_->mutex);
  if (!line_->running || !line_->running->is_wanted()) return 0;
  return std::chrono::duration<double>(Jobs::Clock::now() - line_->running->since).count();
}

double Lane::share() const {
  const std::lock_guard lock(jobs_.board_->mutex);
  return line_->running ? line_->running->token.share() : 0;
}

std::uint64_t Lane::done() const {
  const std::lock_guard lock(jobs_.board_->mutex);
  return line_->running ? line_->running->token.done() : 0;
}

void Lane::wait() {
  std::unique_lock lock(jobs_.board_->mutex);
  jobs_.board_->changed.wait(lock, [this] { return !line_->running; });
}

}  // namespace app
