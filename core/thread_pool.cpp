#include "core/thread_pool.hpp"

namespace core {
namespace {

constexpr std::uint64_t one_job = std::uint64_t{1} << 32;  // more tasks than any job has

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
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t number = open_.load(std::memory_order_relaxed) / one_job + 1;
  open_.store(number * one_job + job.count, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  take_tasks();
  for (std::size_t done; (done = done_.load(std::memory_order_acquire)) < job.count;) wait_while(done_, done);
}

void ThreadPool::take_tasks() {
  std::uint64_t open = open_.load(std::memory_order_acquire);
  while (const std::size_t left = open % one_job) {
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acquire)) continue;
    const Job job = job_;
    job.call(job.task, job.count - left);
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == job.count) done_.notify_one();
    open = open_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work() {
  for (unsigned seen = 0;;) {
    wait_while(round_, seen);
    if (stopping_.load()) return;
    seen = round_.load(std::memory_order_acquire);
    take_tasks();
  }
}

}  // namespace core
