// The strip of stages, menus, dialogs, start page and tour, in small and large windows.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/ui/actions/actions.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/words.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::Key;
using core::attention::Stage;

struct FirstScreen : testing::Test {
  gui::Program ui{{1280, 800}};

  void SetUp() override {
    ui.screen.has_fonts = true;
    ui.run(4);
  }
  std::vector<std::string> texts_in(const std::string& name) {
    const auto place = ui.rect(name);
    return support::texts_within(place.min, place.max);
  }
  std::map<std::string, ImVec2> corners(const std::string& prefix) const {
    std::map<std::string, ImVec2> found;
    for (const auto& [name, rect] : ui.landmarks().all())
      if (name.starts_with(prefix)) found[name] = rect.min;
    return found;
  }
  /// Displays a model of two heads with n tokens.
  void show_tokens(std::size_t n) {
    ui.edit(core::editing::SetTokenCount{n});
    support::Random random(5);
    ui.edit(core::editing::SetBlock{{core::editing::MatrixName::embeddings, 0},
                                    0,
                                    0,
                                    support::matrix(random, n, ui.store.model().d_model())});
    ui.run(4);
  }
};

TEST_F(FirstScreen, MovesNoMapWhenAnotherHeadIsChosen) {
  const auto before = corners("strip/");
  ASSERT_GT(before.size(), 8u);
  ui.key(Key::digit_2);
  ui.run(3);
  ASSERT_EQ(ui.store.view().look.head, 1u);
  for (const auto& [name, at] : corners("strip/")) {
    const auto old = before.find(name);
    if (old == before.end()) continue;
    EXPECT_EQ(at.x, old->second.x) << name;
    EXPECT_EQ(at.y, old->second.y) << name;
  }
}

TEST_F(FirstScreen, KeepsTheWidthOfCellsWhileANumberIsDragged) {
  const auto before = ui.rect("strip/queries");
  const ImVec2 cell = ui.center("edit/cell/0/0");
  support::InputFrame hand;
  hand.mouse = cell;
  ui.play({hand});
  hand.left = true;
  ui.play({hand});
  hand.left.reset();
  for (float x = 0; x < 900; x += 150) {
    hand.mouse = ImVec2(cell.x + x, cell.y);
    ui.play({hand});
  }
  EXPECT_GT(std::abs(ui.store.model().sequences[0].embeddings.at(0, 0)), 5);
  EXPECT_EQ(ui.rect("strip/queries").max.x - ui.rect("strip/queries").min.x, before.max.x - before.min.x);
  hand.left = false;
  ui.play({hand});
}

TEST_F(FirstScreen, HoldsThreeMapsALineOfFourteenTokensAndOfTwentyOneInALargerWindow) {
  for (const auto& [n, size] : {std::pair(14u, ImVec2(1280, 800)), {21u, ImVec2(1600, 1000)}}) {
    ImGui::GetIO().DisplaySize = size;
    show_tokens(n);
    const auto scores = ui.rect("strip/scores"), scaled = ui.rect("strip/scaled_scores"),
               masked = ui.rect("strip/masked_scores");
    EXPECT_EQ(scores.min.y, scaled.min.y) << n;
    EXPECT_EQ(scores.min.y, masked.min.y) << n;
    EXPECT_LT(masked.max.x, ui.rect("region/stages").max.x) << n;
    ui.store.dispatch(app::OpenInStages{Stage::weights});
    ui.run(4);
    EXPECT_THAT(texts_in("strip/weights"), testing::Contains(testing::ContainsRegex("^0\\.[0-9][0-9]+$")))
        << n;
  }
}

