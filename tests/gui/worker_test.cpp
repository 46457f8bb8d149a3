#include "app/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>

namespace app {
namespace {

/// Keeps a worker busy until it is let go, or asked to stop where it listens.
struct Gate {
  std::latch has_begun{1}, may_end{1};
  Worker::Job job(std::function<void()> delivery = {}) {
    return [this, delivery](const std::stop_token&) {
      has_begun.count_down();
      may_end.wait();
      return delivery;
    };
  }
};

TEST(Worker, DeliversInTheThreadThatAsks) {
  Worker worker;
  std::thread::id worked_in, delivered_in;
  worker.start([&](const std::stop_token&) {
    worked_in = std::this_thread::get_id();
    return [&] { delivered_in = std::this_thread::get_id(); };
  });
  worker.wait();
  EXPECT_EQ(delivered_in, std::thread::id());
  EXPECT_TRUE(worker.is_busy());
  EXPECT_TRUE(worker.deliver());
  EXPECT_EQ(delivered_in, std::this_thread::get_id());
  EXPECT_NE(worked_in, std::thread::id());
  EXPECT_NE(worked_in, delivered_in);
  EXPECT_FALSE(worker.is_busy());
  EXPECT_FALSE(worker.deliver());
}

TEST(Worker, RunsOfThoseThatWaitOnlyTheNewest) {
  Worker worker;
  Gate gate;
  std::string order;
  const auto says = [&](char c) {
    return [&order, c](const std::stop_token&) { return [&order, c] { order += c; }; };
  };
  worker.start(gate.job([&] { order += '0'; }));
  gate.has_begun.wait();
  worker.start(says('1'));
  worker.start(says('2'));
  worker.start(says('3'));
  EXPECT_TRUE(worker.has_waiting());
  gate.may_end.count_down();
  worker.wait();
  worker.deliver();
  EXPECT_EQ(order, "03");
}

TEST(Worker, NeitherDeliversNorBeginsWhatWasCancelled) {
  Worker worker;
  Gate gate;
  std::atomic<bool> stopped = false, second = false;
  bool delivered = false;
  worker.start([&](const std::stop_token& stop) {
    gate.has_begun.count_down();
    gate.may_end.wait();
    stopped = stop.stop_requested();
    return [&] { delivered = true; };
  });
  gate.has_begun.wait();
  worker.start([&](const std::stop_token&) {
    second = true;
    return Worker::Delivery();
  });
  worker.cancel();
  EXPECT_FALSE(worker.is_busy());
  gate.may_end.count_down();
  worker.wait();
  EXPECT_FALSE(worker.deliver());
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(second);
  EXPECT_FALSE(delivered);
}

TEST(Worker, GoesOnAfterACancelledJob) {
  Worker worker;
  Gate gate;
  int result = 0;
  worker.start(gate.job());
  gate.has_begun.wait();
  worker.cancel();
  worker.start([&](const std::stop_token&) { return [&] { result = 7; }; });
  EXPECT_TRUE(worker.is_busy());
  gate.may_end.count_down();
  worker.wait();
  worker.deliver();
  EXPECT_EQ(result, 7);
}

TEST(Worker, EndsWhileItIsBusyByAskingTheJobToStop) {
  std::latch has_begun(1);
  std::atomic<bool> stopped = false, waiting_ran = false;
  {
    Worker worker;
    worker.start([&](const std::stop_token& stop) {
      has_begun.count_down();
      while (!stop.stop_requested()) std::this_thread::yield();
      stopped = true;
      return Worker::Delivery();
    });
    has_begun.wait();
    worker.start([&](const std::stop_token&) {
      waiting_ran = true;
      return Worker::Delivery();
    });
  }
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(waiting_ran);
}

TEST(Worker, ThrowsWhereItDeliversWhatTheJobThrew) {
  Worker worker;
  worker.start([](const std::stop_token&) -> Worker::Delivery { throw std::runtime_error("out of chalk"); });
  worker.wait();
  EXPECT_THROW(worker.deliver(), std::runtime_error);
  EXPECT_FALSE(worker.is_busy());
}

TEST(Worker, SaysWhenAJobIsDone) {
  std::latch done(2);
  Worker worker;
  worker.when_done([&] { done.count_down(); });
  worker.start([](const std::stop_token&) { return Worker::Delivery(); });
  worker.wait();
  worker.start([](const std::stop_token&) { return Worker::Delivery(); });
  done.wait();
  SUCCEED();
}

TEST(Worker, LetsGoOfWhatAJobHeldInTheThreadThatAsks) {
  struct Held {
    std::thread::id& ended_in;
    ~Held() { ended_in = std::this_thread::get_id(); }
  };
  std::thread::id ended_in;
  Worker worker;
  worker.start(
      [held = std::make_shared<Held>(ended_in)](const std::stop_token&) { return Worker::Delivery(); });
  worker.wait();
  EXPECT_EQ(ended_in, std::thread::id());
  worker.deliver();
  EXPECT_EQ(ended_in, std::this_thread::get_id());
}

}  // namespace
}  // namespace app
