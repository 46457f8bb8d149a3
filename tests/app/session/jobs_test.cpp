#include "app/session/jobs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <new>
#include <stdexcept>

#include "core/base/error.hpp"

namespace app {
namespace {

using testing::ElementsAre;

/// Keeps a job under way until it is let go.
struct Gate {
  std::latch has_begun{1}, may_end{1};
  Jobs::Job job(std::function<void()> delivery = {}) {
    return [this, delivery](const core::Token&) {
      has_begun.count_down();
      may_end.wait();
      return delivery;
    };
  }
};

struct JobsBesideTheWindow : testing::Test {
  std::vector<std::string> said;
  Jobs jobs;
  void SetUp() override {
    jobs.fail_by([this](const Failure& failure) { said.push_back(failure.words); });
  }
  /// A job whose result adds a letter.
  static Jobs::Job says(std::string& order, char c) {
    return [&order, c](const core::Token&) { return [&order, c] { order += c; }; };
  }
};

TEST_F(JobsBesideTheWindow, AreTakenOverInTheThreadThatAsks) {
  JobQueue lane(jobs);
  std::thread::id worked_in, delivered_in;
  lane.start([&](const core::Token&) {
    worked_in = std::this_thread::get_id();
    return [&] { delivered_in = std::this_thread::get_id(); };
  });
  lane.wait();
  EXPECT_EQ(delivered_in, std::thread::id());
  EXPECT_TRUE(lane.is_busy());
  jobs.deliver();
  EXPECT_EQ(delivered_in, std::this_thread::get_id());
  EXPECT_NE(worked_in, std::thread::id());
  EXPECT_NE(worked_in, delivered_in);
  EXPECT_FALSE(lane.is_busy());
}

TEST_F(JobsBesideTheWindow, OfALaneAreTheNewestOfThoseThatWait) {
  JobQueue lane(jobs);
  Gate gate;
  std::string order;
  lane.start(gate.job([&] { order += '0'; }));
  gate.has_begun.wait();
  for (const char c : {'1', '2', '3'}) lane.start(says(order, c));
  gate.may_end.count_down();
  jobs.finish();
  EXPECT_EQ(order, "03");
  EXPECT_FALSE(lane.is_busy());
}

TEST_F(JobsBesideTheWindow, HaveEachItsTurnWhereThatIsWanted) {
  JobQueue lane(jobs, JobQueue::Takes::every);
  Gate gate;
  std::string order;
  lane.start(gate.job([&] { order += '0'; }));
  for (const char c : {'1', '2', '3'}) lane.start(says(order, c));
  EXPECT_TRUE(lane.is_busy());
  gate.may_end.count_down();
  jobs.finish();
  EXPECT_EQ(order, "0123");
}

TEST_F(JobsBesideTheWindow, OfTwoLanesDoNotWaitForEachOther) {
  JobQueue slow(jobs), quick(jobs);
  Gate gate;
  std::string order;
  slow.start(gate.job([&] { order += 's'; }));
  gate.has_begun.wait();
  quick.start(says(order, 'q'));
  quick.wait();
  jobs.deliver();
  EXPECT_EQ(order, "q");
  gate.may_end.count_down();
  jobs.finish();
  EXPECT_EQ(order, "qs");
}

TEST_F(JobsBesideTheWindow, AreNeitherBegunNorTakenOverOnceTheyAreCancelled) {
  JobQueue lane(jobs);
  Gate gate;
  std::atomic<bool> goes_on = true, second = false;
  bool delivered = false;
  lane.start([&](const core::Token& token) {
    gate.has_begun.count_down();
    gate.may_end.wait();
    goes_on = token.goes_on();
    return [&] { delivered = true; };
  });
  gate.has_begun.wait();
  lane.start([&](const core::Token&) {
    second = true;
    return Jobs::Delivery();
  });
  lane.cancel();
  EXPECT_FALSE(lane.is_busy());
  gate.may_end.count_down();
  jobs.finish();
  EXPECT_FALSE(goes_on);
  EXPECT_FALSE(second);
  EXPECT_FALSE(delivered);
  EXPECT_TRUE(said.empty());
}

TEST_F(JobsBesideTheWindow, GoOnAfterACancelledOne) {
  JobQueue lane(jobs);
  Gate gate;
  std::string order;
  lane.start(gate.job([&] { order += '0'; }));
  gate.has_begun.wait();
  lane.cancel();
  lane.start(says(order, '1'));
  EXPECT_TRUE(lane.is_busy());
  gate.may_end.count_down();
  jobs.finish();
  EXPECT_EQ(order, "1");
}

TEST_F(JobsBesideTheWindow, AreNotTakenOverWhenOneThatEndedWithThemCancelsTheirLane) {
  JobQueue reader(jobs), readings(jobs);
  Gate gate;
  std::string order;
  reader.start([&](const core::Token&) {
    return [&] {
      order += 'r';
      readings.cancel();
    };
  });
  reader.wait();
  readings.start(says(order, 'x'));
  readings.wait();
  jobs.deliver();
  EXPECT_EQ(order, "r");
  EXPECT_FALSE(readings.is_busy());
  readings.start(gate.job([&] { order += 'y'; }));
  EXPECT_TRUE(readings.is_busy());
  gate.may_end.count_down();
  jobs.finish();
  EXPECT_EQ(order, "ry");
  EXPECT_FALSE(readings.is_busy());
}

TEST_F(JobsBesideTheWindow, AreAskedToStopWhenTheirLaneEnds) {
  std::latch has_begun(1);
  std::atomic<bool> stopped = false, waiting_ran = false;
  {
    JobQueue lane(jobs);
    lane.start([&](const core::Token& token) {
      has_begun.count_down();
      while (token.goes_on()) std::this_thread::yield();
      stopped = true;
      return Jobs::Delivery();
    });
    has_begun.wait();
    lane.start([&](const core::Token&) {
      waiting_ran = true;
      return Jobs::Delivery();
    });
  }
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(waiting_ran);
}

TEST_F(JobsBesideTheWindow, AreAllDoneBeforeALaneOfWhichNoneMayBeLostEnds) {
  Gate gate;
  std::vector<char> written;
  {
    JobQueue lane(jobs, JobQueue::Takes::every);
    lane.start(gate.job());
    for (const char c : {'a', 'b', 'c'})
      lane.start([&written, c](const core::Token&) {
        written.push_back(c);  // one at a time
        return Jobs::Delivery();
      });
    gate.may_end.count_down();
  }
  EXPECT_THAT(written, ElementsAre('a', 'b', 'c'));
}

TEST_F(JobsBesideTheWindow, FailAloneAndInWords) {
  JobQueue one(jobs), other(jobs), third(jobs);
  std::string order;
  one.start([](const core::Token&) -> Jobs::Delivery { throw std::runtime_error("out of chalk"); });
  one.wait();
  other.start(
      [](const core::Token&) -> Jobs::Delivery { return [] { throw core::Error("no room on the board"); }; });
  other.wait();
  third.start(says(order, 'x'));
  jobs.finish();
  EXPECT_THAT(said, ElementsAre("Something went wrong: out of chalk", "no room on the board"));
  EXPECT_EQ(order, "x");
  EXPECT_FALSE(one.is_busy() || other.is_busy());
}

TEST_F(JobsBesideTheWindow, TellWhoStartedThemThatMemoryIsLackingOrThatTheyWereStopped) {
  JobQueue lane(jobs, JobQueue::Takes::every);
  std::vector<Failure> failures;
  const auto failed = [&](const Failure& failure) { failures.push_back(failure); };
  lane.start([](const core::Token&) -> Jobs::Delivery { throw std::bad_alloc(); }, failed);
  jobs.finish();
  Gate gate;
  lane.start(
      [&](const core::Token& token) -> Jobs::Delivery {
        gate.has_begun.count_down();
        gate.may_end.wait();
        token.add(1);
        return {};
      },
      failed);
  gate.has_begun.wait();
  lane.stop();
  gate.may_end.count_down();
  jobs.finish();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_TRUE(failures[0].lacks_memory);
  EXPECT_FALSE(failures[0].is_stopped);
  EXPECT_TRUE(failures[1].is_stopped);
  EXPECT_TRUE(said.empty());
}

TEST_F(JobsBesideTheWindow, StopWhenWhatTheyReadIsRecalled) {
  JobQueue lane(jobs);
  const auto recalled = std::make_shared<std::atomic<bool>>(false);
  std::latch has_begun(1);
  std::vector<Failure> failures;
  lane.start(
      [&](const core::Token& token) {
        has_begun.count_down();
        while (token.goes_on()) std::this_thread::yield();
        return Jobs::Delivery();
      },
      [&](const Failure& failure) { failures.push_back(failure); }, recalled);
  has_begun.wait();
  *recalled = true;
  jobs.finish();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].is_stopped);
}

