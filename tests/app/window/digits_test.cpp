// The strip at 1280 × 800: maps keep their numbers as long as they can, and Weights is on the first screen.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/editing/presets.hpp"
#include "core/graph/stages.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using core::attention::Stage;

struct Digits : testing::Test {
  gui::Program ui{{1280, 800}};

  void SetUp() override { ui.screen.has_fonts = true; }
  void open(const std::string& preset) {
    ui.store.dispatch(app::LoadPreset{preset});
    if (ui.store.view().forms.dialog == app::Dialog::unsaved_work)
      ui.store.dispatch(app::DiscardAndContinue{});
    ui.run(4);
  }
  /// Gives the model n tokens with embeddings of 0 … 1, as those of the notebooks.
  void show_tokens(std::size_t n) {
    ui.edit(core::editing::SetTokenCount{n});
    support::Random random(7);
    const arma::mat numbers = 0.5 + 0.2 * support::matrix(random, n, ui.store.model().d_model());
    ui.edit(core::editing::SetBlock{
        {core::editing::MatrixName::embeddings, 0}, 0, 0, arma::mat(arma::clamp(numbers, 0.01, 0.99))});
    ui.run(3);
  }
  /// Returns the numbers in a map's cells, scrolled into view.
  std::vector<support::DrawnText> numbers_in(Stage stage) {
    ui.store.dispatch(app::OpenInStages{stage});
    ui.run(3);
    const app::Rect map = ui.rect(std::string("strip/") + core::attention::info(stage).name);
    std::vector<support::DrawnText> found;
    support::TextReader reader;
    for (const support::DrawnText& t : reader.texts())
      if (t.mono && t.min.x > map.min.x - 2 && t.max.x < map.max.x + 2 && t.min.y > map.min.y - 2 &&
          t.max.y < map.max.y + 2)
        found.push_back(t);
    return found;
  }
  /// Expects numbers with so many decimals in every map, with space between.
  void expect_numbers(std::size_t min_decimals) {
    for (const Stage stage : shown_stages()) {
      const std::string name = core::attention::info(stage).name;
      SCOPED_TRACE(name);
      const auto numbers = numbers_in(stage);
      ASSERT_FALSE(numbers.empty());
      const app::Rect map = ui.rect("strip/" + name);
      const auto columns = core::attention::shape_of(ui.store.model(), stage).n_cols;
      const float cell = map.width() / static_cast<float>(columns);
      std::size_t most = 0;
      for (const support::DrawnText& t : numbers) {
        EXPECT_THAT(t.text, testing::MatchesRegex("0|1|−∞|(−)?[0-9]*\\.[0-9]+"));
        EXPECT_GE(cell - (t.max.x - t.min.x), 3) << t.text;
        const auto dot = t.text.find('.');
        if (dot != t.text.npos) most = std::max(most, t.text.size() - dot - 1);
      }
      EXPECT_GE(most, min_decimals) << numbers.front().text;
    }
  }
  std::vector<Stage> shown_stages() const {
    std::vector<Stage> found;
    for (const auto& stage : core::attention::stages())
      if (ui.has(std::string("strip/") + stage.name)) found.push_back(stage.stage);
    return found;
  }
};

TEST_F(Digits, AreInEveryMapFromThreeToTenTokensWithSpaceBetween) {
  for (const char* preset : {"multi-head", "004-causal"})
    for (std::size_t n = 3; n <= 10; ++n) {
      open(preset);
      show_tokens(n);
      SCOPED_TRACE(preset + (", " + std::to_string(n)) + " tokens");
      expect_numbers(n == 8 ? 1 : 2);
    }
}

