#include <gmock/gmock.h>

#include "core/base/random.hpp"
#include "core/editing/presets.hpp"
#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"

namespace {

using namespace core::editing;
using app::Dialog;
using app::Key;
using gui::Panels;
using testing::HasSubstr;

struct DrawDialogs : testing::Test {
  Panels ui{gui::draw_side_panels};

  void type_into(const std::string& field, const std::string& text) {
    ui.click(field);
    ui.type(text);
    ui.key(Key::enter);
  }
  const arma::mat& x() const { return ui.model().sequences[0].embeddings; }
};

struct FillDialog : DrawDialogs {
  void open() {
    ui.click("edit/fill");
    ui.click("edit/fill/dialog");
    ui.run(3);
  }
};

struct DrawModelDialog : DrawDialogs {
  void open() {
    ui.click("menu/Edit");
    ui.click("menu/edit/draw_model");
    ui.run(3);
  }
};

TEST_F(FillDialog, FillsAfterWhatWasDrawnBeforeInOneEdit) {
  open();
  ASSERT_EQ(ui.view().forms.dialog, Dialog::fill);
  ui.click("fill/rule/3");
  type_into("fill/seed", "7");
  type_into("fill/before", "randn(2,4) Linear(3,2,bias)");
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  ASSERT_EQ(ui.edits<SetBlock>().size(), 1u);
  core::random::Generator generator(7);
  generator.normal(8), generator.linear_weight(3, 2), generator.linear_bias(3, 2);
  const std::vector<float> numbers = generator.rand(18);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(x()(i / 3, i % 3), static_cast<double>(numbers[i]));
}

TEST_F(FillDialog, RefusesWhatIsNoOpUntilItIsMended) {
  open();
  type_into("fill/before", "rand(6,3) randm(2)");
  EXPECT_THAT(ui.view().forms.fill.before.error, HasSubstr("unknown op \"randm\""));
  ASSERT_TRUE(ui.has("fill/before/error"));
  ui.click("dialog/confirm");
  ui.key(Key::enter);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::fill);
  EXPECT_TRUE(ui.edits<SetBlock>().empty());
  ui.click("fill/rule/1");
  ui.click("dialog/confirm");
  EXPECT_EQ(arma::accu(x()), 18) << "ones need no draws";
  open();
  ui.click("fill/rule/4");
  type_into("fill/before", "rand(6,3)");
  EXPECT_FALSE(ui.has("fill/before/error"));
  ui.forget();
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.edits<SetBlock>().size(), 1u);
}

TEST_F(FillDialog, RefusesMoreNumbersThanCanBeDrawnAtOnce) {
  open();
  type_into("fill/before", "rand(100000,1000)");
  EXPECT_THAT(ui.view().forms.fill.before.error, HasSubstr("at most 10000000 numbers"));
}

TEST_F(FillDialog, FillsByKeyboardAlone) {
  open();
  ui.key(Key::enter);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  const std::vector<float> numbers = core::random::Generator(123).normal(18);
  EXPECT_EQ(x()(5, 2), static_cast<double>(numbers[17]));
}

TEST_F(FillDialog, LeavesTheMatrixAloneWhenItIsCancelled) {
  open();
  ui.key(Key::escape);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  EXPECT_TRUE(ui.asked<app::ApplyEdit>().empty());
}

TEST_F(DrawModelDialog, StartsWithTheModelsOwnLayers) {
  open();
  ASSERT_EQ(ui.view().forms.dialog, Dialog::draw_model);
  EXPECT_EQ(ui.view().forms.draw.draw.output, OutputLayer::with_bias);
  EXPECT_FALSE(ui.view().forms.draw.draw.bias);
}

TEST_F(DrawModelDialog, GivesThePresetBackInOneEdit) {
  const auto preset = ui.model();
  ui.change([&](auto& m) { m.projections->query.weight.edit().zeros(); });
  ui.change([&](auto& m) { m.projections->output->bias->edit().ones(); });
  open();
  ui.key(Key::enter);
  EXPECT_EQ(ui.edits<ReplaceModel>().size(), 1u);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  EXPECT_TRUE(ui.model() == preset);
}

TEST_F(DrawModelDialog, DrawsAsItsFieldsSay) {
  const auto before = ui.model();
  ui.click("model/draw");
  ui.run(3);
  type_into("draw/seed", "1337");
  type_into("draw/before", "rand(5)");
  ui.click("draw/embeddings/2");
  ui.click("draw/order/1");
  ui.click("draw/bias");
  ui.click("draw/output/0");
  ui.click("dialog/confirm");
  const ModelDraw expected{1337,
                           core::random::parse_draw_ops("rand(5)"),
                           EmbeddingsDraw::randn_first,
                           LayerOrder::key_query_value,
                           true,
                           OutputLayer::none};
  EXPECT_TRUE(ui.model() == drawn_model(before, expected));
}

TEST_F(DrawModelDialog, CopiesItsLinesOfPython) {
  open();
  ui.click("draw/copy");
  ASSERT_EQ(ui.asked<app::CopyText>().size(), 1u);
  EXPECT_THAT(ui.asked<app::CopyText>()[0].text,
              HasSubstr("torch.manual_seed(123)\nW_q = nn.Linear(3, 4, bias=False)\n"));
}

TEST_F(DrawModelDialog, RefusesWhatIsNoOp) {
  open();
  type_into("draw/before", "rand(0)");
  ASSERT_TRUE(ui.has("draw/before/error"));
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.view().forms.dialog, Dialog::draw_model);
  EXPECT_TRUE(ui.edits<ReplaceModel>().empty());
}

TEST_F(DrawDialogs, StayWithinASmallWindow) {
  ImGui::GetIO().DisplaySize = {1280, 800};
  for (const Dialog dialog : {Dialog::fill, Dialog::draw_model}) {
    ui.look([&](auto& v) { v.forms.dialog = dialog; });
    ui.run(4);
    for (const auto& [name, rect] : ui.landmarks().all())
      if (name.starts_with("fill/") || name.starts_with("draw/") || name.starts_with("dialog/")) {
        EXPECT_GE(rect.min.x, 0) << name;
        EXPECT_GE(rect.min.y, 0) << name;
        EXPECT_LE(rect.max.x, 1280) << name;
        EXPECT_LE(rect.max.y, 800) << name;
      }
    EXPECT_TRUE(ui.has("dialog/confirm"));
  }
}

}  // namespace