TEST_F(FirstScreen, GivesNoRoomToStagesThatChangeNothing) {
  EXPECT_FALSE(ui.has("strip/dropout_mask"));
  EXPECT_FALSE(ui.has("strip/dropped_weights"));
  EXPECT_EQ(ui.rect("strip/weights").min.y, ui.rect("strip/contexts").min.y) << "they are in one line";
  ui.click("strip/pill/dropout_mask");
  ui.run(3);
  EXPECT_EQ(ui.store.model().dropout.rate, 0.5);
  EXPECT_TRUE(ui.has("strip/dropout_mask"));
  EXPECT_TRUE(ui.has("strip/dropped_weights"));
  ui.edit(core::editing::SetHeadCount{1});
  ui.run(3);
  EXPECT_FALSE(ui.has("strip/concatenated"));
  EXPECT_TRUE(ui.has("strip/pill/concatenated"));
}

TEST_F(FirstScreen, WritesNoNumberIntoMaskedCells) {
  const auto words = texts_in("strip/weights");
  EXPECT_EQ(words.size(), 21u) << "of 36 cells 15 are masked";
  EXPECT_THAT(words, testing::Not(testing::Contains("0")));
}

TEST_F(FirstScreen, ShowsTheCodeOfAStageOnRequest) {
  EXPECT_FALSE(ui.has("strip/code/weights"));
  ui.click("strip/formula/weights");
  ui.run(3);
  ASSERT_TRUE(ui.has("strip/code/weights"));
  const auto line = [&](Stage stage) {
    return core::graph::code_line(core::graph::attention(ui.store.model()), ui.store.model(), stage);
  };
  EXPECT_EQ(line(Stage::scores), "scores = queries @ keys.transpose(-2, -1)");
  EXPECT_THAT(line(Stage::weights), testing::HasSubstr("softmax"));
  EXPECT_EQ(line(Stage::embeddings), "");
}

TEST_F(FirstScreen, CutsNoLineOfCode) {
  ui.click("menu/View");
  ui.click("menu/stages/code");
  ui.run(3);
  for (const auto& [name, rect] : ui.landmarks().all()) {
    if (!name.starts_with("strip/code/") || rect.max.y > ui.rect("region/stages").max.y) continue;
    const auto* stage = core::attention::find_stage(name.substr(11));
    EXPECT_THAT(texts_in(name),
                testing::Contains(core::graph::code_line(core::graph::attention(ui.store.model()),
                                                         ui.store.model(), stage->stage)));
    for (const auto& [other, at] : ui.landmarks().all()) {
      if (other != name && other.starts_with("strip/code/")) {
        EXPECT_TRUE(rect.max.x <= at.min.x || rect.min.x >= at.max.x || rect.max.y <= at.min.y ||
                    rect.min.y >= at.max.y)
            << name << " and " << other;
      }
    }
  }
}

TEST_F(FirstScreen, HasALabelInPlaceOfAnOutputThatRepeatsTheContextVectors) {
  ui.store.dispatch(app::LoadPreset{"004-causal"});
  ui.run(4);
  EXPECT_TRUE(ui.has("strip/contexts"));
  EXPECT_FALSE(ui.has("strip/output"));
  EXPECT_THAT(texts_in("strip/pill/concatenated"), testing::Contains("One head: also the output"));
  ui.edit(core::editing::SetOutputProjection{true});
  ui.run(3);
  EXPECT_TRUE(ui.has("strip/output"));
  ui.edit(core::editing::SetOutputProjection{false});
  ui.store.dispatch(app::PinCell{{Stage::output, 0, 1, 0}});
  ui.run(3);
  EXPECT_TRUE(ui.has("strip/output")) << "its cell is pinned";
}

TEST_F(FirstScreen, HasRowsOfModelThatAreAsInThePaperUnderMore) {
  for (const char* row : {"model/scores", "model/merge", "model/context", "model/sequence_add"})
    EXPECT_FALSE(ui.has(row)) << row;
  EXPECT_TRUE(ui.has("edit/cell/5/0")) << "all of X has room";
  ui.click("model/more");
  ui.run(3);
  for (const char* row : {"model/scores", "model/merge", "model/context", "model/sequence_add"})
    EXPECT_TRUE(ui.has(row)) << row;
  ui.choose("model/scores", 1);
  ui.run(3);
  EXPECT_EQ(ui.store.model().scores, core::attention::ScoreRule::uniform);
  EXPECT_LT(ui.rect("model/scores").max.x, ui.rect("region/model").max.x) << "it is not as in the paper";
  ui.store.dispatch(app::StartLesson{"001-heads"});
  for (int k = 0; k < 4; ++k) ui.store.dispatch(app::StepLesson{1});
  ui.run(4);
  EXPECT_TRUE(ui.has("model/context") || ui.has("model/merge")) << "a step speaks of it";
}

