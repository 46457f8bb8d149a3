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

/// What the panels get to see: the live state, or a kept one in its place.
struct DisplayedState {
  const LiveTrace& live;  ///< whose trace it is
  std::uint64_t version;
  LookedAt view;      ///< as far as its model has it
  bool is_a = false;  ///< a kept one

  Displayed displayed() const { return {live.model(), live.trace(), version, view.look, view.selection}; }
};

/// Puts the chosen A in place of B when Space goes down and takes it away when it goes up, unless the key
/// means something else where the keyboard is. To be called between ImGui::NewFrame and the panels.
void follow_held_key(Store& store);

DisplayedState displayed_state(const Store& store);

/// Writes what the program remembers soon after it has changed, in the background: whatever ends it, lessons,
/// recent files and settings are there the next time.
class Remembering {
 public:
  /// began is what was read from that folder.
  Remembering(Jobs& jobs, std::filesystem::path folder, platform::Memory began)
      : queue_(jobs), folder_(std::move(folder)), written_(began), seen_(std::move(began)) {}

  /// Once a frame; what cannot be written is said once.
  void follow(const platform::Memory& now);
  /// Waits for what is being written, and writes what is new.
  void finish(const platform::Memory& now);

 private:
  JobQueue queue_;
  std::filesystem::path folder_;
  platform::Memory written_, seen_;
  Jobs::Clock::time_point next_;
  bool has_failed_ = false;
};

/// The corridor: events become commands, panels draw and ask, the store carries out, and round again.
class Loop {
 public:
  using Draw = std::function<void(const Frame&)>;

  /// draw is what fills the window.
  Loop(platform::Screen& screen, render::Painter& painter, Store& store, Draw draw = draw_window);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Waits for events when nothing is under way, then draws one frame; false when the program should end.
  bool step();

  /// Draws one frame and carries out what it asked for; scripted input is given in adjust, scripted keys
  /// separately.
  void frame(const std::function<void(ImGuiIO&)>& adjust = {},
             const std::vector<KeyPress>& scripted_keys = {});

  /// Whether figures, stages of the trace or glyphs are made in the background, or pictures wait for the next
  /// frame.
  bool is_working() const {
    return statistics_.is_busy() || source_.is_making() || source_of_a_.is_making() || painter_.is_behind() ||
           screen_.is_loading_fonts();
  }
  const Landmarks& landmarks() const { return landmarks_; }
  const Fonts& fonts() const { return screen_.fonts().fonts; }

 private:
  void prepare_style();
  double seconds_to_wait() const;
  void read_input(const std::vector<KeyPress>& keys, Commands& commands);
  void draw(Commands& commands);
  void handle(Commands& commands);
  void steer_keyboard(const std::vector<KeyPress>& keys);
  bool is_moving() const;
  bool is_new() const;
  Metrics metrics_now() const;
  void watch_changes(const Command& command);

  platform::Screen& screen_;
  render::Painter& painter_;
  Store& store_;
  Draw draw_;
  ValueRanges extents_;
  Changes changes_;
  Statistics statistics_;
  PictureSource source_, source_of_a_;  // of the live trace, and of the kept one in its place
  Landmarks landmarks_;
  float scale_ = 1;
  bool fills_screen_ = false;
  Dialog dialog_ = Dialog::none;
  int frames_to_draw_ = 3;
};

}  // namespace app
