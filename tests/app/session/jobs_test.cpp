#include "app/session/jobs.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <deque>
#include <future>
#include <latch>
#include <new>
#include <stdexcept>

#include "core/base/error.hpp"

namespace app {
namespace {

using testing::ElementsAre;

/// Keeps a job running until may_end is counted down.
struct Gate {
  std::latch has_begun{1}, may_end{1};
  Jobs::Job job(std::function<void()> delivery = {}) {
    return [this, delivery](const core::StopToken&) {
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
    jobs.set_failure_handler([this](const Failure& failure) { said.push_back(failure.words); });
  }
  /// Returns a job whose delivery appends a letter.
  static Jobs::Job says(std::string& order, char c) {
    return [&order, c](const core::StopToken&) { return [&order, c] { order += c; }; };
  }
};

TEST_F(JobsBesideTheWindow, AreTakenOverInTheThreadThatAsks) {
  JobQueue queue(jobs);
  std::thread::id worked_in, delivered_in;
  queue.start([&](const core::StopToken&) {
    worked_in = std::this_thread::get_id();
    return [&] { delivered_in = std::this_thread::get_id(); };
  });
  queue.wait();
  EXPECT_EQ(delivered_in, std::thread::id());
  EXPECT_TRUE(queue.is_busy());
  jobs.deliver();
  EXPECT_EQ(delivered_in, std::this_thread::get_id());
  EXPECT_NE(worked_in, std::thread::id());
  EXPECT_NE(worked_in, delivered_in);
  EXPECT_FALSE(queue.is_busy());
}

TEST_F(JobsBesideTheWindow, OfAQueueAreTheNewestOfThoseThatWaitOrEachInItsTurn) {
  for (const auto& [takes, expected] :
       {std::pair(JobQueue::QueuePolicy::newest, "03"), {JobQueue::QueuePolicy::every, "0123"}}) {
    JobQueue queue(jobs, takes);
    Gate gate;
    std::string order;
    queue.start(gate.job([&] { order += '0'; }));
    gate.has_begun.wait();
    for (const char c : {'1', '2', '3'}) queue.start(says(order, c));
    EXPECT_TRUE(queue.is_busy());
    gate.may_end.count_down();
    jobs.finish();
    EXPECT_EQ(order, expected);
    EXPECT_FALSE(queue.is_busy());
  }
}

TEST_F(JobsBesideTheWindow, OfTwoQueuesDoNotWaitForEachOther) {
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

TEST_F(JobsBesideTheWindow, AreNeitherBegunNorTakenOverOnceTheyAreCanceledButTheNextIs) {
  JobQueue queue(jobs);
  Gate gate;
  std::atomic<bool> should_continue = true, second = false;
  bool delivered = false;
  queue.start([&](const core::StopToken& token) {
    gate.has_begun.count_down();
    gate.may_end.wait();
    should_continue = token.should_continue();
    return [&] { delivered = true; };
  });
  gate.has_begun.wait();
  queue.start([&](const core::StopToken&) {
    second = true;
    return Jobs::Delivery();
  });
  queue.cancel();
  EXPECT_FALSE(queue.is_busy());
  std::string order;
  queue.start(says(order, '3'));
  EXPECT_TRUE(queue.is_busy());
  gate.may_end.count_down();
  jobs.finish();
  EXPECT_FALSE(should_continue);
  EXPECT_FALSE(second);
  EXPECT_FALSE(delivered);
  EXPECT_EQ(order, "3");
  EXPECT_TRUE(said.empty());
}

TEST_F(JobsBesideTheWindow, AreNotTakenOverWhenOneThatEndedWithThemCancelsTheirQueue) {
  JobQueue reader(jobs), readings(jobs);
  Gate gate;
  std::string order;
  reader.start([&](const core::StopToken&) {
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

TEST_F(JobsBesideTheWindow, AreAskedToStopWhenTheirQueueEnds) {
  std::latch has_begun(1);
  std::atomic<bool> stopped = false, waiting_ran = false;
  {
    JobQueue queue(jobs);
    queue.start([&](const core::StopToken& token) {
      has_begun.count_down();
      while (token.should_continue()) std::this_thread::yield();
      stopped = true;
      return Jobs::Delivery();
    });
    has_begun.wait();
    queue.start([&](const core::StopToken&) {
      waiting_ran = true;
      return Jobs::Delivery();
    });
  }
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(waiting_ran);
}

TEST_F(JobsBesideTheWindow, AreAllDoneBeforeAQueueOfWhichNoneMayBeLostEnds) {
  Gate gate;
  std::vector<char> written;
  {
    JobQueue queue(jobs, JobQueue::QueuePolicy::every);
    queue.start(gate.job());
    for (const char c : {'a', 'b', 'c'})
      queue.start([&written, c](const core::StopToken&) {
        written.push_back(c);  // one at a time
        return Jobs::Delivery();
      });
    gate.may_end.count_down();
  }
  EXPECT_THAT(written, ElementsAre('a', 'b', 'c'));
}

TEST_F(JobsBesideTheWindow, BeginAtTheirTimeOrOnceTheyAreStoppedAndKeepNoneWaitingMeanwhile) {
  std::atomic<int> n_begun = 0, n_stopped = 0;
  const auto counts = [&](const core::StopToken& token) {
    ++n_begun;
    if (!token.should_continue()) ++n_stopped;
    return Jobs::Delivery();
  };
  const auto soon = Clock::now() + std::chrono::milliseconds(20);
  Clock::time_point begun;
  {
    std::deque<JobQueue> late;  // more than there are threads
    for (int i = 0; i < 40; ++i)
      late.emplace_back(jobs).start_at(Clock::now() + std::chrono::hours(1), counts);
    JobQueue queue(jobs), next(jobs);
    next.start_at(soon, [&](const core::StopToken&) {
      begun = Clock::now();
      return Jobs::Delivery();
    });
    std::string order;
    queue.start(says(order, 'a'));
    queue.wait();
    next.wait();
    jobs.deliver();
    EXPECT_EQ(order, "a");
    EXPECT_GE(begun, soon);
    EXPECT_EQ(n_begun, 0);
    late.front().stop();
    late.front().wait();
    EXPECT_EQ(n_begun, 1);
  }
  EXPECT_EQ(n_begun, 40);
  EXPECT_EQ(n_stopped, 40);
}

TEST_F(JobsBesideTheWindow, FailAloneAndInWords) {
  JobQueue one(jobs), other(jobs), third(jobs);
  std::string order;
  one.start([](const core::StopToken&) -> Jobs::Delivery { throw std::runtime_error("out of chalk"); });
  one.wait();
  other.start([](const core::StopToken&) -> Jobs::Delivery {
    return [] { throw core::Error("no room on the board"); };
  });
  other.wait();
  third.start(says(order, 'x'));
  jobs.finish();
  EXPECT_THAT(said, ElementsAre("Something went wrong: out of chalk", "no room on the board"));
  EXPECT_EQ(order, "x");
  EXPECT_FALSE(one.is_busy() || other.is_busy());
}

TEST_F(JobsBesideTheWindow, TellWhoStartedThemThatMemoryIsLackingOrThatTheyWereStopped) {
  JobQueue queue(jobs, JobQueue::QueuePolicy::every);
  std::vector<Failure> failures;
  const auto failed = [&](const Failure& failure) { failures.push_back(failure); };
  queue.start([](const core::StopToken&) -> Jobs::Delivery { throw std::bad_alloc(); }, failed);
  jobs.finish();
  Gate gate;
  queue.start(
      [&](const core::StopToken& token) -> Jobs::Delivery {
        gate.has_begun.count_down();
        gate.may_end.wait();
        token.add(1);
        return {};
      },
      failed);
  gate.has_begun.wait();
  queue.stop();
  gate.may_end.count_down();
  jobs.finish();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_TRUE(failures[0].is_out_of_memory);
  EXPECT_FALSE(failures[0].is_stopped);
  EXPECT_TRUE(failures[1].is_stopped);
  EXPECT_TRUE(said.empty());
}

TEST_F(JobsBesideTheWindow, StopWhenWhatTheyReadIsRecalled) {
  JobQueue queue(jobs);
  const auto preempted = std::make_shared<std::atomic<bool>>(false);
  std::latch has_begun(1);
  std::vector<Failure> failures;
  queue.start(
      [&](const core::StopToken& token) {
        has_begun.count_down();
        while (token.should_continue()) std::this_thread::yield();
        return Jobs::Delivery();
      },
      [&](const Failure& failure) { failures.push_back(failure); }, preempted);
  has_begun.wait();
  *preempted = true;
  jobs.finish();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].is_stopped);
}

TEST_F(JobsBesideTheWindow, WakeTheLoop) {
  std::latch woken(2);
  jobs.set_wake_callback([&] { woken.count_down(); });
  JobQueue queue(jobs);
  for (int k = 0; k < 2; ++k) {
    queue.start([](const core::StopToken&) { return Jobs::Delivery(); });
    queue.wait();
  }
  woken.wait();
  EXPECT_TRUE(woken.try_wait());
  jobs.set_wake_callback({});
}

/// Records the thread that destroys it.
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

TEST_F(JobsBesideTheWindow, EndWhatTheyHoldAndWhatIsLetGoOfAfterItsLastOwner) {
  std::atomic<std::thread::id> held_by_job, let_go, shared;
  JobQueue queue(jobs);
  queue.start(
      [held = std::make_shared<Ending>(held_by_job)](const core::StopToken&) { return Jobs::Delivery(); });
  jobs.destroy_async(std::make_unique<Ending>(let_go));
  std::shared_ptr<Ending> first = jobs.with_async_deleter(std::make_unique<Ending>(shared)), second = first;
  first.reset();
  jobs.finish();
  EXPECT_EQ(shared.load(), std::thread::id());
  second.reset();
  jobs.deliver();
  for (std::atomic<std::thread::id>* where : {&held_by_job, &let_go, &shared}) {
    where->wait(std::thread::id());
    EXPECT_NE(where->load(), std::this_thread::get_id());
  }
}

/// Jobs in a program that cannot start threads.
struct JobsBetweenFrames : testing::Test {
  Jobs jobs{false};
  std::string order;
  Jobs::Job says(char c) {
    return [this, c](const core::StopToken&) { return [this, c] { order += c; }; };
  }
};

TEST_F(JobsBetweenFrames, RunWhereTheyAreDeliveredOrAwaitedInThisThread) {
  JobQueue first(jobs), second(jobs), late(jobs);
  EXPECT_EQ(jobs.next_piece(), Clock::time_point::max());
  first.start([here = std::this_thread::get_id(), says = says('a')](const core::StopToken& token) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    return says(token);
  });
  second.start(says('b'));
  const auto begin = Clock::now() + std::chrono::hours(1);
  late.start_at(begin, says('c'));
  EXPECT_LE(jobs.next_piece(), Clock::now());
  jobs.deliver();
  EXPECT_EQ(order, "ab");
  EXPECT_EQ(jobs.next_piece(), begin);
  late.wait();
  EXPECT_EQ(jobs.next_piece(), Clock::time_point::max());
  jobs.deliver();
  EXPECT_EQ(order, "abc");
  second.start(says('d'));
  jobs.finish();
  EXPECT_EQ(order, "abcd");
}

TEST_F(JobsBetweenFrames, AreToldAfterSomeMillisecondsThatAPartIsDue) {
  JobQueue slow(jobs), quick(jobs);
  slow.start([this](const core::StopToken& token) {
    while (!token.is_due()) std::this_thread::yield();
    return [this] { order += 's'; };
  });
  quick.start(says('q'));
  jobs.deliver();
  EXPECT_EQ(order, "s");
  jobs.deliver();
  EXPECT_EQ(order, "sq");
}

TEST_F(JobsBetweenFrames, LetGoOfWhatIsRecalledWithoutHavingBegun) {
  JobQueue queue(jobs);
  const auto preempted = std::make_shared<std::atomic<bool>>(false), held = preempted;
  bool begun = false;
  queue.start(
      [&begun, held](const core::StopToken&) {
        begun = true;
        return Jobs::Delivery();
      },
      {}, preempted);
  const long readers = held.use_count();
  EXPECT_FALSE(jobs.end_stopped());
  EXPECT_EQ(held.use_count(), readers);
  *preempted = true;
  EXPECT_FALSE(jobs.end_stopped());
  EXPECT_LT(held.use_count(), readers);
  jobs.deliver();
  EXPECT_FALSE(begun);
  EXPECT_FALSE(queue.is_busy());
}

TEST(JobsThatHaveEnded, KeepNothingThatWasNotTakenOver) {
  std::weak_ptr<int> left;
  {
    Jobs jobs;
    JobQueue queue(jobs);
    queue.start([&](const core::StopToken&) -> Jobs::Delivery {
      const std::shared_ptr<int> thing = jobs.with_async_deleter(std::make_unique<int>(7));
      left = thing;
      return [thing] {};
    });
    queue.wait();
    EXPECT_FALSE(left.expired());
  }
  EXPECT_TRUE(left.expired());
}

TEST(JobsThatHaveEnded, LeaveToTheLastOwnerWhatOutlivesThem) {
  std::atomic<std::thread::id> where;
  std::shared_ptr<Ending> ending = Jobs().with_async_deleter(std::make_unique<Ending>(where));
  EXPECT_EQ(where.load(), std::thread::id());
  ending.reset();
  EXPECT_EQ(where.load(), std::this_thread::get_id());
}

/// Key of a value that takes longer than a frame to compute.
struct Question {
  int shape = 0, number = 0;
  bool is_compatible(const Question& other) const { return shape == other.shape; }
  friend bool operator==(const Question&, const Question&) = default;
};

struct AnAsyncValue : testing::Test {
  std::promise<void> may_end;
  std::shared_future<void> end = may_end.get_future().share();
  std::atomic<bool> was_given_up = false;
  std::atomic<int> begun = 0;
  std::vector<std::string> said;
  Jobs jobs;
  AsyncValue<Question, int> answers{jobs};

  void SetUp() override {
    jobs.set_failure_handler([this](const Failure& failure) { said.push_back(failure.words); });
  }

  /// Requests the value as a frame does.
  void ask(const Question& q) {
    if (answers.needs(q))
      answers.begin(q, Schedule::background, [this, q](const core::StopToken& token) {
        ++begun;
        begun.notify_all();
        end.wait();
        if (!token.should_continue()) was_given_up = true;
        return q.number;
      });
  }
};

TEST_F(AnAsyncValue, WhatFailsAtOnceIsNotTriedAgain) {
  answers.begin({1, 1}, Schedule::immediate, [](const auto&) { return 1; });
  int tried = 0;
  for (int frame = 0; frame < 10; ++frame) {
    if (!answers.needs({1, 2}, Schedule::immediate)) continue;
    EXPECT_THROW(answers.begin({1, 2}, Schedule::immediate,
                               [&](const auto&) -> int {
                                 ++tried;
                                 throw core::Error("no chalk");
                               }),
                 core::Error);
  }
  EXPECT_EQ(tried, 1);
  EXPECT_EQ(*answers.value(), 1);
  EXPECT_FALSE(answers.is_busy());
  EXPECT_TRUE(answers.needs({1, 3}, Schedule::immediate)) << "another one is";
  answers.begin({1, 3}, Schedule::immediate, [](const auto&) { return 3; });
  EXPECT_EQ(*answers.value(), 3);
}

TEST_F(AnAsyncValue, TheLastAnswerStaysUntilTheNextIsThere) {
  answers.begin({1, 1}, Schedule::immediate, [](const auto&) { return 1; });
  ask({1, 2});
  ASSERT_NE(answers.value(), nullptr);
  EXPECT_EQ(*answers.value(), 1);
  EXPECT_FALSE(answers.matches({1, 2}));
  EXPECT_TRUE(answers.is_busy());
  may_end.set_value();
  jobs.finish();
  ask({1, 2});
  EXPECT_EQ(*answers.value(), 2);
  EXPECT_FALSE(answers.is_busy());
}

TEST_F(AnAsyncValue, OfManyQuestionsOnlyTheFirstAndTheNewestAreWorkedOut) {
  for (int number = 1; number <= 20; ++number) ask({1, number});
  begun.wait(0);
  EXPECT_EQ(begun, 1);
  may_end.set_value();
  jobs.finish();
  EXPECT_EQ(*answers.value(), 1) << "a drag is seen to move";
  ask({1, 20});
  jobs.finish();
  EXPECT_EQ(*answers.value(), 20);
  EXPECT_FALSE(was_given_up);
}

TEST_F(AnAsyncValue, WhatIsOfNoUseAnyMoreIsGivenUp) {
  ask({1, 1});
  begun.wait(0);
  ask({2, 1});
  may_end.set_value();
  jobs.finish();
  ask({2, 1});
  EXPECT_TRUE(was_given_up);
  EXPECT_EQ(answers.key()->shape, 2);
}

TEST_F(AnAsyncValue, WhatFailedIsSaidOnceAndNotTriedAgain) {
  int tried = 0;
  const auto fail = [&] {
    if (answers.needs({1, 1})) {
      ++tried;
      answers.begin({1, 1}, Schedule::background, [](const auto&) -> int { throw core::Error("no"); });
    }
  };
  fail();
  jobs.finish();
  EXPECT_THAT(said, testing::ElementsAre("no"));
  for (int frame = 0; frame < 3; ++frame) fail();
  EXPECT_EQ(tried, 1);
}

TEST_F(AnAsyncValue, IsNotBegunForAKeyThatIsSeenInOneFrameOnly) {
  for (int number = 1; number <= 20; ++number) {  // a drag
    EXPECT_FALSE(answers.needs({1, number}, Schedule::debounced));
    EXPECT_FALSE(answers.needs({1, number}, Schedule::debounced)) << "asked for twice in a frame";
    EXPECT_TRUE(answers.is_busy()) << "the next frame begins it";
    jobs.deliver();
  }
  EXPECT_TRUE(answers.needs({1, 20}, Schedule::debounced));
}

TEST_F(AnAsyncValue, IsBegunAnewAfterWhatItReadWasRecalled) {
  const auto preempted = std::make_shared<std::atomic<bool>>(false);
  const auto begin = [&] {
    answers.begin(
        {1, 1}, Schedule::background, [&](const core::StopToken&) { return end.wait(), 5; }, preempted);
  };
  ASSERT_TRUE(answers.needs({1, 1}));
  begin();
  *preempted = true;
  may_end.set_value();
  jobs.finish();
  EXPECT_EQ(answers.value(), nullptr) << "what it gave may be half of it";
  EXPECT_TRUE(said.empty());
  *preempted = false;
  ASSERT_TRUE(answers.needs({1, 1}));
  begin();
  jobs.finish();
  ASSERT_NE(answers.value(), nullptr);
  EXPECT_EQ(*answers.value(), 5);
}

}  // namespace
}  // namespace app
