#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace core {

/// Threads that share the tasks of one caller at a time and sleep in between.
///
/// Several threads may call: whoever calls while the tasks of another are shared does its own alone, and so
/// does a task that calls the pool itself.
class ThreadPool {
 public:
  /// The caller counts as one of n_threads, at least 1; there are fewer where the system gives no more.
  explicit ThreadPool(std::size_t n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t n_threads() const { return threads_.size() + 1; }

  /// Calls task(0) … task(count − 1), each once, in any order; returns when all are done.
  ///
  /// Once a task has thrown no other begins; what it threw is thrown here when those under way have ended.
  template <class Task>
  void run(std::size_t count, const Task& task) {
    share({[](const void* t, std::size_t k) { (*static_cast<const Task*>(t))(k); }, &task, count});
  }
  /// The same, but on the caller's thread where so many multiplications are not worth waking another.
  template <class Task>
  void run(std::size_t count, std::size_t multiplications, const Task& task) {
    if (multiplications < 100'000)
      for (std::size_t k = 0; k < count; ++k) task(k);
    else
      run(count, task);
  }

 private:
  struct Job {
    void (*call)(const void* task, std::size_t index) = nullptr;
    const void* task = nullptr;
    std::size_t count = 0;
  };

  void share(const Job& job);
  void share_among_threads(const Job& job);
  void take_tasks();
  /// False when it threw.
  bool do_task(const Job& job, std::size_t index);
  /// Takes all tasks that nobody has taken, not to be done.
  std::size_t take_the_rest();
  void work();

  // Whoever has taken a task may read the job: it stays until all of its tasks are done. A thread that comes
  // too late finds none, and nobody waits for it.
  Job job_;
  std::atomic<std::uint64_t> open_{0};  // how many tasks nobody has taken; above, which job they are of
  std::atomic<std::size_t> done_{0};
  std::atomic<unsigned> round_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_shared_{false};  // there is a job
  std::atomic<bool> has_failed_{false};
  std::exception_ptr failure_;  // written by whoever sets has_failed_, read when all tasks are done
  std::vector<std::thread> threads_;
};

}  // namespace core
