#include "tests/support/program.hpp"

#include <new>
#include <stdexcept>

#include "tests/support/waiting.hpp"

namespace gui {

Program::Program(ImVec2 size, double at_once_ms)
    : screen(size), store(app::free_memory, at_once_ms, [this] { before_computing(); }) {
  run();
}

void Program::before_computing() const {
  if (traces_ == Traces::fail) throw std::bad_alloc();
  if (std::this_thread::get_id() != window_thread_) traces_.wait(Traces::wait);
}

void Program::run(int frames) {
  for (int k = 0; k < frames; ++k) frame({});
}

void Program::play(const support::Gesture& gesture) {
  for (const support::InputFrame& input : gesture) frame(input);
  run();
}

void Program::edit(const core::editing::Edit& edit) {
  store.dispatch(app::ApplyEdit{edit});
  store.end_gesture();
  store.settle();
  run();
}

app::Landmarks::Rect Program::rect(const std::string& name) const {
  const auto found = loop_.landmarks().find(name);
  if (!found) throw std::runtime_error("nothing on the screen is called " + name);
  return *found;
}

ImVec2 Program::centre(const std::string& name) const {
  return rect(name).centre();
}

void Program::frame(const support::InputFrame& input) {
  if (waits) support::finish_reading(store);
  if (waits && traces_ != Traces::wait) support::finish_working(store);
  std::vector<app::KeyPress> keys;
  if (input.key) keys.push_back(*input.key);
  loop_.frame([&](ImGuiIO& io) { support::put(input, io); }, keys);
}

}  // namespace gui
