#pragma once

#include <stdexcept>
#include <string>

#include "app/ui/landmarks.hpp"
#include "tests/support/ui_input.hpp"

namespace support {

/// User gestures on a window with known landmarks; gestures at an unknown name throw std::runtime_error.
class Hands {
 public:
  virtual ~Hands() = default;
  virtual const app::Landmarks& landmarks() const = 0;

  /// Draws frames without input.
  void run(int frames = 2) {
    for (int i = 0; i < frames; ++i) frame({});
  }
  /// Plays a gesture frame by frame.
  virtual void play(const Gesture& gesture) {
    for (const InputFrame& input : gesture) frame(input);
  }

  // Gestures at the middle of a landmark.
  void move_to(const std::string& name) { play(support::move_to(center(name))); }
  void click(const std::string& name, Modifiers m = {}) { play(support::click(center(name), m)); }
  void right_click(const std::string& name) { play(support::right_click(center(name))); }
  void double_click(const std::string& name) { play(support::double_click(center(name))); }
  void drag(const std::string& name, float dx, float dy, Modifiers m = {}) {
    play(support::drag(center(name), {dx, dy}, m));
  }
  void type(const std::string& text) { play(support::type(text)); }
  void key(app::Key key, Modifiers m = {}) { play(support::press({key, m.ctrl, m.shift, m.alt})); }

  /// Replaces the text of a field and submits it.
  void fill_in(const std::string& field, const std::string& text) {
    click(field);
    key(app::Key::a, {.ctrl = true});
    if (text.empty())
      key(app::Key::delete_);
    else
      type(text);
    key(app::Key::enter);
  }
  /// Opens a drop-down and chooses a line.
  void choose(const std::string& combo, std::size_t line) {
    click(combo);
    run();
    click(combo + "/" + std::to_string(line));
    run();
  }

  bool has(const std::string& name) const { return landmarks().find(name).has_value(); }
  app::Rect rect(const std::string& name) const {
    const auto found = landmarks().find(name);
    if (!found) throw std::runtime_error("nothing on the screen is called " + name);
    return *found;
  }
  ImVec2 center(const std::string& name) const { return rect(name).center(); }

 protected:
  virtual void frame(const InputFrame& input) = 0;
};

}  // namespace support