TEST_F(FirstScreen, KeepsTheWidthOfModelWhenItScrolls) {
  const auto before = ui.rect("model/preset");
  ImGui::GetIO().DisplaySize = {1280, 640};
  ui.edit(core::editing::SetDropoutRate{0.5});
  ui.run(4);
  EXPECT_EQ(ui.rect("model/preset").max.x, before.max.x);
}

TEST_F(FirstScreen, ShowsOneNoteAtAFieldThatRefuses) {
  ui.fill_in("model/heads", "3");
  ui.run(3);
  ASSERT_TRUE(ui.has("model/heads/refused"));
  ui.move_to("model/heads");
  ui.run(30);
  std::vector<std::string> words;
  support::TextReader reader;
  for (const support::DrawnText& t : reader.texts()) words.push_back(t.text);
  EXPECT_THAT(words, testing::Contains(testing::HasSubstr("3 heads do not divide")));
  EXPECT_THAT(words, testing::Not(testing::Contains(testing::HasSubstr("a divisor of d_out"))));
}

TEST_F(FirstScreen, ShowsACellInEveryHeadFromItsMenu) {
  ui.right_click("strip/weights");
  ui.run(3);
  ui.click("menu/cell/heads");
  ui.run(3);
  EXPECT_EQ(ui.store.view().look.tab, app::Tab::heads);
  EXPECT_EQ(ui.store.view().look.heads_stage, Stage::weights);
  ASSERT_TRUE(ui.store.view().selection.pinned);
  EXPECT_EQ(ui.store.view().selection.pinned->stage, Stage::weights);
}

TEST_F(FirstScreen, HasHeadingsOnlyInTheirOwnMenus) {
  ui.click("menu/File");
  ui.run(3);
  std::vector<std::string> words;
  support::TextReader reader;
  for (const support::DrawnText& t : reader.texts()) words.push_back(t.text);
  EXPECT_THAT(words, testing::Not(testing::Contains("Concepts"))) << "a group of File > New";
}

TEST_F(FirstScreen, FramesTheFirstCellThatDiffers) {
  ui.store.dispatch(app::AddReference{});
  ui.edit(core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 2, 1, 3});
  ui.store.dispatch(app::set<&app::Look::tab>(app::Tab::compare));
  ui.run(4);
  const app::Rect map = ui.rect("compare/embeddings/difference"), cell = ui.rect("compare/first_cell");
  EXPECT_NEAR(cell.center().x, map.min.x + (map.max.x - map.min.x) * 1.5f / 3, 2);
  EXPECT_NEAR(cell.center().y, map.min.y + (map.max.y - map.min.y) * 2.5f / 6, 2);
}

TEST_F(FirstScreen, DrawsTheLinesOfQueriesInView) {
  show_tokens(6);
  ui.store.dispatch(app::set<&app::Look::tab>(app::Tab::tokens));
  ui.run(4);
  const std::string remark = "Drawn for the queries in view.";
  EXPECT_THAT(texts_in("region/tokens"), testing::Not(testing::Contains(testing::HasSubstr(remark))));
  EXPECT_THAT(texts_in("region/tokens"), testing::Contains("Its weights")) << "of a query to be pinned";
  show_tokens(200);
  EXPECT_THAT(texts_in("region/tokens"), testing::Contains(testing::HasSubstr(remark)));
}

