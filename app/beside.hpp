#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "app/worker.hpp"
#include "core/attention/head_facts.hpp"

namespace app {

/// What is worked out of a key: at once where that is quick, else beside the window while the last value
/// stays.
///
/// One is worked out at a time. Of the keys that are asked for meanwhile only the newest is worked out next;
/// the one under way is given up when its value is of no use any more, which is for key.is_near(newest) to
/// say. All members are for one thread.
template <class Key, class Value>
class Beside {
 public:
  /// What makes the value; it owns what it reads where that is beside the window. What it gives after it was
  /// told not to go on is dropped.
  using Make = std::function<Value(const core::attention::GoesOn&)>;

  /// Takes over what has been worked out since; whether the value of this key is to be begun. To be called in
  /// every frame in which it is wanted. What a make beside the window threw is thrown here, once.
  bool needs(const Key& key) {
    take();
    if (key_ == key) return cancel(), false;
    if (asked_ == key) return false;  // it is under way, or has failed
    return !(worker_.is_busy() && asked_ && asked_->is_near(key));
  }
  /// Begins the value of a key that is needed; at once throws what make throws.
  void begin(const Key& key, bool at_once, const Make& make) {
    cancel();
    if (at_once) {
      value_.emplace(make({}));
      key_ = key;
      return;
    }
    asked_ = key;
    since_ = std::chrono::steady_clock::now();
    worker_.start([this, key, make](const std::stop_token& stop) {
      const auto value = std::make_shared<Value>(make([&] { return !stop.stop_requested(); }));
      return [this, key, value] {
        value_.emplace(std::move(*value));
        key_ = key;
        asked_.reset();
      };
    });
  }
  /// Takes over what has been worked out since.
  void take() { worker_.deliver(); }

  /// The last value and its key, or nullptr.
  const Value* value() const { return value_ ? &*value_ : nullptr; }
  const Key* key() const { return key_ ? &*key_ : nullptr; }
  bool is_of(const Key& key) const { return key_ == key; }
  bool has_asked_for(const Key& key) const { return asked_ == key; }

  bool is_busy() const { return worker_.is_busy(); }
  /// Whether anything that was begun, wanted or not, may still read what it was given.
  bool is_reading() const { return worker_.is_running() || worker_.has_waiting(); }
  /// For how long the value under way has been, in seconds.
  double seconds() const {
    return is_busy() ? std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count() : 0;
  }
  /// Drops what is under way.
  void cancel() {
    if (!asked_) return;
    worker_.cancel();
    asked_.reset();
  }
  /// Drops the last value as well.
  void clear() {
    cancel();
    value_.reset();
    key_.reset();
  }
  /// Until nothing is under way; what was, is there to be taken.
  void wait() { worker_.wait(); }
  /// Is called from another thread when there is something to be taken.
  void when_done(std::function<void()> call) { worker_.when_done(std::move(call)); }

 private:
  std::optional<Value> value_;
  std::optional<Key> key_, asked_;  // asked_ is also what has failed, so that it is not tried again
  std::chrono::steady_clock::time_point since_;
  Worker worker_;
};

}  // namespace app
