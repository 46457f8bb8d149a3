#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "app/screen/painter.hpp"
#include "app/screen/paths.hpp"
#include "app/screen/screen.hpp"
#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/picture_source.hpp"
#include "app/session/statistics.hpp"
#include "app/session/store.hpp"
#include "app/ui/frame.hpp"
#include "app/ui/landmarks.hpp"
#include "app/window/shell.hpp"

namespace app {

/// State that the panels display: the live one, or a snapshot in its place.
struct DisplayedState {
  const LiveTrace& live;  ///< owner of the trace
  std::uint64_t version;
  ModelView view;     ///< limited to the parts that its model has
  bool is_a = false;  ///< a snapshot

  Displayed displayed() const {
    return {{live.graph(), live.model(), live.trace()}, live.stages(), version, view.look, view.selection};
  }
};

/// Displays the chosen A in place of B while Space is held, unless the key has another meaning where the
/// keyboard focus is. Must be called between ImGui::NewFrame and the panels.
void show_reference_while_held(Store& store);

DisplayedState displayed_state(const Store& store);

/// Background writer of settings, recent files and lesson progress: they are saved soon after a change,
/// however the program ends.
class SettingsWriter {
 public:
  /// Begins with the memory read from that folder.
  SettingsWriter(Jobs& jobs, std::filesystem::path folder, platform::UserState initial)
      : queue_(jobs), folder_(std::move(folder)), written_(initial), seen_(std::move(initial)) {}

  /// Must be called once per frame; reports only the first failed write.
  void follow(const platform::UserState& now);
  /// Waits for the write in progress, then writes the remaining changes.
  void finish(const platform::UserState& now);

 private:
  JobQueue queue_;
  std::filesystem::path folder_;
  platform::UserState written_, seen_;
  Clock::time_point next_;
  bool has_failed_ = false;
};

/// Main loop: events become commands, panels draw and add commands, and the store executes them.
class Loop {
 public:
  using DrawFunction = std::function<void(const Frame&)>;

  /// Calls `draw` in every frame to fill the window.
  Loop(platform::Screen& screen, render::Painter& painter, Store& store, DrawFunction draw = draw_window);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Waits for events if nothing is in progress, then draws one frame; returns false to end the program.
  bool step();

  /// Returns for how long the next step will wait for events.
  double seconds_to_wait() const;

  /// Draws one frame and executes its commands; scripted input is applied by `adjust`, scripted keys are
  /// separate.
  void frame(const std::function<void(ImGuiIO&)>& adjust = {},
             const std::vector<KeyPress>& scripted_keys = {});

  /// Returns whether statistics, stages of the trace or glyphs are computed in the background, or pictures
  /// are left to the next frame.
  bool is_working() const {
    return statistics_.is_busy() || source_.is_busy() || reference_source_.is_busy() ||
           painter_.is_behind() || screen_.is_loading_fonts();
  }
  const Landmarks& landmarks() const { return landmarks_; }
  const Fonts& fonts() const { return screen_.fonts().fonts; }

 private:
  void prepare_style();
  double seconds_to_frame() const;
  void read_input(const std::vector<KeyPress>& keys, Commands& commands);
  void draw(Commands& commands);
  void handle(Commands& commands);
  void exchange_files();
  void update_keyboard_navigation(const std::vector<KeyPress>& keys);
  bool is_animating() const;
  bool is_learning() const;
  bool progresses() const;
  bool expects_leftovers() const;
  Metrics metrics_now() const;
  void record_edit(const Command& command);

  platform::Screen& screen_;
  render::Painter& painter_;
  Store& store_;
  DrawFunction draw_;
  ValueRanges value_ranges_;
  Changes changes_;
  Statistics statistics_;
  PictureSource source_, reference_source_;  // of the live trace, and of the snapshot in its place
  Landmarks landmarks_;
  float scale_ = 1;
  bool fills_screen_ = false;
  Clock::time_point start_ = Clock::now();
  int settled_frames_ = 0;  // drawn in a row without a change
};

}  // namespace app
