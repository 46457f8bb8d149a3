#include "app/laboratory.hpp"

#include <chrono>

namespace app {

void advance(Laboratory& l, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (l.is_complete()) return;
  do {
    l.study.advance(1);
    if (l.study.count() == l.n_masks) {
      l.mean = l.study.mean();
      ++l.revision;
    }
  } while (!l.is_complete() && spent() < seconds);
  if (l.study.count() < l.n_masks) {
    l.mean = l.study.mean();
    ++l.revision;
  }
  l.difference = l.mean - l.study.weights();
}

}  // namespace app