TEST_F(FirstScreen, WritesNumbersAsPyTorchPrintsThemOnRequest) {
  ui.store.dispatch(app::set<&app::Settings::pytorch_numbers>(true));
  ui.store.dispatch(app::OpenInStages{Stage::weights});
  ui.run(4);
  EXPECT_THAT(texts_in("strip/weights"), testing::Each(testing::MatchesRegex("[01]\\.[0-9][0-9][0-9][0-9]")));
  EXPECT_THAT(texts_in("strip/weights"), testing::Contains("1.0000"));
  EXPECT_THAT(texts_in("strip/masked_scores"), testing::Contains("-inf"));
}

TEST_F(FirstScreen, HasTwoGroupsOfWhatToCompareWith) {
  ui.store.dispatch(app::set<&app::Look::tab>(app::Tab::compare));
  ui.run(3);
  EXPECT_EQ(ui.rect("reference/keep").min.y, ui.rect("reference/open").min.y);
  ui.click("reference/scale");
  ui.run(3);
  ASSERT_EQ(ui.store.references().size(), 1u);
  ui.click("reference/mask");
  ui.run(3);
  ASSERT_EQ(ui.store.references().size(), 2u);
  ui.click("reference/mask");
  ui.run(3);
  EXPECT_EQ(ui.store.references().size(), 1u) << "a second click ends it";
  EXPECT_EQ(ui.store.references()[0].experiment, 1u);
}

TEST_F(FirstScreen, PrintsShapesAsPyTorchDoes) {
  EXPECT_THAT(texts_in("region/stages"), testing::Contains(testing::HasSubstr("(6, 3)")));
  ui.edit(core::editing::AddSequence{});
  ui.run(3);
  EXPECT_THAT(texts_in("region/stages"), testing::Contains(testing::HasSubstr("(2, 6, 3)")));
}

TEST_F(FirstScreen, OffersTheWidthThatManyHeadsNeed) {
  const std::size_t before = ui.store.model().d_out();
  ui.fill_in("model/heads", "3");
  ui.run(3);
  ASSERT_TRUE(ui.has("model/heads/refused"));
  EXPECT_FALSE(ui.has("status/message")) << "the field says it";
  ui.click("model/heads/offer");
  ui.run(3);
  EXPECT_EQ(ui.store.model().n_heads, 3u);
  EXPECT_GT(ui.store.model().d_out(), before);
  EXPECT_FALSE(ui.has("model/heads/refused"));
}

TEST_F(FirstScreen, EndsARefusalWithEscape) {
  ui.fill_in("model/heads", "3");
  ui.run(3);
  ASSERT_TRUE(ui.has("model/heads/refused"));
  ui.key(Key::escape);
  ui.run(3);
  EXPECT_FALSE(ui.has("model/heads/refused"));
}

TEST_F(FirstScreen, OffersToInitializeNewRowsOfZeros) {
  EXPECT_FALSE(ui.has("edit/initialize"));
  ui.edit(core::editing::InsertToken{6, "more"});
  ui.run(3);
  ui.click("edit/initialize");
  ui.run(3);
  EXPECT_TRUE(arma::any((*ui.store.model().sequences[0].embeddings).row(6)));
  EXPECT_FALSE(ui.has("edit/initialize"));
}

TEST_F(FirstScreen, OffersToInitializeANewHeadOfZeros) {
  ui.edit(core::editing::SetOutputWidth{6});
  ui.edit(core::editing::SetHeadCount{3});
  ui.run(3);
  ASSERT_FALSE(arma::any(arma::vectorise(*ui.store.live().trace().at(Stage::queries, 2))));
  ui.click("edit/initialize");
  ui.run(3);
  EXPECT_TRUE(arma::any(arma::vectorise(*ui.store.live().trace().at(Stage::queries, 2))));
  EXPECT_FALSE(ui.has("edit/initialize"));
}

TEST_F(FirstScreen, NeverCutsTheOfferToInitialize) {
  ui.edit(core::editing::InsertToken{6, "more"});
  for (const ImVec2 size : {ImVec2(1280, 800), ImVec2(1024, 700)}) {
    ImGui::GetIO().DisplaySize = size;
    ui.run(4);
    if (ui.has("edit/initialize")) {
      EXPECT_LE(ui.rect("edit/initialize").max.y, ui.rect("region/edit").max.y) << size.x;
    }
  }
}

