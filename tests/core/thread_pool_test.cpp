#include "core/thread_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace core {
namespace {

TEST(ThreadPool, DoesEveryTaskOnceHoweverManyThereAreAndHoweverFastTheyFollow) {
  for (const std::size_t n_threads : {1, 2, 3, 8}) {
    ThreadPool pool(n_threads);
    EXPECT_EQ(pool.n_threads(), n_threads);
    for (std::size_t round = 0; round < 3000; ++round) {
      std::vector<int> times(round % 17, 0);
      pool.run(times.size(), [&](std::size_t task) { ++times.at(task); });
      EXPECT_EQ(times, std::vector<int>(round % 17, 1)) << n_threads << " threads, round " << round;
    }
  }
}

TEST(ThreadPool, SharesTasksThatTakeTime) {
  ThreadPool pool(2);
  std::vector<std::thread::id> by(8);
  pool.run(by.size(), [&](std::size_t task) {
    by[task] = std::this_thread::get_id();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_NE(std::count(by.begin(), by.end(), by.front()), std::ptrdiff_t(by.size()));
}

TEST(ThreadPool, DoesSmallWorkOnTheThreadOfItsCaller) {
  ThreadPool pool(4);
  pool.run(100, 99'999, [caller = std::this_thread::get_id()](std::size_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

}  // namespace
}  // namespace core
