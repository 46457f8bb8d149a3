#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "app/screen/heatmap_renderer.hpp"
#include "app/screen/screen.hpp"
#include "app/session/opening.hpp"
#include "app/session/store.hpp"
#include "app/window/loop.hpp"

namespace app {

/// The program with a window: its store, its screen and the main loop, one step at a time.
class Program {
 public:
  using OpenScreen =
      std::function<std::unique_ptr<platform::Screen>(Jobs& jobs, int width, int height, float font_scale)>;

  /// Opens a screen of the remembered size, in screen coordinates, with fonts for that scale.
  ///
  /// Throws core::Error when the file or the screen cannot be opened.
  Program(const OpenWindow& options, const OpenScreen& open_screen);

  /// Waits for events if nothing is in progress, then draws one frame; returns false to end the program.
  bool step();
  /// Returns for how long the next step will wait; a page, which cannot, makes it after that time or an
  /// event.
  double seconds_to_wait() const { return loop_->seconds_to_wait(); }
  /// Returns whether the next step runs a job, where there are no threads: it may take long.
  bool has_job() { return store_.jobs().next_piece() <= Clock::now(); }
  /// Quits without questions in the next step; the next window offers the unsaved work.
  void quit() { store_.dispatch(QuitNow{}); }
  /// Writes the settings that were not written yet.
  void finish();
  /// Ends the wait of a step; may be called from any thread.
  void wake() { screen_->wake(); }

  const Store& store() const { return store_; }
  const Landmarks& landmarks() const { return loop_->landmarks(); }

 private:
  Store store_;
  std::unique_ptr<platform::Screen> screen_;
  std::optional<render::HeatmapRenderer> renderer_;  // begins after the screen, which has its OpenGL context
  std::optional<Loop> loop_;
  std::optional<SettingsWriter> settings_writer_;  // of a window that keeps its state
};

}  // namespace app
