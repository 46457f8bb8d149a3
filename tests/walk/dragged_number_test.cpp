// The walk of one dragged number: mouse, edit, model, weights, pixel, undo, file.
#include <gmock/gmock.h>

#include "core/graph/attend.hpp"
#include "core/out/export.hpp"
#include "core/out/tables.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using core::attention::Model;

struct DraggedNumber : Program {
  const std::string cell = "edit/cell/2/0";  // of "starts", an embedding
  double number() const { return (*ui.model().sequences[0].embeddings)(2, 0); }
  app::Rgb color_of_weight(std::size_t row, std::size_t column) {
    return ui.cell_color("strip/weights", 6, 6, row, column);
  }
  app::Rgb color_for(double weight) const {
    return app::render::color_at(app::render::ColorMap::weights, ui.store.view().settings.dark, weight);
  }
  std::string weights_csv(std::size_t head) const {
    using namespace core::formats;
    return csv_text(labelled_stage(ui.model(), core::attention::attend(ui.model()),
                                   core::attention::info(Stage::weights), head, 0));
  }
};

TEST_F(DraggedNumber, IsSeenInTheHeatmapOfTheNextFrame) {
  const Model before = ui.model();
  const double weight_before = ui.weight(2, 0);
  ASSERT_TRUE(alike(color_of_weight(2, 0), color_for(weight_before)));
  std::size_t changes = 0;
  for (const auto& input : support::drag(ui.centre(cell), {120, 0})) {
    const Model held = ui.model();
    ui.play({input});
    if (ui.model() == held) continue;
    ++changes;
    ui.play({input});
    EXPECT_TRUE(
        alike(color_of_weight(2, 0), color_for(core::attention::attend(ui.model()).heads[0].weights(2, 0))));
  }
  EXPECT_GE(changes, 5u);
  EXPECT_GT(number(), (*before.sequences[0].embeddings)(2, 0) + 0.5);
  EXPECT_FALSE(alike(color_for(weight_before), color_of_weight(2, 0)))
      << "from " << weight_before << " to " << ui.weight(2, 0);
}

TEST_F(DraggedNumber, IsOneUndoStepThatBringsEveryBitAndPixelBack) {
  ui.move_to("region/inspector");
  const Model before = ui.model();
  const auto pixels = ui.pixels("strip/weights");
  ui.drag(cell, 87, 0);
  ui.move_to("region/inspector");
  const Model dragged = ui.model();
  ASSERT_FALSE(dragged == before);
  EXPECT_NE(ui.pixels("strip/weights"), pixels);

  ui.key(Key::z, {.ctrl = true});
  EXPECT_TRUE(same_bits(ui.model(), before));
  EXPECT_FALSE(ui.store.document().steps.can_undo);
  for (int k = 0; k < 2; ++k) ui.key(Key::escape);  // the keyboard leaves the matrix, whose row is lit
  ui.run();
  // All but the marks at the feet of cells, which say what undo has changed.
  const auto now = ui.pixels("strip/weights");
  ASSERT_EQ(now.size(), pixels.size());
  const auto [min, max] = ui.rect("strip/weights");
  const auto width = static_cast<std::size_t>(max.x - min.x),
             n_lines = static_cast<std::size_t>(max.y - min.y), cell_height = n_lines / ui.model().n_tokens();
  for (std::size_t k = 0; k < now.size(); ++k)
    if (!(now[k] == pixels[k])) {
      ASSERT_EQ(k / width % cell_height, cell_height - 2) << "pixel " << k;
    }

  ui.key(Key::y, {.ctrl = true});
  EXPECT_TRUE(same_bits(ui.model(), dragged));
}

TEST_F(DraggedNumber, TwiceIsTwoUndoSteps) {
  ui.drag(cell, 50, 0);
  const Model between = ui.model();
  ui.drag(cell, 50, 0);
  ui.key(Key::z, {.ctrl = true});
  EXPECT_TRUE(same_bits(ui.model(), between));
  EXPECT_TRUE(ui.store.document().steps.can_undo);
}

TEST_F(DraggedNumber, MovesTenTimesAsFarWithShiftAndATenthWithAlt) {
  const double start = number();
  ui.drag(cell, 40, 0);
  const double plain = number() - start;
  ui.drag(cell, 40, 0, {.shift = true});
  const double coarse = number() - start - plain;
  ui.drag(cell, 40, 0, {.alt = true});
  const double fine = number() - start - plain - coarse;
  EXPECT_GT(plain, 0);
  EXPECT_NEAR(coarse, 10 * plain, 1e-7);
  EXPECT_NEAR(fine, plain / 10, 1e-7);
}

TEST_F(DraggedNumber, LeavesAsTheFileThatTheEngineComputes) {
  ui.drag(cell, 87, 0);
  const std::string file = (directory / "w.csv").string();
  ui.key(Key::e, {.ctrl = true});
  ui.fill_in("browser/name", file);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::none);
  EXPECT_EQ(support::bytes_of(file), weights_csv(0));
  EXPECT_THAT(ui.store.message().text, testing::HasSubstr(file));
}

TEST_F(DraggedNumber, LeavesInEveryStageAndHead) {
  ui.drag(cell, 87, 0);
  ui.store.dispatch(app::BrowseTo{directory.path()});
  ui.key(Key::e, {.ctrl = true});
  ui.click("dialog/what/2");
  ui.click("dialog/confirm");
  EXPECT_EQ(support::bytes_of(directory / "multi-head/weights.head0.csv"), weights_csv(0));
  EXPECT_EQ(support::bytes_of(directory / "multi-head/weights.head1.csv"), weights_csv(1));
  EXPECT_TRUE(directory.names().contains("multi-head/output.csv"));
}

}  // namespace
}  // namespace walk
