#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/token.hpp"

namespace core::formats::readers {

/// What of an archive or a folder cannot be read, as notes.
class LeftOut {
 public:
  /// place is "FILE: "; what notes need not repeat is that, or of a folder "FOLDER/".
  explicit LeftOut(std::string place) : LeftOut(place, place) {}
  LeftOut(std::string place, std::string within) : place_(std::move(place)), within_(std::move(within)) {}

  /// Does something, or notes why it cannot be done.
  template <class Work>
  void unless(Work work) {
    try {
      work();
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      const std::string what = error.what();
      if (!first_) first_ = what;
      note(what.starts_with(within_) ? what.substr(within_.size()) : what);
    }
  }
  void note(const std::string& what) { add("Left out: " + what + "."); }
  /// A note of something within.
  void add(std::string sentence) {
    constexpr std::size_t most = 10;
    if (notes_.size() < most)
      notes_.push_back(std::move(sentence));
    else
      ++n_more_;
  }

  /// Throws the first reason, or an error of these words when there was none.
  [[noreturn]] void fail(const std::string& otherwise) const {
    throw Error(first_.value_or(place_ + otherwise));
  }

  /// All of them, the many in one.
  std::vector<std::string> notes() const {
    std::vector<std::string> all = notes_;
    if (n_more_ > 0) all.push_back("Left out: " + std::to_string(n_more_) + " more.");
    return all;
  }

 private:
  std::string place_, within_;
  std::optional<std::string> first_;
  std::vector<std::string> notes_;
  std::size_t n_more_ = 0;
};

}  // namespace core::formats::readers
