#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/token.hpp"

namespace app {

/// Why something has not given what it was to give.
struct Failure {
  std::string words;        ///< one line
  bool is_stopped = false;  ///< it was asked to stop
  bool lacks_memory = false;
  bool is_untrusted = false;  ///< a file names others elsewhere
};

/// What the exception that is being handled says; what was to be had is named where the exception does not.
/// To be called in a handler.
Failure failure_of(const std::string& what = "");

/// For so long nobody notices that something is awaited, in seconds; beyond it the window says so.
constexpr double unnoticed_seconds = 0.5;

/// What takes longer than a frame is done here, on threads of its own; its result is delivered
/// once a frame. Jobs are started through a JobQueue or an AsyncValue.
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

  /// Destroys a thing in the background, soon, as giving back gigabytes of memory takes longer than a frame;
  /// nobody may read it any longer.
  template <class Thing>
  void destroy_async(Thing thing) {
    shared_->discard(std::make_shared<Thing>(std::move(thing)));
  }
  /// A thing that is destroyed so when its last owner, in whatever thread, drops it.
  template <class Thing>
  std::shared_ptr<Thing> destroyed_async(std::unique_ptr<Thing> thing) const {
    return {thing.release(),
            [shared = shared_](Thing* last) { shared->discard(std::shared_ptr<Thing>(last)); }};
  }

 private:
  friend class JobQueue;

  struct Submitted;
  /// The jobs of one queue; guarded by the shared mutex.
  struct Queue {
    bool keeps_every = false;
    std::deque<std::shared_ptr<Submitted>> waiting;
    std::shared_ptr<Submitted> running;
    std::uint64_t epoch = 0;  // what was started in an earlier one was cancelled, wherever it is by now
    int undelivered = 0;      // that are wanted
  };
  struct Submitted {
    explicit Submitted(core::Token::Recalled recalled) : token(std::move(recalled)) {}
    Job job;
    Failed failed;
    core::Token token;
    Clock::time_point since;
    std::shared_ptr<Queue> queue;
    Delivery delivery;
    Failure problem;
    std::uint64_t epoch = 0;
    bool has_failed = false;

    bool is_wanted() const { return epoch == queue->epoch; }
  };
  /// What the threads share with the window's; it outlives both.
  struct Shared {
    void discard(std::shared_ptr<void> thing);
    void run(const std::stop_token& ends);
    void run_one(std::unique_lock<std::mutex>& lock);

    std::mutex mutex;
    std::condition_variable_any changed;
    std::deque<std::shared_ptr<Submitted>> ready;
    std::vector<std::shared_ptr<Submitted>> ended;
    std::vector<std::shared_ptr<void>> discarded;
    std::function<void()> wake;
    std::size_t n_idle = 0, n_busy = 0;
    bool is_open = true;
  };

  void start(const std::shared_ptr<Queue>& queue, std::shared_ptr<Submitted> job);
  void take(Submitted& job);
  void need_thread();

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  Failed failed_;
  std::uint64_t frame_ = 0;
  std::vector<std::jthread> threads_;  // the last member, so that they end first
};

/// A queue of jobs: one at a time, of those that wait the newest alone, or each in its turn.
class JobQueue {
 public:
  enum class Takes { newest, every };
  explicit JobQueue(Jobs& jobs, Takes takes = Takes::newest);
  /// Stops the job under way and waits for it; where each has its turn, all are done first.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

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
  /// Of the job under way: for how long, the share that is done and what its token counts; 0 where there is
  /// none.
  double seconds() const;
  double share() const;
  std::uint64_t done() const;
  /// Until no job is left to run.
  void wait();

 private:
  Jobs& jobs_;
  std::shared_ptr<Jobs::Queue> queue_;
};

/// When a value is to be worked out that is not there yet.
enum class When {
  at_once,     ///< before anything else: it is quick
  background,  ///< on another thread
  when_still   ///< there too, when it is asked for in a second frame: not in every frame of a drag
};