TEST_F(FirstScreen, KeepsNothingOfAnotherDocument) {
  ui.store.dispatch(app::AddReference{});
  ui.store.dispatch(app::set<&app::SentenceDraft::text>("another one"));
  ui.store.dispatch(app::set<&app::Look::head>(1));
  ui.store.dispatch(app::LoadPreset{"004-causal"});
  EXPECT_TRUE(ui.store.references().empty());
  EXPECT_EQ(ui.store.view().look.head, 0u);
  ui.run(3);
  ui.click("menu/Edit");
  ui.click("menu/edit/sentence");
  ui.run(3);
  EXPECT_EQ(ui.store.view().forms.sentence.text, "Your journey starts with one step");
}

TEST_F(FirstScreen, SearchesAllGroupsOfALongList) {
  ui.click("menu/File");
  ui.run(3);
  ui.click("menu/File/New");
  ui.run(4);
  ASSERT_TRUE(ui.has("menu/search"));
  EXPECT_FALSE(ui.has("menu/new/modern-llama"));
  ui.type("rope");
  ui.run(3);
  EXPECT_TRUE(ui.has("menu/new/modern-llama"));
  EXPECT_FALSE(ui.has("menu/File/New/Notebooks"));
  ui.click("menu/new/modern-llama");
  ui.run(3);
  EXPECT_TRUE(core::attention::rotary_of(ui.store.model()));
}

TEST_F(FirstScreen, TakesNoSnapshotWhereAMenuIsExpected) {
  ui.right_click("model/preset");
  EXPECT_TRUE(ui.store.references().empty());
}

TEST_F(FirstScreen, EditsNothingWhenTheLaboratoryOpens) {
  const auto before = ui.store.model();
  ui.click("menu/View");
  ui.click("menu/tab/laboratory");
  ui.run(3);
  EXPECT_EQ(ui.store.view().look.tab, app::Tab::laboratory);
  EXPECT_EQ(ui.store.model(), before);
  ui.click("laboratory/rate");
  EXPECT_EQ(ui.store.model().dropout.rate, 0.5);
}

TEST_F(FirstScreen, ShowsAllLinesOfCodeEvenWhenOneIsOpen) {
  ui.store.dispatch(app::set<&app::Look::code_lines>({Stage::weights}));
  const auto press = [&] {
    ui.click("menu/View");
    ui.click("menu/stages/code");
    ui.run(3);
  };
  press();
  EXPECT_TRUE(ui.has("strip/code/queries"));
  EXPECT_TRUE(ui.has("strip/code/weights"));
  press();
  EXPECT_FALSE(ui.has("strip/code/weights"));
}

TEST_F(FirstScreen, TypesTheRateOfDropoutAfterADoubleClick) {
  ui.double_click("model/dropout");
  ui.type("0.25");
  ui.key(Key::enter);
  ui.run(3);
  EXPECT_EQ(ui.store.model().dropout.rate, 0.25);
}

TEST_F(FirstScreen, CoversNothingThatTheTourSpeaksOf) {
  ui.store.dispatch(app::StartTour{});
  for (std::size_t step = 0; step < app::tour_steps().size(); ++step) {
    ui.run(4);
    const app::Rect card = ui.rect("tour/card"), target = ui.rect(app::tour_steps()[step].place);
    const auto are_apart = [&](const app::Rect& other) {
      return card.max.x <= other.min.x || card.min.x >= other.max.x || card.max.y <= other.min.y ||
             card.min.y >= other.max.y;
    };
    EXPECT_TRUE(are_apart(target)) << step;
    for (const char* map : {"strip/weights", "strip/scores", "strip/queries"})
      EXPECT_TRUE(are_apart(ui.rect(map))) << step << ": " << map;
    ui.store.dispatch(app::AdvanceTour{});
  }
}

