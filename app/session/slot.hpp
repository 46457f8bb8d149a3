#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "app/session/jobs.hpp"

namespace app {

/// When a value is to be worked out that is not there yet.
enum class When {
  at_once,    ///< before anything else: it is quick
  beside,     ///< beside the window
  when_still  ///< beside it, when it is asked for in a second frame: not in every frame of a drag
};

/// A value that is worked out of a key, while the last one stays.
///
/// One is worked out at a time. Of the keys that are asked for meanwhile only the newest is worked out next;
/// the one under way is given up when its value is of no use any more, which is for key.is_near(newest) to
/// say. All members are for one thread.
template <class Key, class Value>
class Slot {
 public:
  /// What makes the value; it owns what it reads where that is beside the window. What it gives after it was
  /// told not to go on is dropped.
  using Make = std::function<Value(const core::Token&)>;

  explicit Slot(Jobs& jobs) : lane_(jobs) {}

  /// Whether the value of this key is to be begun now. To be called in every frame in which it is wanted.
  bool needs(const Key& key, When when = When::beside) {
    if (seen_ != key) seen_ = key, seen_in_ = lane_.jobs().frame();
    if (key_ == key) return cancel(), false;
    if (when == When::at_once) return !has_failed(key);
    if (asked_ == key) return false;  // it is under way, or has failed
    if (lane_.is_busy() && asked_ && asked_->is_near(key)) return false;
    return when == When::beside || lane_.jobs().frame() > seen_in_;
  }
  /// Begins the value of a key that is needed; at once throws what make throws. Beside the window it is begun
  /// anew later when what it reads is recalled.
  void begin(const Key& key, When when, const Make& make, core::Token::Recalled recalled = nullptr) {
    cancel();
    asked_ = key;
    if (when == When::at_once) {
      value_.emplace(make(core::Token()));
      key_ = key;
      asked_.reset();
      return;
    }
    lane_.start(
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
          lane_.jobs().tell(failure);
        },
        std::move(recalled));
  }

  /// A value that is known without working it out.
  void put(const Key& key, Value value) {
    cancel();
    value_.emplace(std::move(value));
    key_ = key;
  }

  /// The last value and its key, or nullptr.
  const Value* value() const { return value_ ? &*value_ : nullptr; }
  const Key* key() const { return key_ ? &*key_ : nullptr; }
  bool is_of(const Key& key) const { return key_ == key; }

  /// Whether the value of this key was asked for and could not be worked out.
  bool has_failed(const Key& key) const { return asked_ == key && !lane_.is_busy(); }
  /// Whether a value is being worked out, or will be in the next frame.
  bool is_busy() const {
    const bool is_next = seen_ && lane_.jobs().frame() <= seen_in_ + 1 && asked_ != seen_ && key_ != seen_;
    return lane_.is_busy() || is_next;
  }
  /// For how long the value under way has been, in seconds.
  double seconds() const { return lane_.seconds(); }
  /// What its token has counted.
  std::uint64_t done() const { return lane_.done(); }
  /// Drops what is under way.
  void cancel() {
    if (!asked_) return;
    lane_.cancel();
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
  Lane lane_;
};

}  // namespace app