TEST_F(JobsBesideTheWindow, WakeTheLoop) {
  std::latch woken(2);
  jobs.wake_by([&] { woken.count_down(); });
  JobQueue lane(jobs);
  for (int k = 0; k < 2; ++k) {
    lane.start([](const core::Token&) { return Jobs::Delivery(); });
    lane.wait();
  }
  woken.wait();
  EXPECT_TRUE(woken.try_wait());
  jobs.wake_by({});
}

TEST_F(JobsBesideTheWindow, LetGoOfWhatTheyHoldBesideTheWindow) {
  struct Held {
    std::atomic<std::thread::id>& ended_in;
    ~Held() { ended_in = std::this_thread::get_id(); }
  };
  std::atomic<std::thread::id> ended_in;
  JobQueue lane(jobs);
  lane.start([held = std::make_shared<Held>(ended_in)](const core::Token&) { return Jobs::Delivery(); });
  jobs.finish();
  EXPECT_NE(ended_in.load(), std::thread::id());
  EXPECT_NE(ended_in.load(), std::this_thread::get_id());
}

/// Says in which thread it ended.
struct Ending {
  explicit Ending(std::atomic<std::thread::id>& thread) : where(&thread) {}
  ~Ending() {
    *where = std::this_thread::get_id();
    where->notify_all();
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  std::atomic<std::thread::id>* where;
};

TEST_F(JobsBesideTheWindow, EndWhatIsLetGoOf) {
  std::atomic<std::thread::id> where;
  jobs.destroy_async(std::make_unique<Ending>(where));
  jobs.deliver();
  where.wait(std::thread::id());
  EXPECT_NE(where.load(), std::this_thread::get_id());
}

TEST_F(JobsBesideTheWindow, EndWhatWasLeftAfterItsLastOwner) {
  std::atomic<std::thread::id> where;
  std::shared_ptr<Ending> first = jobs.destroyed_async(std::make_unique<Ending>(where)), second = first;
  first.reset();
  jobs.deliver();
  EXPECT_EQ(where.load(), std::thread::id());
  second.reset();
  jobs.deliver();
  where.wait(std::thread::id());
  EXPECT_NE(where.load(), std::this_thread::get_id());
}

TEST(JobsThatHaveEnded, KeepNothingThatWasNotTakenOver) {
  std::weak_ptr<int> left;
  {
    Jobs jobs;
    JobQueue lane(jobs);
    lane.start([&](const core::Token&) -> Jobs::Delivery {
      const std::shared_ptr<int> thing = jobs.destroyed_async(std::make_unique<int>(7));
      left = thing;
      return [thing] {};
    });
    lane.wait();
    EXPECT_FALSE(left.expired());
  }
  EXPECT_TRUE(left.expired());
}

TEST(JobsThatHaveEnded, LeaveToTheLastOwnerWhatOutlivesThem) {
  std::atomic<std::thread::id> where;
  std::shared_ptr<Ending> ending = Jobs().destroyed_async(std::make_unique<Ending>(where));
  EXPECT_EQ(where.load(), std::thread::id());
  ending.reset();
  EXPECT_EQ(where.load(), std::this_thread::get_id());
}

}  // namespace
}  // namespace app
