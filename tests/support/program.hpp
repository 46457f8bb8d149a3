#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "app/session/command.hpp"
#include "app/window/loop.hpp"
#include "tests/support/bare_screen.hpp"
#include "tests/support/hands.hpp"
#include "tests/support/look.hpp"

namespace gui {

/// Program with its real loop, but without a display or OpenGL.
class Program : public support::Hands {
 public:
  /// Paints nothing if painter is nullptr; draw fills the window. Without threads, jobs run between frames.
  explicit Program(ImVec2 size = {1600, 1000}, double max_immediate_ms = app::LiveTrace::frame_ms,
                   app::render::Painter* painter = nullptr, app::Loop::DrawFunction draw = app::draw_window,
                   bool has_threads = true);
  ~Program() override { set_traces(Traces::come); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Fate of traces of later models.
  enum class Traces {
    come,
    wait,  ///< background computation blocks until this value changes
    fail   ///< computation throws std::bad_alloc
  };
  void set_traces(Traces traces) {
    traces_ = traces;
    traces_.notify_all();
  }

 private:
  void before_computing() const;

  std::atomic<Traces> traces_ = Traces::come;  // before the store, which reads it
  const std::thread::id window_thread_ = std::this_thread::get_id();

 public:
  support::BareScreen screen;
  app::Store store;
  bool waits = true;  ///< every frame waits for background reading, writing and computing

  /// Plays a gesture and the frames that show its effect.
  void play(const support::Gesture& gesture) override {
    Hands::play(gesture);
    run();
  }
  void ctrl(app::Key k) { key(k, {true}); }
  void edit(const core::editing::Edit& edit);

  /// Returns whether the loop waits for anything but the trace.
  bool is_working() const { return loop_.is_working(); }
  const app::Landmarks& landmarks() const override { return loop_.landmarks(); }

 private:
  void frame(const support::InputFrame& input) override;

  support::NoPainter no_painter_;
  app::Loop loop_;
};

/// Some panels of the window alone, run by the program's own loop; their commands are recorded.
class Panels : public Program {
 public:
  explicit Panels(app::Loop::DrawFunction draw, ImVec2 size = {1600, 1000});

  const core::attention::Model& model() const { return store.model(); }
  const app::View& view() const { return store.view(); }
  const app::Message& message() const { return store.message(); }

  // These draw their result at once.
  void look(const std::function<void(app::View&)>& change) {
    support::look(store, change);
    run();
  }
  void change(const std::function<void(core::attention::Model&)>& change);
  void show(core::attention::Model model);
  /// Loads a preset and discards all work.
  void load(const std::string& preset);

  /// Returns the commands of one kind since the last forget().
  template <class Kind>
  std::vector<Kind> asked() const {
    std::vector<Kind> found;
    for (const app::Command& command : *asked_)
      if (const auto* kind = command.get_if<Kind>()) found.push_back(*kind);
    return found;
  }
  /// Returns the edits of one kind among them.
  template <class Kind>
  std::vector<Kind> edits() const {
    std::vector<Kind> found;
    for (const auto& apply : asked<app::ApplyEdit>())
      if (const auto* kind = std::get_if<Kind>(&apply.edit)) found.push_back(*kind);
    return found;
  }
  void forget() { asked_->clear(); }

  /// Returns the number of vertices of the last frame.
  int vertices() const { return ImGui::GetDrawData()->TotalVtxCount; }

 private:
  using Asked = std::shared_ptr<std::vector<app::Command>>;
  Panels(app::Loop::DrawFunction draw, ImVec2 size, Asked asked);

  Asked asked_;
};

/// Draws the menu bar, MODEL over EDIT at the left, and the dialogs, as the window places them.
void draw_side_panels(const app::Frame& frame);

/// Draws the strip in its own window.
void draw_strip(const app::Frame& frame);

}  // namespace gui