TEST_F(FirstScreen, OffersTheOpenWorkAndTheNextLessonOnTheStartPage) {
  ui.edit(core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 0, 0, 2});
  const auto& first = core::lessons::lessons().front();
  std::set<std::size_t> done;
  for (std::size_t k = 0; k < first.steps.size(); ++k) done.insert(k);
  ui.store.dispatch(app::SetLessonProgress{first.name, first.steps.size() - 1, done});
  ui.store.dispatch(app::set<&app::Forms::start_page>(true));
  ui.run(4);
  EXPECT_THAT(texts_in("start/example"), testing::Contains("Your open model"));
  EXPECT_THAT(texts_in("start/lessons"),
              testing::Contains("Start: " + std::string(core::lessons::lessons()[1].title)));
  ui.type("1");
  ui.run(3);
  EXPECT_FALSE(ui.store.view().forms.start_page);
  EXPECT_EQ(ui.store.model().sequences[0].embeddings.at(0, 0), 2) << "nothing was replaced";
}

TEST_F(FirstScreen, SaysWhichCellWasGuessedInALesson) {
  ui.store.dispatch(app::StartLesson{"heads"});
  ui.run(6);
  ASSERT_TRUE(ui.store.lesson()->shown().predict);
  ui.store.dispatch(app::PinCell{{*ui.store.lesson()->shown().predict, 0, 2, 1}});
  ui.run(4);
  const auto& tokens = ui.store.model().sequences[0].tokens;
  std::string words;
  for (const std::string& text : texts_in("lesson/try")) words += text + " ";
  EXPECT_THAT(words, testing::HasSubstr("Your guess:"));
  EXPECT_THAT(words, testing::HasSubstr("‘" + tokens[2] + "’"));
}

TEST_F(FirstScreen, HasAMenuOnEveryCellAndOnTheNumbersOfEdit) {
  ui.right_click("strip/weights");
  ui.run(3);
  for (const char* line : {"cell/trace", "cell/mask", "cell/override", "cell/export"})
    EXPECT_TRUE(ui.has(std::string("menu/") + line)) << line;
  ui.click("menu/cell/trace");
  EXPECT_TRUE(ui.store.view().selection.pinned);
  ui.right_click("edit/cell/1/1");
  ui.run(3);
  ui.click("edit/cell_menu/zero");
  ui.run(2);
  EXPECT_EQ(ui.store.model().sequences[0].embeddings.at(1, 1), 0);
}

TEST_F(FirstScreen, HasMenusBySubject) {
  std::vector<std::string> names;
  for (const app::TopLevelMenu& top_level_menu : app::top_level_menus())
    names.emplace_back(top_level_menu.menu);
  EXPECT_THAT(names, testing::ElementsAre("File", "Edit", "View", "Model", "Compare", "Lessons", "Help"));
}

TEST_F(FirstScreen, BeginsThePaletteWithAFewLikelyActions) {
  ui.key(Key::p, {.ctrl = true, .shift = true});
  ui.run(3);
  const auto lines = [&] {
    return std::ranges::count_if(ui.landmarks().all(),
                                 [](const auto& mark) { return mark.first.starts_with("palette/line/"); });
  };
  EXPECT_GE(lines(), 4);
  EXPECT_LE(lines(), 8);
  ui.type("gutter");
  ui.run(2);
  ui.key(Key::enter);
  ui.run(2);
  ui.key(Key::p, {.ctrl = true, .shift = true});
  ui.run(3);
  EXPECT_FALSE(ui.store.view().forms.used_actions.empty()) << "it is remembered as the latest";
}

TEST_F(FirstScreen, OpensADoorOfTheStartPage) {
  ui.store.dispatch(app::set<&app::Forms::start_page>(true));
  ui.run(3);
  for (const char* door : {"start/example", "start/lessons", "start/model", "start/learn"})
    EXPECT_TRUE(ui.has(door)) << door;
  EXPECT_FALSE(ui.has("strip/weights"));
  EXPECT_FALSE(ui.has("region/inspector"));
  ui.click("start/example");
  ui.run(3);
  EXPECT_TRUE(ui.has("strip/weights"));
  EXPECT_FALSE(ui.store.view().forms.start_page);
  ui.store.dispatch(app::LeaveTour{});  // which the first card of the start page begins
  ui.store.dispatch(app::set<&app::Forms::start_page>(true));
  ui.run(3);
  ui.type("2");
  ui.run(3);
  EXPECT_TRUE(ui.store.lesson());
}

