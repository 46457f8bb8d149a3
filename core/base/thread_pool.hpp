#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace core {

/// Tells the thread sanitizer, which does not see into oneTBB, that tasks begin after run() was called and
/// end before it returns.
class TaskOrder {
 public:
#ifdef __SANITIZE_THREAD__
  TaskOrder() {
    __tsan_release(&begin_);
  }
  void begin_task() {
    __tsan_acquire(&begin_);
  }
  void end_task() {
    __tsan_release(&end_);
  }
  ~TaskOrder() {
    __tsan_acquire(&end_);
  }

 private:
  char begin_ = 0, end_ = 0;
#else
  void begin_task() {}
  void end_task() {}
#endif
};

/// Threads of oneTBB that share the tasks of a caller, which is one of them. Several threads may call run()
/// at once, and a task may call it too.
class ThreadPool {
 public:
  /// Creates n_threads, at least 1, the caller included; fewer if the system has fewer.
  explicit ThreadPool(std::size_t n_threads)
      : arena_(static_cast<int>(std::max<std::size_t>(n_threads, 1))) {}

  std::size_t n_threads() const { return static_cast<std::size_t>(arena_.max_concurrency()); }

  /// Calls task(0) … task(count − 1), each once, started in this order; returns when all are done.
  ///
  /// After an exception no further task starts; it is rethrown once the running tasks have ended.
  template <class Task>
  void run(std::size_t count, const Task& task) {
    if (count < 2 || n_threads() == 1) {
      for (std::size_t k = 0; k < count; ++k) task(k);
      return;
    }
    std::atomic<std::size_t> next = 0;
    TaskOrder order;
    const auto take_tasks = [&](std::size_t) {
      order.begin_task();
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
        try {
          task(k);
        } catch (...) {
          next = count;
          order.end_task();
          throw;
        }
      }
      order.end_task();
    };
    const std::size_t n_runs = std::min(count, n_threads());
    arena_.execute([&] { tbb::parallel_for(std::size_t{0}, n_runs, take_tasks, tbb::simple_partitioner()); });
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
  tbb::task_arena arena_;
};

}  // namespace core
