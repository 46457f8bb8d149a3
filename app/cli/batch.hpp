#pragma once

#include <iosfwd>
#include <string_view>

#include "app/cli/arguments.hpp"

namespace app {

/// Carries out a command that needs no window and gives the exit status: 0 done, 1 failed, 2 wrong usage.
///
/// What is asked for goes to out; what went wrong to err, in one line. OpenWindow is not a command of this
/// kind.
int run_batch(const Arguments& arguments, std::ostream& out, std::ostream& err);

/// "attnscope: message" on one line, whatever is in the message.
void print_error(std::ostream& err, std::string_view message);

}  // namespace app
