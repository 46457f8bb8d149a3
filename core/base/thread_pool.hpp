#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace core {

/// Threads of oneTBB that share the tasks of whoever calls, who is one of them. Several threads may call at
/// once, and a task may call itself.
class ThreadPool {
 public:
  /// The caller counts as one of n_threads, at least 1; there are fewer where the system gives no more.
  explicit ThreadPool(std::size_t n_threads)
      : arena_(static_cast<int>(std::max<std::size_t>(n_threads, 1))) {}

  std::size_t n_threads() const { return static_cast<std::size_t>(arena_.max_concurrency()); }

  /// Calls task(0) … task(count − 1), each once, begun in this order; returns when all are done.
  ///
  /// Once a task has thrown no other begins; what it threw is thrown here when those under way have ended.
  template <class Task>
  void run(std::size_t count, const Task& task) {
    if (count < 2 || n_threads() == 1) {
      for (std::size_t k = 0; k < count; ++k) task(k);
      return;
    }
    std::atomic<std::size_t> next = 0;
    const auto take_tasks = [&](std::size_t) {
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
        try {
          task(k);
        } catch (...) {
          next = count;
          throw;
        }
      }
    };
    arena_.execute([&] {
      tbb::parallel_for(std::size_t{0}, std::min(count, n_threads()), take_tasks, tbb::simple_partitioner());
    });
  }
  /// Fewer multiplications than these are done before another thread would have woken.
  static constexpr std::size_t worth_waking = 30'000;
  /// The same, but on the caller's thread where so many multiplications are not worth waking another.
  template <class Task>
  void run(std::size_t count, std::size_t multiplications, const Task& task) {
    if (multiplications < worth_waking)
      for (std::size_t k = 0; k < count; ++k) task(k);
    else
      run(count, task);
  }

 private:
  tbb::task_arena arena_;
};

}  // namespace core
