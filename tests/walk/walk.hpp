#pragma once

#include <gtest/gtest.h>
#include <filesystem>

#include "app/screen/heatmap_renderer.hpp"
#include "app/screen/window.hpp"
#include "app/session/store.hpp"
#include "app/window/loop.hpp"
#include "tests/support/hands.hpp"
#include "tests/support/temporary_directory.hpp"

namespace walk {

using app::Key;
using core::attention::Stage;

/// Whole program driven by scripted input, independent of the real pointer and clock.
class Walk : public support::Hands {
 public:
  /// Computes work longer than max_immediate_ms in the background; draw fills the window.
  explicit Walk(int width = 1600, int height = 1000, double max_immediate_ms = app::LiveTrace::frame_ms,
                app::Loop::DrawFunction draw = app::draw_window);

  app::Store store;
  app::platform::Window window;
  app::render::HeatmapRenderer renderer;
  app::Loop loop;

  /// False: frames are rasterized at a twentieth of their size, enough for tests that read no pixels.
  bool sharp = true;

  const app::Landmarks& landmarks() const override { return loop.landmarks(); }
  /// Presses the close button of the window.
  void ask_to_close();

  const core::attention::Model& model() const { return store.model(); }
  double weight(std::size_t row, std::size_t column) const;
  /// Returns the displayed color near the top left corner of a cell of an n_rows × n_columns heatmap.
  app::Rgb cell_color(const std::string& map, std::size_t n_rows, std::size_t n_columns, std::size_t row,
                      std::size_t column);
  /// Returns every pixel of a landmark, row by row.
  std::vector<app::Rgb> pixels(const std::string& name);
  app::Rgb pixel(ImVec2 at);

 protected:
  void frame(const support::InputFrame& input) override;

 private:
  support::InputFrame held_;  // mouse state of the last input
};

/// Returns whether no channel differs by more than two steps of 255.
bool alike(app::Rgb a, app::Rgb b);

struct Program : testing::Test {
  support::TemporaryDirectory directory;
  Walk ui;
};

}  // namespace walk