TEST_F(FirstScreen, ClosesMenusWithEscapeWhereverTheMouseRests) {
  const auto has_menu = [] {
    return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  };
  ui.click("menu/File");
  ui.move_to("menu/File/New");
  ui.run(3);
  ASSERT_TRUE(ui.has("menu/File/New/Modern"));
  ui.move_to("menu/File/New/Modern");
  ui.run(3);
  ASSERT_TRUE(has_menu());
  ui.key(Key::escape);
  ui.run(3);
  EXPECT_FALSE(has_menu());
}

TEST_F(FirstScreen, ClosesTheListOfADialogBeforeTheDialog) {
  ui.store.dispatch(app::ShowDialog{app::Dialog::export_files});
  ui.run(4);
  ui.click("dialog/stage");
  ui.run(3);
  ui.key(Key::escape);
  ui.run(3);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::export_files);
  ui.key(Key::escape);
  ui.run(3);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::none);
}

TEST_F(FirstScreen, EndsTheTourAndLeavesTheStartPageWithEscape) {
  ui.store.dispatch(app::StartTour{});
  ui.run(4);
  ASSERT_TRUE(ui.has("tour/card"));
  ui.key(Key::escape);
  ui.run(3);
  EXPECT_FALSE(ui.store.view().selection.tour);
  ui.store.dispatch(app::set<&app::Forms::start_page>(true));
  ui.run(3);
  ui.key(Key::escape);
  ui.run(3);
  EXPECT_FALSE(ui.store.view().forms.start_page);
  EXPECT_TRUE(ui.has("strip/weights"));
}

TEST_F(FirstScreen, OpensADoorOfTheStartPageWithTabAndEnter) {
  for (const int tabs : {1, 2, 4}) {
    ui.store.dispatch(app::LeaveLesson{});
    ui.store.dispatch(app::LeaveTour{});
    ui.store.dispatch(app::set<&app::Forms::start_page>(true));
    ui.run(3);
    for (int k = 0; k < tabs; ++k) {
      ui.key(Key::tab);
      ui.run(3);
    }
    EXPECT_TRUE(ui.store.view().forms.start_page);
    ui.key(Key::enter);
    ui.run(3);
    EXPECT_FALSE(ui.store.view().forms.start_page) << tabs;
    EXPECT_EQ(ui.store.lesson() != nullptr, tabs == 2) << tabs;
  }
}

TEST_F(FirstScreen, ShowsRowsOfEditBelowAModelThatScrolls) {
  for (const auto& [size, scale] : {std::pair(ImVec2(1280, 800), 1.5f), {ImVec2(1920, 1080), 2.0f}}) {
    ImGui::GetIO().DisplaySize = size;
    support::look(ui.store, [s = scale](app::View& v) { v.settings.scale = s; });
    ui.run(4);
    const auto model = ui.rect("region/model"), edit = ui.rect("region/edit");
    EXPECT_GE(edit.max.y - edit.min.y, 200 * scale) << "EDIT has room";
    EXPECT_LE(edit.max.y, size.y);
    EXPECT_LE(model.max.y, edit.min.y);
    EXPECT_LE(edit.max.x, model.max.x);
  }
}

TEST_F(FirstScreen, ConfirmsASentenceWithEnter) {
  ui.store.dispatch(app::ShowDialog{app::Dialog::sentence});
  ui.run(4);
  ui.type("one two three");
  ui.run(2);
  ui.key(Key::enter);
  ui.run(4);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::none);
  EXPECT_EQ(ui.store.model().n_tokens(), 3u);
}

}  // namespace
