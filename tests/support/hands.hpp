#pragma once

#include <stdexcept>
#include <string>

#include "app/ui/landmarks.hpp"
#include "tests/support/ui_input.hpp"

namespace support {

/// What a person can do with a window whose landmarks are known; gestures at a name that is nowhere throw.
class Hands {
 public:
  virtual ~Hands() = default;
  virtual const app::Landmarks& landmarks() const = 0;

  /// Draws frames without input.
  void run(int frames = 2) {
    for (int i = 0; i < frames; ++i) frame({});
  }
  /// Plays a gesture, a frame each.
  virtual void play(const Gesture& gesture) {
    for (const InputFrame& input : gesture) frame(input);
  }

  // Gestures at the middle of a landmark.
  void move_to(const std::string& name) { play(support::move_to(centre(name))); }
  void click(const std::string& name, Modifiers m = {}) { play(support::click(centre(name), m)); }
  void right_click(const std::string& name) { play(support::right_click(centre(name))); }
  void double_click(const std::string& name) { play(support::double_click(centre(name))); }
  void drag(const std::string& name, float dx, float dy, Modifiers m = {}) {
    play(support::drag(centre(name), {dx, dy}, m));
  }
  void type(const std::string& text) { play(support::type(text)); }
  void key(app::Key key, Modifiers m = {}) { play(support::press({key, m.ctrl, m.shift, m.alt})); }

  bool has(const std::string& name) const { return landmarks().find(name).has_value(); }
  app::Landmarks::Rect rect(const std::string& name) const {
    const auto found = landmarks().find(name);
    if (!found) throw std::runtime_error("nothing on the screen is called " + name);
    return *found;
  }
  ImVec2 centre(const std::string& name) const { return rect(name).centre(); }

 protected:
  virtual void frame(const InputFrame& input) = 0;
};

}  // namespace support
