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

/// The program as it is started, with hands on it; the real pointer and the clock have no say in it.
class Walk : public support::Hands {
 public:
  /// What takes longer than at_once_ms is computed beside the window; draw fills it.
  explicit Walk(int width = 1600, int height = 1000, double at_once_ms = app::LiveTrace::frame_ms,
                app::Loop::Draw draw = app::draw_window);

  app::Store store;
  app::platform::Window window;
  app::render::HeatmapRenderer renderer;
  app::Loop loop;

  /// Off: frames are rasterised at a twentieth of their size, which is all that a test without pixels needs.
  bool sharp = true;

  const app::Landmarks& landmarks() const override { return loop.landmarks(); }
  /// The close button of the window.
  void ask_to_close();

  const core::attention::Model& model() const { return store.model(); }
  double weight(std::size_t row, std::size_t column) const;
  /// The color near the top left corner of a cell of a heatmap of n_rows × n_columns, as it is on the
  /// screen.
  app::Rgb cell_color(const std::string& map, std::size_t n_rows, std::size_t n_columns, std::size_t row,
                      std::size_t column);
  /// Every pixel of a landmark, row after row.
  std::vector<app::Rgb> pixels(const std::string& name);
  app::Rgb pixel(ImVec2 at);

 protected:
  void frame(const support::InputFrame& input) override;

 private:
  support::InputFrame held_;  // the mouse as the hands left it
};

/// Whether no channel differs by more than two steps of 255.
bool alike(app::Rgb a, app::Rgb b);

struct Program : testing::Test {
  support::TemporaryDirectory directory;
  Walk ui;
};

}  // namespace walk
