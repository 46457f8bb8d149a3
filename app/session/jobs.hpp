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

#include "core/base/threads.hpp"
#include "core/base/token.hpp"

namespace app {

using Clock = std::chrono::steady_clock;

/// Reason why a job or another action failed.
struct Failure {
  std::string words;        ///< one line
  bool is_stopped = false;  ///< it was stopped on request
  bool is_out_of_memory = false;
  bool is_untrusted = false;  ///< a file names files outside its folder
};

/// Describes the exception being handled; `what` names the subject where the exception does not. Must be
/// called in an exception handler.
Failure current_failure(const std::string& what = "");

/// Seconds for which a wait goes unnoticed; after that the window shows it.
constexpr double busy_delay_seconds = 0.5;

/// Threads for work that takes longer than a frame; results are delivered once a frame. Jobs are started
/// through a JobQueue or an AsyncValue. Where there are no threads, deliver() runs jobs for some
/// milliseconds; one that asks its token then pauses, if the browser can, and goes on between the frames.
///
/// All members but destroy_async() and with_async_deleter() are for one thread, that of the window.
class Jobs {
 public:
  /// Handler of a job's result, called in the window's thread.
  using Delivery = std::function<void()>;
  /// Work that runs on another thread, where its captures are destroyed too. It owns what it reads: one that
  /// paused may outlive its queue.
  using Job = std::function<Delivery(const core::StopToken&)>;
  using FailureHandler = std::function<void(const Failure&)>;

  explicit Jobs(bool has_threads = core::has_threads) : has_threads_(has_threads) {}
  /// Drops the waiting jobs and waits for the running ones.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// Sets a function that is called from a worker thread whenever deliver() has a result.
  void set_wake_callback(std::function<void()> wake);
  /// Sets the handler of failures of jobs that were started without one.
  void set_failure_handler(FailureHandler on_failure) { on_failure_ = std::move(on_failure); }
  void report_failure(const Failure& failure) const {
    if (on_failure_) on_failure_(failure);
  }

  /// Delivers, once a frame, the results of the jobs that have ended, in that order. A job or delivery that
  /// throws affects no other and is reported as a Failure.
  void deliver();
  /// Returns the number of calls of deliver().
  std::uint64_t frame() const { return frame_; }
  /// Delivers results until no job is left to run or to deliver.
  void finish();
  /// Returns when deliver() can run a job, where there are no threads; else, or without a job, the far
  /// future.
  Clock::time_point next_piece() const;
  /// Lets jobs end that were told to stop: gives way to their threads or, where there are none, drops them.
  /// Returns whether another call may help.
  bool end_stopped();

  /// Destroys an object in the background, as freeing gigabytes takes longer than a frame; it must have no
  /// readers.
  template <class Thing>
  void destroy_async(Thing thing) {
    shared_->discard(std::make_shared<Thing>(std::move(thing)));
  }
  /// Returns a pointer whose last owner, in any thread, has the object destroyed in the background.
  template <class Thing>
  std::shared_ptr<Thing> with_async_deleter(std::unique_ptr<Thing> thing) const {
    return {thing.release(),
            [shared = shared_](Thing* last) { shared->discard(std::shared_ptr<Thing>(last)); }};
  }

 private:
  friend class JobQueue;

  struct SubmittedJob;
  /// The jobs of one queue; guarded by the shared mutex.
  struct Queue {
    bool keeps_every = false;
    std::deque<std::shared_ptr<SubmittedJob>> waiting;
    std::shared_ptr<SubmittedJob> running;
    std::uint64_t epoch = 0;  // jobs of an earlier one are canceled, even if running or ended
    int undelivered = 0;      // without canceled ones
  };
  struct SubmittedJob {
    explicit SubmittedJob(core::StopToken::PreemptFlag preempted) : token(std::move(preempted)) {}
    Job job;
    FailureHandler on_failure;
    core::StopToken token;
    Clock::time_point since, not_before;
    std::shared_ptr<Queue> queue;
    Delivery delivery;
    Failure problem;
    std::uint64_t epoch = 0;
    bool has_failed = false;

