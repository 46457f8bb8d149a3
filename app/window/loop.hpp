#pragma once

#include <functional>

#include "app/ui/landmarks.hpp"
#include "app/platform/window.hpp"
#include "app/render/heatmap_renderer.hpp"
#include "app/store/store.hpp"
#include "app/work/extents.hpp"

namespace app {

/// The corridor: events become commands, panels draw and ask, the store carries out, and round again.
class Loop {
 public:
  Loop(platform::Window& window, Store& store);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Waits for events when nothing is under way, then draws one frame; false when the program should end.
  bool step();

  /// Draws one frame and carries out what it asked for; scripted input is given in adjust, scripted keys
  /// beside it.
  void frame(const std::function<void(ImGuiIO&)>& adjust = {},
             const std::vector<KeyPress>& scripted_keys = {});

  /// Whether figures, stages of the trace or glyphs are made beside the window, or pictures wait for the next
  /// frame.
  bool is_working() const {
    return statistics_.is_busy() || source_.is_making() || source_of_a_.is_making() ||
           renderer_.is_behind() || window_.is_loading_fonts();
  }
  const Landmarks& landmarks() const { return landmarks_; }
  render::HeatmapRenderer& renderer() { return renderer_; }
  const Fonts& fonts() const { return window_.fonts().fonts; }

 private:
  void prepare_style();
  double seconds_to_wait() const;
  void steer_keyboard(const std::vector<KeyPress>& keys);

  platform::Window& window_;
  Store& store_;
  render::HeatmapRenderer renderer_;
  Extents extents_;
  Statistics statistics_;
  PictureSource source_, source_of_a_;  // of the live trace, and of the kept one in its place
  Landmarks landmarks_;
  float scale_ = 1;
  Dialog dialog_ = Dialog::none;
  int frames_to_draw_ = 3;
};

}  // namespace app
