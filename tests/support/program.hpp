#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "app/store/store.hpp"
#include "tests/support/bare_imgui.hpp"
#include "tests/support/ui_input.hpp"

namespace gui {

/// The whole program but for its window: the store, every panel, the keys; without OpenGL.
class Program {
 public:
  explicit Program(ImVec2 size = {1600, 1000}, double at_once_ms = app::LiveTrace::frame_ms);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// What becomes of the traces of models that follow.
  enum class Traces {
    come,
    wait,  ///< nothing that is computed beside the window is taken over, however long that takes
    fail   ///< there is no memory for what would be computed at once
  };
  void set_traces(Traces traces) { traces_ = traces; }

 private:
  std::atomic<Traces> traces_ = Traces::come;  // before the store, which asks it

 public:
  app::Store store;

  /// Draws frames without input.
  void run(int frames = 2);
  void play(const support::Gesture& gesture);
  void key(app::Key key) { play(support::press({key})); }
  void ctrl(app::Key key) { play(support::press({key, true})); }
  void type(const std::string& text) { play(support::type(text)); }
  void click(const std::string& name) { play(support::click(centre(name))); }
  void move_to(const std::string& name) { play(support::move_to(centre(name))); }
  void edit(const core::editing::Edit& edit);

  bool has(const std::string& name) const { return landmarks_.find(name).has_value(); }
  /// The middle of a landmark; throws when there is none of that name.
  ImVec2 centre(const std::string& name) const;
  app::Landmarks::Rect rect(const std::string& name) const;

 private:
  void frame(const support::InputFrame& input);

  support::BareImGui imgui_;
  app::Landmarks landmarks_;
  app::Extents extents_;
  app::Statistics statistics_{store.jobs()};
};

}  // namespace gui
