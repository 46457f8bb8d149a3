#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "app/window/loop.hpp"
#include "tests/support/bare_screen.hpp"
#include "tests/support/ui_input.hpp"

namespace gui {

/// The program with its real loop, but without a display and without OpenGL.
class Program {
 public:
  explicit Program(ImVec2 size = {1600, 1000}, double at_once_ms = app::LiveTrace::frame_ms);
  ~Program() { set_traces(Traces::come); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// What becomes of the traces of models that follow.
  enum class Traces {
    come,
    wait,  ///< what is computed beside the window takes until this is another
    fail   ///< there is no memory for any
  };
  void set_traces(Traces traces) {
    traces_ = traces;
    traces_.notify_all();
  }

 private:
  void before_computing() const;

  std::atomic<Traces> traces_ = Traces::come;  // before the store, which asks it
  const std::thread::id window_thread_ = std::this_thread::get_id();

 public:
  support::BareScreen screen;
  app::Store store;
  bool waits = true;  ///< in every frame, for what is read, written and worked out beside it

  /// Draws frames without input.
  void run(int frames = 2);
  void play(const support::Gesture& gesture);
  void key(app::Key key) { play(support::press({key})); }
  void ctrl(app::Key key) { play(support::press({key, true})); }
  void type(const std::string& text) { play(support::type(text)); }
  void click(const std::string& name) { play(support::click(centre(name))); }
  void move_to(const std::string& name) { play(support::move_to(centre(name))); }
  void edit(const core::editing::Edit& edit);

  /// Whether the loop waits for anything but the trace.
  bool is_working() const { return loop_.is_working(); }
  bool has(const std::string& name) const { return loop_.landmarks().find(name).has_value(); }
  /// The middle of a landmark; throws when there is none of that name.
  ImVec2 centre(const std::string& name) const;
  app::Landmarks::Rect rect(const std::string& name) const;

 private:
  void frame(const support::InputFrame& input);

  support::NoPainter painter_;
  app::Loop loop_{screen, painter_, store};
};

}  // namespace gui