    bool is_wanted() const { return epoch == queue->epoch; }
    /// Returns when it may begin; one that was stopped may at once, so that it ends.
    Clock::time_point begin() const { return token.is_stopped() ? Clock::time_point() : not_before; }
  };
  /// State shared by the worker threads and the window's; outlives both.
  struct SharedState : std::enable_shared_from_this<SharedState> {
    void discard(std::shared_ptr<void> thing);
    void run(const std::stop_token& ends);
    /// Runs a job that is ready no more, to its end or first pause after that time.
    void run_one(std::unique_lock<std::mutex>& lock, std::shared_ptr<SubmittedJob> job,
                 Clock::time_point piece_end = Clock::time_point::max());
    /// Runs a job on the stack that it keeps.
    void work_on(std::shared_ptr<SubmittedJob> job);
    /// Runs the first jobs that may begin, until that time.
    void run_pieces(std::unique_lock<std::mutex>& lock, Clock::time_point end);
    /// Returns when a thread has something to do next; the far future if nothing waits.
    Clock::time_point next_begin() const;
    /// Removes and returns the first job that may begin at that time, or returns nullptr.
    std::shared_ptr<SubmittedJob> take_ready(Clock::time_point now);

    std::mutex mutex;
    std::condition_variable_any changed;
    std::deque<std::shared_ptr<SubmittedJob>> ready;
    std::vector<std::shared_ptr<SubmittedJob>> ended;
    std::vector<std::shared_ptr<void>> discarded;
    std::function<void()> wake;
    std::size_t n_idle = 0, n_busy = 0;
    bool is_open = true;
  };

  void start(const std::shared_ptr<Queue>& queue, std::shared_ptr<SubmittedJob> job);
  void take(SubmittedJob& job);
  void ensure_thread();
  /// Waits for the running job of a queue; without threads, runs it to its end unless it has paused.
  void wait(const Queue& queue);

  std::shared_ptr<SharedState> shared_ = std::make_shared<SharedState>();
  FailureHandler on_failure_;
  std::uint64_t frame_ = 0;
  bool has_threads_;
  std::vector<std::jthread> threads_;  // the last member, so that they end first
};

/// A queue that runs one job at a time: of the waiting ones only the newest, or every one in order.
class JobQueue {
 public:
  enum class QueuePolicy { newest, every };
  explicit JobQueue(Jobs& jobs, QueuePolicy policy = QueuePolicy::newest);
  /// Stops the running job and waits for it; with Takes::every, finishes all jobs first.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  Jobs& jobs() const { return jobs_; }
  /// Queues a job. Without `on_failure`, its failure goes to Jobs::report_failure(); once `preempted` is
  /// true, it stops.
  void start(Jobs::Job job, Jobs::FailureHandler on_failure = {},
             core::StopToken::PreemptFlag preempted = nullptr);
  /// Queues a job that begins at that time at the earliest, or once it is stopped.
  void start_at(Clock::time_point begin, Jobs::Job job, Jobs::FailureHandler on_failure = {});
  /// Drops every job and every result; tells the running job to stop.
  void cancel();
  /// Tells the running job to stop, which then fails with is_stopped; drops the waiting jobs on request.
  void stop(bool drops_waiting = false);

  /// Whether a job that was not canceled waits, runs or has an undelivered result.
  bool is_busy() const;
  /// Return the running job's seconds since it was started, the share that is done, 0 … 1, and its token's
  /// count; 0 without a job.
  double seconds() const;
  double share() const;
  std::uint64_t done() const;
  /// Waits until no job is left to run.
  void wait();

 private:
  void submit(Clock::time_point begin, Jobs::Job job, Jobs::FailureHandler on_failure,
              core::StopToken::PreemptFlag preempted);
  void stop_running();

