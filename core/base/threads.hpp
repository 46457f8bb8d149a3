#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>

namespace core {

/// Whether this program can start threads; a page in a browser cannot.
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
inline constexpr bool has_threads = false;
#else
inline constexpr bool has_threads = true;
#endif

/// Returns how many threads run at once on this system, at least 1.
inline std::size_t n_processors() {
  return has_threads ? std::max(1u, std::thread::hardware_concurrency()) : 1;
}

}  // namespace core
