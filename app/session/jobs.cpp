#include "app/session/jobs.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>

#include "app/session/fibers.hpp"
#include "core/base/error.hpp"
#include "core/system/fetching.hpp"

namespace app {

Failure current_failure(const std::string& what) {
  const auto with = [&](const char* words, const char* link) {
    return what.empty() ? words : words + (link + what);
  };
  const std::string wrong = with("Something went wrong", " with ");
  try {
    throw;
  } catch (const core::Stopped& stopped) {
    return {stopped.what(), true};
  } catch (const core::UntrustedPath& outside) {
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

constexpr std::size_t max_threads = 16;  // a long job never keeps a short one waiting

}  // namespace

Jobs::~Jobs() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_open = false;
    shared_->wake = {};
    for (auto& thread : threads_) thread.request_stop();
  }
  threads_.clear();
  // Undelivered jobs may own objects that own the shared state.
  const auto ready = std::exchange(shared_->ready, {});
  const auto ended = std::exchange(shared_->ended, {});
  const auto discarded = std::exchange(shared_->discarded, {});
}

void Jobs::set_wake_callback(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void Jobs::ensure_thread() {
  if (!has_threads_) {
    if (shared_->wake) shared_->wake();
    return;
  }
  if (shared_->n_idle >= shared_->ready.size() + (shared_->discarded.empty() ? 0 : 1) ||
      threads_.size() >= max_threads)
    return;
  threads_.emplace_back([shared = shared_](const std::stop_token& ends) { shared->run(ends); });
}

void Jobs::start(const std::shared_ptr<Queue>& queue, std::shared_ptr<SubmittedJob> job) {
  std::deque<std::shared_ptr<SubmittedJob>> outdated;  // ends here, not under the lock
  const std::unique_lock lock(shared_->mutex);
  job->queue = queue;
  job->epoch = queue->epoch;
  job->since = Clock::now();
  ++queue->undelivered;
  if (!queue->keeps_every) {
    outdated = std::exchange(queue->waiting, {});
    queue->undelivered -= static_cast<int>(outdated.size());
  }
  if (queue->running) {
    queue->waiting.push_back(std::move(job));
    return;
  }
  queue->running = job;
  shared_->ready.push_back(std::move(job));
  ensure_thread();
  shared_->changed.notify_all();
}

void Jobs::deliver() {
  ++frame_;
  std::vector<std::shared_ptr<SubmittedJob>> ended;
  {
    std::unique_lock lock(shared_->mutex);
    if (!has_threads_) shared_->run_pieces(lock, Clock::now() + piece_time);
    ended = std::exchange(shared_->ended, {});
    if (!shared_->discarded.empty()) ensure_thread();
  }
  for (const auto& job : ended) take(*job);
}

void Jobs::take(SubmittedJob& job) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (!job.is_wanted()) return;
    --job.queue->undelivered;
  }
  if (!job.has_failed) {
    try {
      if (job.delivery) job.delivery();
      return;
    } catch (...) {
      job.problem = current_failure();
    }
  }
  if (job.on_failure) return job.on_failure(job.problem);
  report_failure(job.problem);
}

void Jobs::finish() {
  for (;;) {
    deliver();
    std::unique_lock lock(shared_->mutex);
    if (!has_threads_ && !shared_->ready.empty())
      shared_->run_one(lock, shared_->take_ready(Clock::time_point::max()));
    shared_->changed.wait(
        lock, [this] { return !shared_->ended.empty() || (shared_->ready.empty() && shared_->n_busy == 0); });
    if (shared_->ended.empty()) return;
  }
}

void Jobs::wait(const Queue& queue) {
  std::unique_lock lock(shared_->mutex);
  if (has_threads_) return shared_->changed.wait(lock, [&queue] { return !queue.running; });
  while (const auto job = queue.running) {
    if (std::erase(shared_->ready, job) == 0) return;
    shared_->run_one(lock, job);
  }
}

Clock::time_point Jobs::next_piece() const {
  const std::lock_guard lock(shared_->mutex);
  return has_threads_ ? Clock::time_point::max() : shared_->next_begin();
}

bool Jobs::end_stopped() {
  if (has_threads_) return std::this_thread::yield(), true;
  std::unique_lock lock(shared_->mutex);
  const auto is_stopped = [](const auto& job) { return job->token.is_stopped() && !job->queue->keeps_every; };
  while (true) {
    const auto found = std::ranges::find_if(shared_->ready, is_stopped);
    if (found == shared_->ready.end()) return false;
    const auto job = *found;
    shared_->ready.erase(found);
    job->job = {};
    shared_->run_one(lock, job);
  }
}

void Jobs::SharedState::discard(std::shared_ptr<void> thing) {
  const std::lock_guard lock(mutex);
  if (!is_open) return;
  discarded.push_back(std::move(thing));
  changed.notify_all();
}

