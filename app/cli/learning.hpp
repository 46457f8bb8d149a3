#pragma once

#include <iosfwd>

#include "app/cli/arguments.hpp"

namespace app {

/// Trains a network; progress goes to err, the curves or a summary to out. Ctrl+C ends the training, and what
/// is there is written.
///
/// Returns false if it diverged. Throws core::Error for an unusable task, setup or folder.
bool learn(const Learn& command, std::ostream& out, std::ostream& err);

}  // namespace app
