// Dragging and typing numbers, from the mouse to pixels and files; changing, saving and opening models.
#include <gmock/gmock.h>

#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
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
    return csv_text(labeled_stage(ui.model(), core::attention::attend(ui.model()),
                                  core::attention::info(Stage::weights), head, 0));
  }
};

TEST_F(DraggedNumber, IsSeenInTheHeatmapOfTheNextFrame) {
  const Model before = ui.model();
  const double weight_before = ui.weight(2, 0);
  ASSERT_TRUE(alike(color_of_weight(2, 0), color_for(weight_before)));
  std::size_t changes = 0;
  for (const auto& input : support::drag(ui.center(cell), {120, 0})) {
    const Model held = ui.model();
    ui.play({input});
    if (ui.model() == held) continue;
    ++changes;
    ui.play({input});
    EXPECT_TRUE(
        alike(color_of_weight(2, 0),
              color_for(core::attention::attend(ui.model()).at(core::attention::Stage::weights, 0)(2, 0))));
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
  EXPECT_EQ(ui.model(), before);
  EXPECT_FALSE(ui.store.document().steps.can_undo);
  for (int k = 0; k < 2; ++k) ui.key(Key::escape);  // removes the focus, which highlights a row
  ui.run();
  // All but the marks at the bottom of cells that undo has changed.
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
  EXPECT_EQ(ui.model(), dragged);
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

struct EditorInTheWindow : Program {
  EditorInTheWindow() { ui.sharp = false; }
  double x(std::size_t row, std::size_t column) const {
    return (*ui.model().sequences[0].embeddings)(row, column);
  }
};

/// Types one letter per frame, faster than the field gets the keyboard focus.
TEST_F(EditorInTheWindow, LosesNoLetterOfAFastTypist) {
  const auto type_fast = [this](const std::string& text) {
    for (const char letter : text) {
      support::InputFrame input;
      input.text = letter;
      input.key = app::KeyPress{letter == 'e' ? Key::e : Key::unknown};
      ui.play({input});
    }
  };
  ui.click("edit/cell/0/0");
  type_fast("-12.375e1");
  ui.key(Key::enter);
  EXPECT_EQ(x(0, 0), -123.75);
  ui.double_click("edit/token/1");
  type_fast("Reise");
  ui.key(Key::enter);
  EXPECT_EQ(ui.model().sequences[0].tokens[1], "Reise");
}

TEST_F(EditorInTheWindow, CopiesTheNumberInFull) {
  ui.fill_in("model/d_out", "4");
  ui.double_click("edit/cell/0/0");
  ui.type("0.12345678901234567");
  ui.key(Key::enter);
  ui.click("edit/cell/0/0");
  ui.key(Key::c, {.ctrl = true});
  ui.run();
  EXPECT_EQ(std::stod(ImGui::GetClipboardText()), x(0, 0));
  EXPECT_TRUE(ui.model().mask.causal) << "Ctrl+C is not C";
}

TEST_F(EditorInTheWindow, ChangesAProjectionOfOneHead) {
  ui.click("edit/tab/W_v");
  const arma::mat before = *ui.model().projections->value.weight;
  const arma::mat first = ui.store.live().trace().at(core::attention::Stage::contexts, 0),
                  second = ui.store.live().trace().at(core::attention::Stage::contexts, 1);
  ui.drag("edit/cell/0/0", 60, 0);
  EXPECT_NE((*ui.model().projections->value.weight)(0, 0), before(0, 0));
  EXPECT_FALSE(arma::approx_equal(*ui.store.live().trace().at(core::attention::Stage::contexts, 0), first,
                                  "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(*ui.store.live().trace().at(core::attention::Stage::contexts, 1), second,
                                 "absdiff", 0));
}

struct ModelInTheWindow : Program {
  ModelInTheWindow() { ui.sharp = false; }
};

TEST_F(ModelInTheWindow, ShowsTheHeadThatAKeyNames) {
  ui.sharp = true;
  ui.run();
  ASSERT_EQ(ui.model().n_heads, 2u);
  const auto first = ui.pixels("strip/weights");
  ui.key(Key::digit_2);
  EXPECT_EQ(ui.store.view().look.head, 1u);
  ui.run();
  EXPECT_NE(ui.pixels("strip/weights"), first);
  ui.click("view/head/0");
  EXPECT_EQ(ui.store.view().look.head, 0u);
}

TEST_F(ModelInTheWindow, GrowsToTwentyTokensAndShrinksToOne) {
  const arma::mat numbers = *ui.model().sequences[0].embeddings;
  for (std::size_t n = 7; n <= 20; ++n) {
    ui.click("edit/add_token");
    ASSERT_EQ(ui.model().n_tokens(), n);
  }
  EXPECT_TRUE(arma::approx_equal(ui.model().sequences[0].embeddings->rows(0, 5), numbers, "absdiff", 0));
  EXPECT_EQ(ui.store.live().trace().at(core::attention::Stage::weights, 0).n_rows(), 20u);
  ui.fill_in("model/tokens", "3");
  EXPECT_EQ(ui.model().n_tokens(), 3u);
  ui.right_click("edit/token/1");
  ui.click("edit/token_menu/remove");
  EXPECT_EQ(ui.model().sequences[0].tokens, (std::vector<std::string>{"Your", "starts"}));
  ui.right_click("edit/token/1");
  ui.click("edit/token_menu/remove");
  ui.run();
  EXPECT_EQ(ui.model().n_tokens(), 1u);
  EXPECT_EQ(ui.weight(0, 0), 1);
}

TEST_F(ModelInTheWindow, StartsAnewFromEveryPreset) {
  const auto presets = core::editing::presets();
  for (std::size_t i = 0; i < presets.size(); ++i) {
    ui.click("model/preset");
    ui.run(4);
    ui.type(presets[i].about);
    ui.run();
    ui.click(std::string("menu/new/") + presets[i].name);
    ui.run();
    EXPECT_TRUE(ui.model() == presets[i].make()) << presets[i].name;
    EXPECT_EQ(ui.store.document().preset, presets[i].name);
  }
}

using app::Dialog;
using testing::HasSubstr;

struct Files : Program {
  Files() { ui.sharp = false; }
  const std::string file = (directory / "work.json").string();
  Dialog dialog() const { return ui.store.view().forms.dialog; }
  void change() {
    ui.drag("edit/cell/2/0", 60, 0);
    ASSERT_TRUE(ui.store.document().modified);
  }
  void save_as(const std::string& path) {
    ui.key(Key::s, {.ctrl = true, .shift = true});
    ui.fill_in("browser/name", path);
  }
  void open(const std::string& path) {
    ui.key(Key::o, {.ctrl = true});
    ui.fill_in("browser/name", path);
  }
};

TEST_F(Files, SavedAndOpenedAgainGiveAnEqualModel) {
  change();
  ui.click("model/causal");
  ui.click("model/bias_k");
  const auto saved = ui.model();
  ui.key(Key::s, {.ctrl = true});
  EXPECT_EQ(dialog(), Dialog::save_as) << "it has no file yet";
  ui.fill_in("browser/name", file);
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(ui.store.document().modified);
  EXPECT_EQ(ui.store.document().title, "work.json");

  ui.store.dispatch(app::LoadPreset{core::editing::presets().front().name});
  ui.run();
  ASSERT_FALSE(ui.model() == saved);
  open(file);
  EXPECT_EQ(ui.model(), saved);
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(ui.store.document().steps.can_undo);
  change();
  ui.key(Key::s, {.ctrl = true});
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_EQ(core::formats::load_session(file).model, ui.model());
  EXPECT_EQ(directory.names(), std::set<std::string>{"work.json"});
  ui.ask_to_close();
  EXPECT_TRUE(ui.store.wants_to_quit()) << "nothing is lost";
}

TEST_F(Files, ThatAreBrokenLeaveEverythingAsItWas) {
  support::put_bytes(file, R"({"attnscope": 1, "embeddings": [[1, 2], [3]]})");
  change();
  const auto before = ui.model();
  const auto words = ui.store.document().steps.undo_words;
  open(file);
  EXPECT_EQ(ui.model(), before);
  EXPECT_EQ(ui.store.document().steps.undo_words, words);
  EXPECT_TRUE(ui.store.document().modified);
  EXPECT_TRUE(ui.store.message().is_error);
  EXPECT_THAT(ui.store.message().text, HasSubstr(file));
  EXPECT_THAT(ui.store.message().text, HasSubstr("embeddings[1]"));
  EXPECT_EQ(dialog(), Dialog::open) << "so that another can be chosen";
}

struct Closing : Files {
  void SetUp() override {
    change();
    edited = ui.model();
    ui.ask_to_close();
    ASSERT_EQ(dialog(), Dialog::unsaved_work);
    ASSERT_FALSE(ui.store.wants_to_quit());
  }
  core::attention::Model edited;
};

TEST_F(Closing, CancelAndEscapeKeepTheWindowAndTheWorkAndDiscardQuits) {
  ui.click("dialog/cancel");
  EXPECT_FALSE(ui.store.wants_to_quit());
  ui.ask_to_close();
  EXPECT_EQ(dialog(), Dialog::unsaved_work) << "it asks each time";
  ui.key(Key::escape);
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(ui.store.wants_to_quit());
  EXPECT_EQ(ui.model(), edited);
  ui.ask_to_close();
  ui.run();
  ui.click("dialog/discard");
  EXPECT_TRUE(ui.store.wants_to_quit());
}

TEST_F(Closing, SaveAsksForANameSavesAndQuits) {
  ui.click("dialog/save");
  ui.run();
  ui.click("dialog/cancel");
  EXPECT_FALSE(ui.store.wants_to_quit());
  ui.ask_to_close();
  ui.run();
  ui.click("dialog/save");
  EXPECT_EQ(dialog(), Dialog::save_as);
  EXPECT_FALSE(ui.store.wants_to_quit());
  ui.run();
  ui.fill_in("browser/name", file);
  EXPECT_TRUE(ui.store.wants_to_quit());
  EXPECT_EQ(core::formats::load_session(file).model, edited);
}

}  // namespace
}  // namespace walk
