#include "core/attention/fast/thread_pool.hpp"

namespace core::attention::fast {
namespace {

/// Lets the other thread of a core go first for a moment.
void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until the number is another one: awake for some ten microseconds, as the next job often follows at
/// once.
template <class Number>
void wait_while(const std::atomic<Number>& number, Number old) {
  for (int k = 0; k < 1000; ++k) {
    if (number.load(std::memory_order_acquire) != old) return;
    pause();
  }
  number.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(std::size_t n_threads) {
  for (std::size_t k = 1; k < n_threads; ++k) threads_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::share(Job job) {
  if (threads_.empty() || job.count < 2) {
    for (std::size_t k = 0; k < job.count; ++k) job.call(job.task, k);
    return;
  }
  job_ = job;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(threads_.size(), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  take_tasks();
  for (std::size_t busy; (busy = busy_.load(std::memory_order_acquire)) > 0;) wait_while(busy_, busy);
}

void ThreadPool::take_tasks() {
  for (std::size_t k; (k = next_.fetch_add(1, std::memory_order_relaxed)) < job_.count;)
    job_.call(job_.task, k);
}

void ThreadPool::work() {
  for (unsigned seen = 0;; ++seen) {
    wait_while(round_, seen);
    if (stopping_.load()) return;
    take_tasks();
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace core::attention::fast
