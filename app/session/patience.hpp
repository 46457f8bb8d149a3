#pragma once

namespace app {

/// For so long nobody notices that something is awaited, in seconds; beyond it the window says so.
constexpr double unnoticed_seconds = 0.5;

}  // namespace app