/// A value that is worked out of a key, while the last one stays.
///
/// One is worked out at a time. Of the keys that are asked for meanwhile only the newest is worked out next;
/// the one under way is given up then, unless key.is_near(newest) says that its value is still of use. All
/// members are for one thread.
template <class Key, class Value>
class AsyncValue {
 public:
  /// What makes the value; it owns what it reads where that is in the background. What it gives after it was
  /// told not to go on is dropped.
  using Make = std::function<Value(const core::Token&)>;

  explicit AsyncValue(Jobs& jobs) : queue_(jobs) {}

  /// Whether the value of this key is to be begun now. To be called in every frame in which it is wanted.
  bool needs(const Key& key, When when = When::background) {
    if (seen_ != key) seen_ = key, seen_in_ = queue_.jobs().frame();
    if (key_ == key) return cancel(), false;
    if (when == When::at_once) return !has_failed(key);
    if (asked_ == key) return false;  // it is under way, or has failed
    if constexpr (requires { key.is_near(key); })
      if (queue_.is_busy() && asked_ && asked_->is_near(key)) return false;
    return when == When::background || queue_.jobs().frame() > seen_in_;
  }
  /// Begins the value of a key that is needed; at once throws what make throws. In the background it is begun
  /// again later when what it reads is recalled.
  void begin(const Key& key, When when, const Make& make, core::Token::Recalled recalled = nullptr) {
    cancel();
    asked_ = key;
    if (when == When::at_once) {
      value_.emplace(make(core::Token()));
      key_ = key;
      asked_.reset();
      return;
    }
    queue_.start(
        [this, key, make](const core::Token& token) {
          const auto value = std::make_shared<Value>(make(token));
          return [this, key, value] {
            value_.emplace(std::move(*value));
            key_ = key;
            asked_.reset();
          };
        },
        [this](const Failure& failure) {
          if (failure.is_stopped) return asked_.reset();  // it may be asked for again
          queue_.jobs().tell(failure);
        },
        std::move(recalled));
  }

  /// A value that is known without working it out.
  void put(const Key& key, Value value) {
    cancel();
    value_.emplace(std::move(value));
    key_ = key;
  }

  /// The last value, which is not known any longer from now on, or nothing.
  std::optional<Value> take() {
    key_.reset();
    return std::exchange(value_, std::nullopt);
  }
  /// The last value and its key, or nullptr.
  const Value* value() const { return value_ ? &*value_ : nullptr; }
  const Key* key() const { return key_ ? &*key_ : nullptr; }
  bool is_of(const Key& key) const { return key_ == key; }

  /// Whether the value of this key was asked for and could not be worked out.
  bool has_failed(const Key& key) const { return asked_ == key && !queue_.is_busy(); }
  /// Whether a value is being worked out, or will be in the next frame.
  bool is_busy() const {
    const bool is_next = seen_ && queue_.jobs().frame() <= seen_in_ + 1 && asked_ != seen_ && key_ != seen_;
    return queue_.is_busy() || is_next;
  }
  /// For how long the value under way has been, in seconds.
  double seconds() const { return queue_.seconds(); }
  /// The share of it that is done, and what its token has counted.
  double share() const { return queue_.share(); }
  std::uint64_t done() const { return queue_.done(); }
  /// Drops what is under way.
  void cancel() {
    if (!asked_) return;
    queue_.cancel();
    asked_.reset();
  }
  /// Drops the last value as well.
  void clear() {
    cancel();
    value_.reset();
    key_.reset();
    seen_.reset();
  }

 private:
  std::optional<Value> value_;
  std::optional<Key> key_, asked_, seen_;  // asked_ is also what has failed, so that it is not tried again
  std::uint64_t seen_in_ = 0;              // the frame in which seen_ was first asked for
  JobQueue queue_;
};

}  // namespace app
