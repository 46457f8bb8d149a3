#pragma once

#include "app/session/opening.hpp"

namespace app {

/// Opens the window, runs until it is closed, and returns the exit status.
///
/// Throws core::Error when there is no display or the file cannot be opened.
int run_window(const OpenWindow& options);

}  // namespace app
