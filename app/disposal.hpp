#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace app {

/// Lets go of what is large beside the window: giving back gigabytes of memory takes longer than a frame.
class Disposal {
 public:
  Disposal();
  /// Waits until everything has gone that was left to it.
  ~Disposal();
  Disposal(const Disposal&) = delete;
  Disposal& operator=(const Disposal&) = delete;

  /// Ends a thing, soon; nobody may read it any longer.
  template <class Thing>
  void take(Thing thing) {
    queue_->put(std::make_unique<HeldAs<Thing>>(std::move(thing)));
  }
  /// A thing whose last owner, in whatever thread, leaves its end to the disposal as long as that lives.
  template <class Thing>
  std::shared_ptr<Thing> leave(std::unique_ptr<Thing> thing) const {
    return {thing.release(), [queue = queue_](Thing* last) {
              queue->put(std::make_unique<HeldAs<std::unique_ptr<Thing>>>(std::unique_ptr<Thing>(last)));
            }};
  }
  /// Until all has gone that was left so far.
  void wait();

 private:
  struct Held {
    virtual ~Held() = default;
  };
  template <class Thing>
  struct HeldAs : Held {
    explicit HeldAs(Thing&& own) : thing(std::move(own)) {}
    Thing thing;
  };
  /// Outlives the thread where something is owned longer; then it ends where its last owner is.
  struct Queue {
    void put(std::unique_ptr<Held> thing);
    void run(const std::stop_token& ends);

    std::mutex mutex;
    std::condition_variable_any changed;
    std::vector<std::unique_ptr<Held>> things;
    bool is_open = true, is_busy = false;
  };

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::jthread thread_;
};

}  // namespace app
