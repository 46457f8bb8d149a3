#pragma once

#include <iosfwd>
#include <thread>

#include "core/base/token.hpp"
#include "core/system/process.hpp"

namespace app {

/// As long as it lives, Ctrl+C stops what a token stands for instead of the program; asked again, it ends the
/// program. Where a terminal reads `err`, a line there says how far the search is.
class SearchWatch {
 public:
  /// The token and the stream must outlive it.
  SearchWatch(core::Token& token, std::ostream& err, bool is_terminal);
  SearchWatch(const SearchWatch&) = delete;
  SearchWatch& operator=(const SearchWatch&) = delete;

 private:
  core::system::SignalBlocker blocker_;
  std::jthread thread_;
};

/// Whether a person reads what goes to that stream: it is standard error, on a terminal.
bool is_on_terminal(const std::ostream& err);

}  // namespace app
