#include "app/worker.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace app {

Worker::~Worker() {
  cancel();
  thread_.request_stop();
}

void Worker::when_done(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  when_done_ = std::move(call);
}

void Worker::start(Job job) {
  auto next = std::make_unique<Started>();
  next->job = std::move(job);
  std::unique_ptr<Started> outdated;  // ends here, not under the lock
  {
    const std::lock_guard lock(mutex_);
    outdated = std::exchange(waiting_, std::move(next));
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& ends) { run(ends); });
}

void Worker::cancel() {
  std::unique_ptr<Started> outdated;
  std::vector<std::unique_ptr<Started>> ended;
  const std::lock_guard lock(mutex_);
  outdated = std::move(waiting_);
  ended = std::move(ended_);
  ended_.clear();
  if (!running_) return;
  running_->is_wanted = false;
  running_->stop.request_stop();
}

bool Worker::deliver() {
  std::vector<std::unique_ptr<Started>> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::exchange(ended_, {});
  }
  bool delivered = false;
  for (const auto& job : ended) {
    if (!job->is_wanted || !job->delivery) continue;
    job->delivery();
    delivered = true;
  }
  return delivered;
}

bool Worker::is_busy() const {
  const std::lock_guard lock(mutex_);
  return waiting_ || (running_ && running_->is_wanted) ||
         std::ranges::any_of(ended_, [](const auto& job) { return job->is_wanted; });
}

bool Worker::has_waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_ != nullptr;
}

void Worker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !waiting_ && !running_; });
}

void Worker::run(const std::stop_token& ends) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, ends, [this] { return waiting_ != nullptr; })) {
    running_ = std::move(waiting_);
    Started& now = *running_;
    lock.unlock();
    try {
      now.delivery = now.job(now.stop.get_token());
    } catch (...) {
      now.delivery = [what = std::current_exception()] { std::rethrow_exception(what); };
    }
    lock.lock();
    ended_.push_back(std::move(running_));
    changed_.notify_all();
    if (when_done_) when_done_();
  }
}

}  // namespace app
