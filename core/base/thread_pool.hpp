#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "core/base/threads.hpp"

namespace core {

/// Threads that share the tasks of a caller, which is one of them. Several threads may call run() at once,
/// and a task may call it too.
class ThreadPool {
 public:
  /// Creates n_threads, at least 1, the caller included; fewer if the system has fewer.
  explicit ThreadPool(std::size_t n_threads = n_processors());
  ~ThreadPool();

  std::size_t n_threads() const { return n_threads_; }

  /// Calls task(0) … task(count − 1), each once, started in this order; returns when all are done.
  ///
  /// After an exception no further task starts; it is rethrown once the running tasks have ended.
  template <class Task>
  void run(std::size_t count, const Task& task) {
    if (count < 2 || n_threads_ == 1)
      for (std::size_t k = 0; k < count; ++k) task(k);
    else
      share(
          count, [](const void* all, std::size_t k) { (*static_cast<const Task*>(all))(k); }, &task);
  }
  /// Fewer multiplications than this are done before another thread would wake.
  static constexpr std::size_t min_parallel_multiplications = 30'000;
  /// Does the same, on the caller's thread alone if there are too few multiplications to wake another.
  template <class Task>
  void run(std::size_t count, std::size_t multiplications, const Task& task) {
    if (multiplications < min_parallel_multiplications)
      for (std::size_t k = 0; k < count; ++k) task(k);
    else
      run(count, task);
  }

 private:
  struct Arena;
  void share(std::size_t count, void (*call)(const void* task, std::size_t k), const void* task);

  std::unique_ptr<Arena> arena_;  // none where there are no threads
  std::size_t n_threads_ = 1;
};

/// A value of its own for each thread that asks for one. Thread-safe.
template <class Value>
class PerThread {
 public:
  /// Returns the value of the calling thread, at first Value().
  Value& local() {
    const std::lock_guard lock(mutex_);
    return values_[std::this_thread::get_id()];
  }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, Value> values_;
};

}  // namespace core
