// Sources of a score and two prompts in the window, on the tiny GPT.
#include <gmock/gmock.h>

#include "app/session/full_model_reading.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/program.hpp"
#include "tests/support/waiting.hpp"

namespace {

using app::CellRef;
using app::Key;
using app::Tab;
using core::attention::Stage;
using testing::HasSubstr;

struct CircuitsWindow : testing::Test {
  gui::Program ui{{1280, 1100}};

  void SetUp() override {
    ui.screen.has_fonts = true;
    ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam fig and egg jam f", 2);
    settle();
    support::look(ui.store, [](app::View& v) { v.look.tab = Tab::stages; });
    settle();
  }
  void settle() {
    support::settle(ui.store, [&] { ui.run(1); });
    ui.run(2);
  }
  void pin(const CellRef& cell) {
    ui.store.dispatch(app::PinCell{cell});
    settle();
  }
  void press(const char* landmark) {
    ui.click(landmark);
    settle();
  }
  std::string words() {
    ui.run(1);
    std::string all;
    support::TextReader reader;
    for (const support::DrawnText& text : reader.texts()) all += text.text + "\n";
    return all;
  }
  const app::LivePatches& patches() const { return ui.store.pending().reading->patches(); }
};

/// Expected values: NumPy, see tests/python/check_circuits.py.
TEST_F(CircuitsWindow, SplitAScoreByItsSources) {
  pin({Stage::scaled_scores, 0, 13, 6});
  EXPECT_FALSE(ui.has("inspector/sources/sum"));
  press("inspector/sources/shown/1");
  std::string all = words();
  EXPECT_THAT(all, HasSubstr("8.5662 − row mean 1.7453 =\n6.8209\n"));
  EXPECT_THAT(all, HasSubstr("MLP 0 × MLP 0\n+6.774\n"));
  EXPECT_THAT(all, HasSubstr("220 other pairs\n−0.220\n"));
  EXPECT_THAT(all, HasSubstr("head 0.2\n+5.023\n+0.603\n"));
  press("inspector/sources/relative/1");
  all = words();
  EXPECT_THAT(all, HasSubstr("MLP 0 × MLP 0\n+9.054\n"));
  EXPECT_THAT(all, HasSubstr("sum\n+8.566\n"));
  ui.key(Key::s);
  EXPECT_FALSE(ui.has("inspector/sources/sum"));
}

TEST_F(CircuitsWindow, FollowAHeadToWhatItRead) {
  pin({Stage::weights, 0, 13, 6});
  ui.key(Key::s);
  settle();
  press("inspector/sources/part/1");
  EXPECT_EQ(ui.store.view().layers.source, "head 0.2");
  const std::string all = words();
  EXPECT_THAT(all, HasSubstr("without it the weight is 0.9695 →\n0.1413\n"));
  EXPECT_THAT(all, HasSubstr("0.9759\n"));
  press("inspector/sources/read");
  EXPECT_EQ(ui.store.pending().full_model->layer, 0u);
  EXPECT_EQ(ui.store.view().selection.pinned, (CellRef{Stage::weights, 2, 6, 5}));
}

TEST_F(CircuitsWindow, SayWhyThereAreNoSources) {
  ui.key(Key::s);
  pin({Stage::scaled_scores, 0, 3, 6});
  EXPECT_THAT(words(), HasSubstr("This key is masked"));
  ui.store.dispatch(app::ToggleLayerHead{0, 2});
  settle();
  EXPECT_THAT(words(), HasSubstr("Discard the edits"));
}

TEST_F(CircuitsWindow, PatchASecondPrompt) {
  support::look(ui.store, [](app::View& v) {
    v.forms.dialog = app::Dialog::two_prompts;
    v.forms.prompts = {"egg jam food and egg jam f", "ig", "ood", 0, false};
  });
  settle();
  EXPECT_FALSE(ui.has("prompts/patch/2/0"));
  press("dialog/confirm");
  const app::PatchResult* found = patches().of(*ui.store.pending().full_model, ui.store.view().forms.prompts);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, "");
  EXPECT_NEAR(found->map.recovered(2, 0), 0.363, 5e-4);
  EXPECT_THAT(words(), HasSubstr("0.36\n"));
  press("prompts/copy");
  EXPECT_THAT(ImGui::GetClipboardText(), testing::StartsWith("layer,0,1,2,3\r\n0,"));
  press("prompts/patch/2/3");
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::none);
  EXPECT_EQ(ui.store.view().look.head, 3u);
}

TEST_F(CircuitsWindow, SayWhatIsWrongWithTheSecondPrompt) {
  const auto error_of = [&](const app::PromptsForm& form) {
    support::look(ui.store, [&](app::View& v) {
      v.forms.dialog = app::Dialog::two_prompts;
      v.forms.prompts = form;
    });
    settle();
    const app::PatchResult* found =
        patches().of(*ui.store.pending().full_model, ui.store.view().forms.prompts);
    return found ? found->error : "none";
  };
  EXPECT_EQ(error_of({"egg jam food", "ig", "ood", 0, true}),
            "corrupt prompt: expected as many tokens as the clean one, 14, got 7");
  EXPECT_EQ(error_of({"egg jam food and egg jam f", "egg", "ood", 0, true}),
            "answer: expected one token, got 3: 'e', 'g', 'g'");
}

}  // namespace
