#pragma once

#include <iosfwd>
#include <string_view>

#include "app/cli/arguments.hpp"

namespace app {

/// Runs a command that needs no window and returns the exit status: 0 done, 1 failed, 2 wrong usage.
///
/// Writes results to out, and errors to err, in one line. OpenWindow and Attach fail.
int run_batch(const CommandLine& arguments, std::ostream& out, std::ostream& err);

/// Prints "attnscope: message" on one line, whatever is in the message.
void print_error(std::ostream& err, std::string_view message);

}  // namespace app
