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

/// The program with its real loop, but without a display and without OpenGL.
class Program : public support::Hands {
 public:
  /// painter is a test's own, or nullptr: then nothing is painted; draw is what fills the window.
  explicit Program(ImVec2 size = {1600, 1000}, double at_once_ms = app::LiveTrace::frame_ms,
                   app::render::Painter* painter = nullptr, app::Loop::Draw draw = app::draw_window);
  ~Program() override { set_traces(Traces::come); }
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

  /// A gesture, and the frames in which it shows.
  void play(const support::Gesture& gesture) override {
    Hands::play(gesture);
    run();
  }
  void ctrl(app::Key k) { key(k, {true}); }
  void edit(const core::editing::Edit& edit);

  /// Whether the loop waits for anything but the trace.
  bool is_working() const { return loop_.is_working(); }
  const app::Landmarks& landmarks() const override { return loop_.landmarks(); }

 private:
  void frame(const support::InputFrame& input) override;

  support::NoPainter no_painter_;
  app::Loop loop_;
};

/// Some panels of the window alone, drawn and carried out by the program's own loop; what they ask for is
/// kept.
class Panels : public Program {
 public:
  explicit Panels(app::Loop::Draw draw, ImVec2 size = {1600, 1000});

  const core::attention::Model& model() const { return store.model(); }
  const app::View& view() const { return store.view(); }
  const app::Message& message() const { return store.message(); }

  // What is done here is drawn at once.
  void look(const std::function<void(app::View&)>& change) {
    support::look(store, change);
    run();
  }
  void change(const std::function<void(core::attention::Model&)>& change);
  void show(core::attention::Model model);
  /// A preset in place of all work.
  void load(const std::string& preset);

  /// What was asked for since the last call, of one kind.
  template <class Kind>
  std::vector<Kind> asked() const {
    std::vector<Kind> found;
    for (const app::Command& command : *asked_)
      if (const auto* kind = command.get_if<Kind>()) found.push_back(*kind);
    return found;
  }
  /// The edits of one kind among them.
  template <class Kind>
  std::vector<Kind> edits() const {
    std::vector<Kind> found;
    for (const auto& apply : asked<app::ApplyEdit>())
      if (const auto* kind = std::get_if<Kind>(&apply.edit)) found.push_back(*kind);
    return found;
  }
  void forget() { asked_->clear(); }

  /// Of the last frame.
  int vertices() const { return ImGui::GetDrawData()->TotalVtxCount; }

 private:
  using Asked = std::shared_ptr<std::vector<app::Command>>;
  Panels(app::Loop::Draw draw, ImVec2 size, Asked asked);

  Asked asked_;
};

/// The menu bar, MODEL over EDIT at the left, and the dialogs, as the window places them.
void draw_side_panels(const app::Frame& frame);

/// The strip in a window of its own.
void draw_strip(const app::Frame& frame);

}  // namespace gui
