#include "tests/support/program.hpp"

#include <new>
#include <stdexcept>

#include "core/system/process.hpp"
#include "tests/support/waiting.hpp"

namespace gui {

Program::Program(ImVec2 size, double at_once_ms, app::render::Painter* painter, app::Loop::Draw draw)
    : screen(size),
      store(core::system::free_memory, at_once_ms, [this] { before_computing(); }),
      loop_(screen, painter ? *painter : no_painter_, store, std::move(draw)) {
  run();
}

void Program::before_computing() const {
  if (traces_ == Traces::fail) throw std::bad_alloc();
  if (std::this_thread::get_id() != window_thread_) traces_.wait(Traces::wait);
}

void Program::edit(const core::editing::Edit& edit) {
  store.dispatch(app::ApplyEdit{edit});
  store.dispatch(app::EndGesture{});
  store.update();
  run();
}

void Program::frame(const support::InputFrame& input) {
  if (waits) support::finish_reading(store);
  if (waits && traces_ != Traces::wait) support::finish_working(store);
  std::vector<app::KeyPress> keys;
  if (input.key) keys.push_back(*input.key);
  loop_.frame([&](ImGuiIO& io) { support::put(input, io); }, keys);
}

}  // namespace gui