void Jobs::SharedState::run(const std::stop_token& ends) {
  std::unique_lock lock(mutex);
  for (;;) {
    ++n_idle;
    for (auto at = next_begin(); at > Clock::now() && !ends.stop_requested(); at = next_begin())
      changed.wait_until(lock, ends, at, [this, at] { return next_begin() < at; });
    --n_idle;
    if (!is_open) return;
    if (auto job = take_ready(Clock::now())) {
      run_one(lock, std::move(job));
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

Clock::time_point Jobs::SharedState::next_begin() const {
  if (!discarded.empty()) return {};
  auto next = Clock::time_point::max();
  for (const auto& job : ready) next = std::min(next, job->begin());
  return next;
}

std::shared_ptr<Jobs::SubmittedJob> Jobs::SharedState::take_ready(Clock::time_point now) {
  const auto found = std::ranges::find_if(ready, [now](const auto& job) { return job->begin() <= now; });
  if (found == ready.end()) return nullptr;
  auto job = std::move(*found);
  ready.erase(found);
  return job;
}

void Jobs::SharedState::run_pieces(std::unique_lock<std::mutex>& lock, Clock::time_point end) {
  auto going = std::exchange(discarded, {});
  lock.unlock();
  going.clear();
  lock.lock();
  for (auto now = Clock::now(); now < end; now = Clock::now()) {
    const auto job = take_ready(now);
    if (!job) return;
    run_one(lock, job, end);
  }
}

void Jobs::SharedState::run_one(std::unique_lock<std::mutex>& lock, std::shared_ptr<SubmittedJob> job,
                                Clock::time_point piece_end) {
  ++n_busy;
  lock.unlock();
  // A job that ended is kept by `ended` alone: its last holder destroys its delivery, which takes the lock.
  run_in_fiber(
      [self = shared_from_this(), job = std::move(job), piece_end](core::StopToken::Pause pause) mutable {
        job->token.begin_piece(piece_end, pause);
        self->work_on(std::move(job));
      });
  lock.lock();
}

void Jobs::SharedState::work_on(std::shared_ptr<SubmittedJob> job) {
  const auto stop_if_told = [&job] {
    if (job->token.is_stopped() && !job->queue->keeps_every) job->problem.is_stopped = job->has_failed = true;
  };
  bool goes_on = false;
  try {
    if (job->job) job->delivery = job->job(job->token);
    stop_if_told();
  } catch (const core::system::NotHere&) {
    stop_if_told();
    goes_on = !job->has_failed;
  } catch (...) {
    job->has_failed = true;
    job->problem = current_failure();
  }
  if (!goes_on) job->job = {};  // so that its captures are destroyed in the background
  const std::lock_guard lock(mutex);
  --n_busy;
  if (goes_on) return ready.push_back(std::move(job));
  job->queue->running.reset();
  if (auto& waiting = job->queue->waiting; !waiting.empty()) {
    job->queue->running = waiting.front();
    ready.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  ended.push_back(std::move(job));
  changed.notify_all();
  if (wake) wake();
}

JobQueue::JobQueue(Jobs& jobs, QueuePolicy policy) : jobs_(jobs), queue_(std::make_shared<Jobs::Queue>()) {
  queue_->keeps_every = policy == QueuePolicy::every;
}

JobQueue::~JobQueue() {
  if (!queue_->keeps_every) cancel();
  wait();
  cancel();
}

void JobQueue::start(Jobs::Job job, Jobs::FailureHandler on_failure, core::StopToken::PreemptFlag preempted) {
  submit({}, std::move(job), std::move(on_failure), std::move(preempted));
}

void JobQueue::start_at(Clock::time_point begin, Jobs::Job job, Jobs::FailureHandler on_failure) {
  submit(begin, std::move(job), std::move(on_failure), nullptr);
}

void JobQueue::submit(Clock::time_point begin, Jobs::Job job, Jobs::FailureHandler on_failure,
                      core::StopToken::PreemptFlag preempted) {
  auto started = std::make_shared<Jobs::SubmittedJob>(std::move(preempted));
  started->not_before = begin;
  started->job = std::move(job);
  started->on_failure = std::move(on_failure);
  jobs_.start(queue_, std::move(started));
}

void JobQueue::cancel() {
  std::deque<std::shared_ptr<Jobs::SubmittedJob>> outdated;
  const std::unique_lock lock(jobs_.shared_->mutex);
  outdated = std::exchange(queue_->waiting, {});
  queue_->undelivered = 0;
  ++queue_->epoch;
  stop_running();
}

void JobQueue::stop(bool drops_waiting) {
  std::deque<std::shared_ptr<Jobs::SubmittedJob>> outdated;  // ends here, not under the lock
  const std::lock_guard lock(jobs_.shared_->mutex);
  if (drops_waiting) {
    outdated = std::exchange(queue_->waiting, {});
    queue_->undelivered -= static_cast<int>(outdated.size());
  }
  stop_running();
}

void JobQueue::stop_running() {
  if (!queue_->running) return;
  queue_->running->token.stop();
  jobs_.shared_->changed.notify_all();  // for a thread that waits for its time
}

bool JobQueue::is_busy() const {
  const std::lock_guard lock(jobs_.shared_->mutex);
  return queue_->undelivered > 0;
}

double JobQueue::seconds() const {
  const std::lock_guard lock(jobs_.shared_->mutex);
  if (!queue_->running || !queue_->running->is_wanted()) return 0;
  return std::chrono::duration<double>(Clock::now() - queue_->running->since).count();
}

double JobQueue::share() const {
  const std::lock_guard lock(jobs_.shared_->mutex);
  return queue_->running ? queue_->running->token.share() : 0;
}

std::uint64_t JobQueue::done() const {
  const std::lock_guard lock(jobs_.shared_->mutex);
  return queue_->running ? queue_->running->token.done() : 0;
}

void JobQueue::wait() {
  jobs_.wait(*queue_);
}

}  // namespace app
