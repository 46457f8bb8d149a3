// JavaScript promise integration: the browser keeps the stack of a fiber, and this the part of it that lies
// in memory.
#include <emscripten/stack.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "app/session/fibers.hpp"

extern "C" {
// Of app/web/fibers.js and of Emscripten.
int fibers_are_here();
void fibers_enter(void (*enter)(void*), void (*destroy)(void*), void* fiber);
void fibers_leave();
void _emscripten_stack_restore(void*);
extern char __stack_high;  // where the stack of the page begins
}

namespace app {
namespace {

constexpr std::size_t n_blocks = std::size_t{1} << 16;

struct alignas(16) Block {
  std::byte bytes[16];  // as the compiler expects the stack to be aligned
};

struct Fiber {
  std::function<void(core::StopToken::Pause)> work;
  std::unique_ptr<Block[]> stack = std::make_unique_for_overwrite<Block[]>(n_blocks);
};

std::chrono::steady_clock::time_point pause() {
  auto* const here = reinterpret_cast<void*>(emscripten_stack_get_current());
  _emscripten_stack_restore(&__stack_high);
  fibers_leave();
  _emscripten_stack_restore(here);
  return std::chrono::steady_clock::now() + piece_time;
}

[[gnu::noinline]] void run(Fiber* fiber) {
  fiber->work(pause);
}

/// Has no variables in memory, as it changes the stack that they would lie on.
void enter(void* entered) {
  auto* const fiber = static_cast<Fiber*>(entered);
  _emscripten_stack_restore(fiber->stack.get() + n_blocks);
  run(fiber);
  _emscripten_stack_restore(&__stack_high);
}

}  // namespace

void run_in_fiber(std::function<void(core::StopToken::Pause)> work) {
  if (!fibers_are_here()) return work(nullptr);
  auto* const here = reinterpret_cast<void*>(emscripten_stack_get_current());
  fibers_enter(
      enter, [](void* fiber) { delete static_cast<Fiber*>(fiber); }, new Fiber{std::move(work)});
  _emscripten_stack_restore(here);
}

}  // namespace app
