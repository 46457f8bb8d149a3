#include "core/base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace core {
namespace {

TEST(ThreadPool, DoesEveryTaskOnceHoweverManyThereAreAndHoweverFastTheyFollow) {
  for (const std::size_t n_threads : {1, 2, 3, 8}) {
    ThreadPool pool(n_threads);
    for (std::size_t round = 0; round < 3000; ++round) {
      std::vector<int> times(round % 17, 0);
      pool.run(times.size(), [&](std::size_t task) { ++times.at(task); });
      EXPECT_EQ(times, std::vector<int>(round % 17, 1)) << n_threads << " threads, round " << round;
    }
  }
}

TEST(ThreadPool, DoesSmallWorkOnTheThreadOfItsCaller) {
  ThreadPool pool(4);
  pool.run(100, 99'999, [caller = std::this_thread::get_id()](std::size_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

TEST(ThreadPool, ThrowsToItsCallerWhatATaskThrewOnceNoneIsUnderWayAndGoesOn) {
  for (const std::size_t n_threads : {1, 2, 4}) {
    ThreadPool pool(n_threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> begun{0}, under_way{0};
      const auto task = [&](std::size_t) {
        ++under_way;
        const bool fails = ++begun == 5;
        if (!fails) std::this_thread::sleep_for(std::chrono::microseconds(20));
        --under_way;
        if (fails) throw std::bad_alloc();
      };
      EXPECT_THROW(pool.run(100'000, task), std::bad_alloc);
      EXPECT_EQ(under_way, 0);
      EXPECT_LT(begun, 100'000) << "the others are not begun";
    }
    std::vector<int> times(50, 0);
    pool.run(times.size(), [&](std::size_t k) { ++times[k]; });
    EXPECT_EQ(times, std::vector<int>(50, 1));
  }
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::vector<int>> times(4, std::vector<int>(40, 0));
  {
    std::vector<std::jthread> callers;
    for (auto& own : times)
      callers.emplace_back([&pool, &own] {
        for (int round = 0; round < 2000; ++round) pool.run(own.size(), [&](std::size_t k) { ++own[k]; });
      });
  }
  for (const auto& own : times) EXPECT_EQ(own, std::vector<int>(40, 2000));
}

TEST(ThreadPool, ServesATaskThatHasTasksItself) {
  ThreadPool pool(3);
  std::vector<std::vector<int>> times(10, std::vector<int>(10, 0));
  pool.run(times.size(),
           [&](std::size_t i) { pool.run(times[i].size(), [&, i](std::size_t j) { ++times[i][j]; }); });
  EXPECT_EQ(times, std::vector<std::vector<int>>(10, std::vector<int>(10, 1)));
}

}  // namespace
}  // namespace core
