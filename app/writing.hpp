#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>

#include "app/worker.hpp"
#include "core/formats/progress.hpp"

namespace app {

/// Files that are written beside the window, one after the other in the order in which they were asked for;
/// none is lost when the program ends.
class Writing {
 public:
  /// Writes, as a whole or not at all, and gives what is to be said and done then.
  using Write = std::function<Worker::Delivery(core::formats::Progress&)>;

  ~Writing();
  /// path is what the window says meanwhile.
  void add(std::filesystem::path path, Write write);
  /// Takes over what was written and goes on with the next. Throws what the writing threw; the next call goes
  /// on.
  void go_on();
  /// Makes the writing under way throw formats::Cancelled at its next step; those that wait are written.
  void stop();
  bool is_busy() const { return worker_.is_busy() || !waiting_.empty(); }
  /// Of what is under way, or was last.
  const std::filesystem::path& path() const { return path_; }
  double seconds() const;
  std::uint64_t bytes() const { return progress_ ? progress_->bytes() : 0; }
  /// Until what is under way is written; go_on() then takes it over.
  void wait() { worker_.wait(); }
  /// Is called from another thread when there is something to take over.
  void when_done(std::function<void()> call) { worker_.when_done(std::move(call)); }

 private:
  struct Waiting {
    std::filesystem::path path;
    Write write;
  };
  void begin();

  std::deque<Waiting> waiting_;
  std::filesystem::path path_;
  std::chrono::steady_clock::time_point since_;
  std::shared_ptr<core::formats::Progress> progress_;
  Worker worker_;
};

}  // namespace app
