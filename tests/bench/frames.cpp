// How long frames take in the real window: printed, not asserted. Needs a display.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "app/loop.hpp"
#include "app/platform/imgui_compat.hpp"
#include "app/store.hpp"

extern "C" void openblas_set_num_threads(int);

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Processor time of all threads so far, in milliseconds.
double processor_ms() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// The pointer's circle through the strip, a step a frame.
ImVec2 pointer_at(int frame, ImVec2 window) {
  const float turn = static_cast<float>(frame) * 0.07f;
  return {window.x * (0.5f + 0.2f * std::cos(turn)), window.y * (0.5f + 0.35f * std::sin(turn))};
}

void measure() {
  const auto start = Clock::now();
  app::Store store;
  app::platform::Window window("attnscope", 1600, 1000);
  app::Loop loop(window, store);
  loop.frame();
  std::printf("first frame after %.0f ms\n", ms_since(start));

  for (int i = 0; i < 20; ++i) loop.frame();
  std::vector<double> moving, dragging;
  for (int i = 0; i < 200; ++i) {
    const auto before = Clock::now();
    loop.frame([&](ImGuiIO& io) { app::platform::put_mouse(io, pointer_at(i, window.size())); });
    moving.push_back(ms_since(before));
  }
  std::printf("frame while the mouse moves over the strip: median %.1f ms of %zu\n", median(moving),
              moving.size());
  for (int i = 0; i < 200; ++i) {
    const auto before = Clock::now();
    store.dispatch(app::ApplyEdit{core::editing::SetCell{{}, 2, 0, std::sin(i)}});
    store.settle();
    loop.frame();
    dragging.push_back(ms_since(before));
  }
  std::printf("frame in which every number changes: median %.1f ms of %zu\n", median(dragging),
              dragging.size());

  for (int i = 0; i < 10; ++i) window.wait(0.01), loop.step();
  const auto idle = Clock::now();
  const double used = processor_ms();
  while (ms_since(idle) < 5000)
    if (window.wait((5000 - std::min(5000.0, ms_since(idle))) / 1e3)) loop.frame();
  std::printf("processor time in %.0f ms of doing nothing: %.1f ms\n", ms_since(idle), processor_ms() - used);
}

}  // namespace

int main() {
  try {
    openblas_set_num_threads(1);
    measure();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attnscope_frames: %s\n", error.what());
    return 1;
  }
}
