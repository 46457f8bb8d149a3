// The threads of oneTBB.
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>

#include "core/base/thread_pool.hpp"

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace core {
namespace {

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

}  // namespace

struct ThreadPool::Arena {
  tbb::task_arena threads;
};

ThreadPool::ThreadPool(std::size_t n_threads)
    : arena_(new Arena{tbb::task_arena(static_cast<int>(std::max<std::size_t>(n_threads, 1)))}),
      n_threads_(static_cast<std::size_t>(arena_->threads.max_concurrency())) {}

ThreadPool::~ThreadPool() = default;

void ThreadPool::share(std::size_t count, void (*call)(const void* task, std::size_t k), const void* task) {
  std::atomic<std::size_t> next = 0;
  TaskOrder order;
  const auto take_tasks = [&](std::size_t) {
    order.begin_task();
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      try {
        call(task, k);
      } catch (...) {
        next = count;
        order.end_task();
        throw;
      }
    }
    order.end_task();
  };
  const std::size_t n_runs = std::min(count, n_threads_);
  arena_->threads.execute(
      [&] { tbb::parallel_for(std::size_t{0}, n_runs, take_tasks, tbb::simple_partitioner()); });
}

}  // namespace core
