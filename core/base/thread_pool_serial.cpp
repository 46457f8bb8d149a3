// The caller's thread alone, where there are no others.
#include "core/base/thread_pool.hpp"

namespace core {

struct ThreadPool::Arena {};

ThreadPool::ThreadPool(std::size_t) {}
ThreadPool::~ThreadPool() = default;

void ThreadPool::share(std::size_t count, void (*call)(const void* task, std::size_t k), const void* task) {
  for (std::size_t k = 0; k < count; ++k) call(task, k);
}

}  // namespace core
