#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/files/raw_tensor.hpp"

namespace core::formats::readers {

/// The bytes of a file from one on, taken one after the other.
class PickleBytes {
 public:
  /// Up to the byte before end; place begins every message.
  PickleBytes(Fetch fetch, std::uint64_t from, std::uint64_t end, std::string place, const Token& progress);

  /// The next bytes, which stay until more are taken. Throws core::Error when there are not so many left,
  /// Stopped when that was asked for.
  std::string_view take(std::uint64_t count);
  /// The bytes up to the end of a line, which is passed over.
  std::string line();
  /// The number that the next bytes are, the lowest first; of up to eight.
  std::uint64_t number(std::uint64_t n_bytes);

  /// Where in the file the next byte stands.
  std::uint64_t at() const { return at_; }
  /// Goes on at another byte of the file, which must not lie beyond its end.
  void go_to(std::uint64_t at);
  const std::string& place() const { return place_; }
  /// Throws core::Error: "PLACEdamaged pickle: WHAT at byte 12".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  Fetch fetch_;
  std::uint64_t at_, end_;
  std::string place_;
  const Token& progress_;
  std::string buffer_, fetched_;
  std::string_view window_;  ///< the end of fetched_: bytes of the file from at_ on
};

}  // namespace core::formats::readers
