#pragma once

#include <chrono>
#include <functional>

#include "core/base/token.hpp"

namespace app {

/// The time of a piece of work between two frames, where there are no threads.
constexpr std::chrono::milliseconds piece_time{8};

/// Runs work, where the browser can switch stacks on one of its own; returns once it has ended or called the
/// function that it is given, else nullptr, which returns when the browser has nothing else to do.
void run_in_fiber(std::function<void(core::StopToken::Pause)> work);

}  // namespace app