  Jobs& jobs_;
  std::shared_ptr<Jobs::Queue> queue_;
};

/// When to compute a missing value.
enum class Schedule {
  immediate,   ///< immediately, in this thread, as it is quick
  background,  ///< on another thread
  debounced    ///< the same once requested in a second frame: not in every frame of a drag
};

/// A value computed from a key; the last value stays available meanwhile.
///
/// One value is computed at a time. Of the keys requested meanwhile only the newest comes next, and the
/// running computation is canceled unless key.is_compatible(newest) says that its value is still of use. All
/// members are for one thread.
template <class Key, class Value>
class AsyncValue {
 public:
  /// Computes the value; in the background it must own its inputs. A value that it returns after its token
  /// was stopped is dropped.
  using Compute = std::function<Value(const core::StopToken&)>;

  explicit AsyncValue(Jobs& jobs) : queue_(jobs) {}

  /// Whether to begin computing this key's value now; must be called in every frame in which it is wanted.
  bool needs(const Key& key, Schedule when = Schedule::background) {
    if (requested_ != key) requested_ = key, requested_frame_ = queue_.jobs().frame();
    if (key_ == key) return cancel(), false;
    if (when == Schedule::immediate) return !has_failed(key);
    if (attempted_ == key) return false;  // it is being computed, or has failed
    if constexpr (requires { key.is_compatible(key); })
      if (queue_.is_busy() && attempted_ && attempted_->is_compatible(key)) return false;
    return when == Schedule::background || queue_.jobs().frame() > requested_frame_;
  }
  /// Begins to compute the value of a needed key; immediate passes on exceptions of make. In the background,
  /// the value is needed again once `preempted` has stopped the computation.
  void begin(const Key& key, Schedule when, const Compute& make,
             core::StopToken::PreemptFlag preempted = nullptr) {
    cancel();
    attempted_ = key;
    if (when == Schedule::immediate) {
      value_.emplace(make(core::StopToken()));
      key_ = key;
      attempted_.reset();
      return;
    }
    queue_.start(
        [this, key, make](const core::StopToken& token) {
          const auto value = std::make_shared<Value>(make(token));
          return [this, key, value] {
            value_.emplace(std::move(*value));
            key_ = key;
            attempted_.reset();
          };
        },
        [this](const Failure& failure) {
          if (failure.is_stopped) return attempted_.reset();  // it may be requested again
          queue_.jobs().report_failure(failure);
        },
        std::move(preempted));
  }

  /// Stores a value that is already known.
  void put(const Key& key, Value value) {
    cancel();
    value_.emplace(std::move(value));
    key_ = key;
  }

  /// Returns and forgets the last value, or returns nothing.
  std::optional<Value> take() {
    key_.reset();
    return std::exchange(value_, std::nullopt);
  }
  /// Return the last value and its key, or nullptr.
  const Value* value() const { return value_ ? &*value_ : nullptr; }
  const Key* key() const { return key_ ? &*key_ : nullptr; }
  bool matches(const Key& key) const { return key_ == key; }

  /// Whether the value of this key was requested and its computation failed.
  bool has_failed(const Key& key) const { return attempted_ == key && !queue_.is_busy(); }
  /// Whether a value is being computed, or will be in the next frame.
  bool is_busy() const {
    const bool is_next = requested_ && queue_.jobs().frame() <= requested_frame_ + 1 &&
                         attempted_ != requested_ && key_ != requested_;
    return queue_.is_busy() || is_next;
  }
  /// Returns for how long the value has been computed, in seconds.
  double seconds() const { return queue_.seconds(); }
  /// Return the share of it that is done, 0 … 1, and its token's count.
  double share() const { return queue_.share(); }
  std::uint64_t done() const { return queue_.done(); }
  /// Cancels the computation.
  void cancel() {
    if (!attempted_) return;
    queue_.cancel();
    attempted_.reset();
  }
  /// Also drops the last value.
  void clear() {
    cancel();
    value_.reset();
    key_.reset();
    requested_.reset();
  }

 private:
  std::optional<Value> value_;
  std::optional<Key> key_, attempted_,
      requested_;                      // attempted_ stays after a failure, so that it is not retried
  std::uint64_t requested_frame_ = 0;  // the frame in which requested_ was first requested
  JobQueue queue_;
};

}  // namespace app
