// JavaScript promise integration: the browser keeps the stack of a fiber, and this the part of it that lies
// in memory.
#include <emscripten/stack.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "app/session/fibers.hpp"

extern "C" {
// Of app/web/fibers.js and of Emscripten.
int page_has_fibers();
void page_enter(void (*enter)(void*), void (*destroy)(void*), void* fiber);
void page_leave();
void _emscripten_stack_restore(void*);
extern char __stack_high;  // where the stack of the page begins
}

namespace app {
namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20;

struct Fiber {
  std::function<void(core::StopToken::Pause)> work;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(stack_bytes);
};

std::chrono::steady_clock::time_point pause() {
  auto* const here = reinterpret_cast<void*>(emscripten_stack_get_current());
  _emscripten_stack_restore(&__stack_high);
  page_leave();
  _emscripten_stack_restore(here);
  return std::chrono::steady_clock::now() + piece_time;
}

[[gnu::noinline]] void run(Fiber* fiber) {
  fiber->work(pause);
}

/// Has no variables in memory, as it changes the stack that they would lie on.
void enter(void* entered) {
  auto* const fiber = static_cast<Fiber*>(entered);
  _emscripten_stack_restore(fiber->stack.get() + stack_bytes);
  run(fiber);
  _emscripten_stack_restore(&__stack_high);
}

}  // namespace

void run_in_fiber(std::function<void(core::StopToken::Pause)> work) {
  if (!page_has_fibers()) return work(nullptr);
  auto* const here = reinterpret_cast<void*>(emscripten_stack_get_current());
  page_enter(
      enter, [](void* fiber) { delete static_cast<Fiber*>(fiber); }, new Fiber{std::move(work)});
  _emscripten_stack_restore(here);
}

}  // namespace app
