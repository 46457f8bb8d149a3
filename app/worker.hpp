#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace app {

/// One thread beside the window, for what takes longer than a frame: one job at a time, of those that wait
/// only the newest.
///
/// A job gives what is to be done with its result; deliver() does that in the caller's thread, where also
/// everything ends that a job holds. All members are for one thread; the worker's own begins with the first
/// job.
class Worker {
 public:
  using Delivery = std::function<void()>;
  using Job = std::function<Delivery(std::stop_token)>;

  Worker() = default;
  /// Asks the job under way to stop, and waits for it.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Is called from the worker's thread after each job; it must not call the worker.
  void when_done(std::function<void()> call);

  /// The job runs after the one under way; one that was still waiting is dropped.
  void start(Job job);
  /// Drops every job and every result; the job under way is asked to stop.
  void cancel();
  /// Carries out what the jobs that have ended since gave; what a job threw is thrown here. Whether there was
  /// anything.
  bool deliver();
  /// Whether a job that was not cancelled waits, runs, or is to be delivered.
  bool is_busy() const;
  /// Whether a job waits for the one under way.
  bool has_waiting() const;
  /// Until no job is left to run.
  void wait();

 private:
  struct Started {
    Job job;
    std::stop_source stop;
    Delivery delivery;
    bool is_wanted = true;
  };
  void run(const std::stop_token& ends);

  std::function<void()> when_done_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::unique_ptr<Started> waiting_, running_;
  std::vector<std::unique_ptr<Started>> ended_;
  std::jthread thread_;  // the last member, so that it ends first
};

}  // namespace app