TEST_F(Digits, AreInEveryMapOfOneTwoAndFourHeadsInEveryWindow) {
  struct Case {
    ImVec2 size;
    float scale;
    std::vector<std::size_t> n_tokens;
  };
  for (const Case& window : {Case{{1280, 800}, 1, {3, 6, 8, 10}}, Case{{1600, 1000}, 1, {3, 8, 10, 12}},
                             Case{{1280, 800}, 1.5f, {3, 5, 6, 7, 8}}}) {
    support::look(ui.store, [&](app::View& view) { view.settings.scale = window.scale; });
    ImGui::GetIO().DisplaySize = window.size;
    for (const std::size_t n_heads : {1, 2, 4})
      for (const std::size_t n : window.n_tokens) {
        open("multi-head");
        ui.edit(core::editing::SetHeadCount{n_heads});
        show_tokens(n);
        SCOPED_TRACE(
            fmt::format("{} wide, scale {}: {} heads, {} tokens", window.size.x, window.scale, n_heads, n));
        expect_numbers(1);
      }
  }
}

TEST_F(Digits, ShareLinesAndTheFirstScreenEndsWithAllOfTheWeights) {
  for (const core::editing::Preset& preset : core::editing::presets()) {
    const std::string name = preset.name;
    const bool is_first = name == "multi-head" || name == "000-causal" || name == "001-dot-product" ||
                          name == "003-causal-class" || name.starts_with("004-");
    if (!is_first) continue;
    SCOPED_TRACE(name);
    open(name);
    const app::Rect strip = ui.rect("region/stages"), weights = ui.rect("strip/weights");
    EXPECT_LE(weights.max.y, strip.max.y - 20) << "with its bar";
    const float first = ui.rect("strip/embeddings").min.y;
    for (const char* map : {"strip/queries", "strip/keys", "strip/values"})
      if (ui.has(map)) {
        EXPECT_EQ(ui.rect(map).min.y, first) << map;
      }
    if (ui.has("strip/masked_scores")) {
      EXPECT_EQ(ui.rect("strip/scores").min.y, ui.rect("strip/masked_scores").min.y);
    }
  }
}

TEST_F(Digits, PutTwoMapsOnALineFromNineTokensOn) {
  for (std::size_t n = 6; n <= 10; ++n) {
    show_tokens(n);
    EXPECT_EQ(ui.rect("strip/scores").min.y, ui.rect("strip/scaled_scores").min.y) << n;
    const bool three = ui.rect("strip/scores").min.y == ui.rect("strip/masked_scores").min.y;
    EXPECT_EQ(three, n <= 8) << n;
    if (three) continue;
    EXPECT_EQ(ui.rect("strip/masked_scores").min.y, ui.rect("strip/weights").min.y) << n;
    EXPECT_LE(ui.rect("strip/weights").max.y, ui.rect("region/stages").max.y) << n;
    EXPECT_GT(ui.rect("strip/contexts").min.y, ui.rect("strip/weights").max.y) << n;
  }
}

TEST_F(Digits, AreInTheStageThatALessonSpeaksOf) {
  std::size_t n = 0;
  for (const core::lessons::Lesson& lesson : core::lessons::lessons()) {
    if (!lesson.model.empty() || lesson.trains()) continue;
    ui.store.dispatch(app::StartLesson{lesson.name});
    for (std::size_t step = 0; step < lesson.steps.size(); ++step) {
      ui.run(4);
      for (const std::string& focus : lesson.steps[step].focus) {
        const auto* stage =
            focus.starts_with("strip/") ? core::attention::find_stage(focus.substr(6)) : nullptr;
        if (!stage || !ui.has(focus)) continue;
        if (core::attention::shape_of(ui.store.model(), stage->stage).n_cols > 16) continue;
        EXPECT_FALSE(numbers_in(stage->stage).empty()) << lesson.name << ", step " << step << ": " << focus;
        ++n;
      }
      ui.store.dispatch(app::StepLesson{1});
    }
    ui.store.dispatch(app::LeaveLesson{});
    ui.run(2);
  }
  EXPECT_GT(n, 20u);
}

}  // namespace
