#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/session/failure.hpp"
#include "core/base/token.hpp"

namespace app {

/// What takes longer than a frame is done here, on threads beside the window; what comes of it is taken over
/// once a frame. Jobs are started through a Lane or a Slot.
///
/// All members but wake() are for one thread, that of the window.
class Jobs {
 public:
  using Clock = std::chrono::steady_clock;
  /// What is to be done with a job's result, in the window's thread.
  using Delivery = std::function<void()>;
  /// Runs in a thread of its own; what it holds ends there.
  using Job = std::function<Delivery(const core::Token&)>;
  using Failed = std::function<void(const Failure&)>;

  Jobs();
  /// Asks every job to stop and waits for those that are under way.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// Is called from another thread whenever there is something to take over.
  void wake_by(std::function<void()> wake);
  /// Is told of the failures that no starter of a job wants to hear of.
  void fail_by(Failed failed) { failed_ = std::move(failed); }
  void tell(const Failure& failure) const {
    if (failed_) failed_(failure);
  }

  /// Once a frame: carries out what the jobs gave that have ended since, in that order. A job or a delivery
  /// that throws fails alone, in words.
  void deliver();
  /// Of deliver().
  std::uint64_t frame() const { return frame_; }
  /// Until no job is left to run or to be taken over.
  void finish();

  /// Ends a thing beside the window, soon, as giving back gigabytes of memory takes longer than a frame;
  /// nobody may read it any longer.
  template <class Thing>
  void let_go(Thing thing) {
    board_->bin(std::make_shared<Thing>(std::move(thing)));
  }
  /// A thing whose last owner, in whatever thread, lets it go so.
  template <class Thing>
  std::shared_ptr<Thing> leave(std::unique_ptr<Thing> thing) const {
    return {thing.release(), [board = board_](Thing* last) { board->bin(std::shared_ptr<Thing>(last)); }};
  }

 private:
  friend class Lane;

  struct Started;
  /// The jobs of one lane; guarded by the board's mutex.
  struct Line {
    bool keeps_every = false;
    std::deque<std::shared_ptr<Started>> waiting;
    std::shared_ptr<Started> running;
    std::uint64_t epoch = 0;  // what was started in an earlier one was cancelled, wherever it is by now
    int undelivered = 0;      // that are wanted
  };
  struct Started {
    explicit Started(core::Token::Recalled recalled) : token(std::move(recalled)) {}
    Job job;
    Failed failed;
    core::Token token;
    Clock::time_point since;
    std::shared_ptr<Line> line;
    Delivery delivery;
    Failure problem;
    std::uint64_t epoch = 0;
    bool has_failed = false;

    bool is_wanted() const { return epoch == line->epoch; }
  };
  /// What the threads share with the window's; it outlives both.
  struct Board {
    void bin(std::shared_ptr<void> thing);
    void run(const std::stop_token& ends);
    void run_one(std::unique_lock<std::mutex>& lock);

    std::mutex mutex;
    std::condition_variable_any changed;
    std::deque<std::shared_ptr<Started>> ready;
    std::vector<std::shared_ptr<Started>> ended;
    std::vector<std::shared_ptr<void>> discarded;
    std::function<void()> wake;
    std::size_t n_idle = 0, n_busy = 0;
    bool is_open = true;
  };

  void start(const std::shared_ptr<Line>& line, std::shared_ptr<Started> job);
  void take(Started& job);
  void need_thread();

  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  Failed failed_;
  std::uint64_t frame_ = 0;
  std::vector<std::jthread> threads_;  // the last member, so that they end first
};

/// One line of jobs: one at a time, of those that wait the newest alone, or each in its turn.
class Lane {
 public:
  enum class Takes { newest, every };
  explicit Lane(Jobs& jobs, Takes takes = Takes::newest);
  /// Stops the job under way and waits for it; where each has its turn, all are done first.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Jobs& jobs() const { return jobs_; }
  /// Without failed, a failure goes to whom Jobs tells. A job that reads what may be recalled stops then.
  void start(Jobs::Job job, Jobs::Failed failed = {}, core::Token::Recalled recalled = nullptr);
  /// Drops every job and every result; the job under way is asked to stop.
  void cancel();
  /// Asks the job under way to stop; it then fails with is_stopped. Those that wait are dropped where that is
  /// said.
  void stop(bool and_those_that_wait = false);

  /// Whether a job that was not cancelled waits, runs, or is to be taken over.
  bool is_busy() const;
  /// Whether any job, wanted or not, waits or is under way.
  bool is_running() const;
  /// Of the job under way: for how long, the share that is done and what its token counts; 0 where there is
  /// none.
  double seconds() const;
  double share() const;
  std::uint64_t done() const;
  /// Until no job is left to run.
  void wait();

 private:
  Jobs& jobs_;
  std::shared_ptr<Jobs::Line> line_;
};

}  // namespace app
