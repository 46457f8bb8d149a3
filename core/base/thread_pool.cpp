#include "core/base/thread_pool.hpp"

#include <system_error>
#include <utility>

#include "core/base/signals.hpp"

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
  threads_.reserve(n_threads);
  const SignalBlocker held;  // whoever calls answers them, not these threads
  try {
    while (threads_.size() + 1 < n_threads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // the system gives no more
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::share(const Job& job) {
  const bool alone = threads_.empty() || job.count < 2;
  if (!alone && !is_shared_.exchange(true, std::memory_order_acquire)) {
    share_among_threads(job);
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    is_shared_.store(false, std::memory_order_release);
    if (failure) std::rethrow_exception(failure);
  } else {
    for (std::size_t k = 0; k < job.count; ++k) job.call(job.task, k);
  }
}

void ThreadPool::share_among_threads(const Job& job) {
  job_ = job;
  has_failed_.store(false, std::memory_order_relaxed);
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
    const std::size_t n_done = do_task(job, job.count - left) ? 1 : 1 + take_the_rest();
    if (done_.fetch_add(n_done, std::memory_order_acq_rel) + n_done == job.count) done_.notify_one();
    open = open_.load(std::memory_order_acquire);
  }
}

bool ThreadPool::do_task(const Job& job, std::size_t index) {
  try {
    job.call(job.task, index);
    return true;
  } catch (...) {
    if (!has_failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
    return false;
  }
}

std::size_t ThreadPool::take_the_rest() {
  return open_.fetch_and(~(one_job - 1), std::memory_order_relaxed) % one_job;
}

void ThreadPool::work() {
  for (unsigned seen = 0;;) {
    wait_while(round_, seen);
    seen = round_.load(std::memory_order_acquire);  // before it asks: the end is a round of its own
    if (stopping_.load()) return;
    take_tasks();
  }
}

}  // namespace core
