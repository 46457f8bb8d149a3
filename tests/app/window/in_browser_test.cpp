// A window in a page: without folders and threads, and with keys that the browser keeps.
#include <gmock/gmock.h>

#include <filesystem>

#include "app/ui/actions/actions.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "core/files/session.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

struct InABrowser : testing::Test {
  support::TemporaryDirectory memory;  // as the files of a page are
  const std::filesystem::path before = std::filesystem::current_path();
  gui::Program program{{1600, 1000}, LiveTrace::frame_ms, nullptr, draw_window, false};
  void SetUp() override {
    std::filesystem::current_path(memory.path());
    program.screen.is_page = true;
    program.store.set_in_browser();
    program.run();
  }
  void TearDown() override { std::filesystem::current_path(before); }
};

TEST_F(InABrowser, SavingIsADownloadOfTheSession) {
  program.edit(core::editing::SetTokenCount{3});
  program.ctrl(Key::s);
  EXPECT_TRUE(program.has("browser/name"));
  EXPECT_FALSE(program.has("browser/parent")) << "there are no folders";
  program.fill_in("browser/name", "mine");
  program.run(4);
  ASSERT_EQ(program.screen.offered.size(), 1u);
  EXPECT_EQ(core::formats::parse_session(program.screen.offered.at("mine.json"), "").model,
            program.store.model());
  EXPECT_EQ(program.store.message().text, "Saved mine.json");
  program.ctrl(Key::s);
  program.run(4);
  EXPECT_EQ(program.store.view().forms.dialog, Dialog::none) << "it has a name";
}

TEST_F(InABrowser, AnExportIsADownloadAndSeveralFilesAreOneArchive) {
  for (const auto& [what, path, name] :
       {std::tuple{ExportScope::matrix, "w.csv", "w.csv"}, {ExportScope::everything, "all", "all.zip"}}) {
    program.screen.offered.clear();
    program.store.dispatch(ExportAs{ExportFormat::csv, what, {Stage::weights, 0, 0, 0}, path});
    program.run(4);
    ASSERT_TRUE(program.screen.offered.contains(name)) << name;
    EXPECT_EQ(program.screen.offered.at(name).starts_with("PK"), what == ExportScope::everything);
    EXPECT_FALSE(std::filesystem::exists(path)) << "it takes no memory afterwards";
  }
}

TEST_F(InABrowser, FilesAreChosenInTheDialogOfTheBrowserAndArriveAsIfDropped) {
  program.ctrl(Key::o);
  EXPECT_FALSE(program.has("browser/parent"));
  program.click("browser/choose");
  EXPECT_EQ(program.screen.n_choices, 1);
  core::attention::Model model = program.store.model();
  model.n_heads = 1;
  core::formats::save_session("chosen.json", {model, "", {}});
  program.screen.dropped = {"chosen.json"};
  program.run(4);
  EXPECT_EQ(program.store.model().n_heads, 1u);
  EXPECT_EQ(program.store.view().forms.dialog, Dialog::none);
}

TEST_F(InABrowser, AnEmbeddedWindowIsTheViewAloneWithItsBarAndItsLesson) {
  program.store.set_in_browser(true);
  program.store.dispatch(StartLesson{"000"});
  program.run();
  for (const char* part : {"region/view bar", "region/stages", "region/lesson", "region/status"})
    EXPECT_TRUE(program.has(part)) << part;
  for (const char* part : {"menu/File", "region/model", "region/edit", "region/inspector", "splitter/left"})
    EXPECT_FALSE(program.has(part)) << part;
  EXPECT_LT(program.landmarks().find("region/stages")->min.x, 10);
}

TEST_F(InABrowser, AWholeModelIsReadAndARunTrainsBetweenFrames) {
  support::carry_out(program.store, OpenPath{FIXTURES "/../../assets/examples/tiny_gpt"});
  program.run(4);
  ASSERT_TRUE(program.store.pending().full_model) << program.store.message().text;
  program.store.dispatch(SweepHeads{true});
  program.run(4);
  EXPECT_FALSE(program.store.is_working());
  const core::training::Task& task = core::training::tasks().front();
  program.store.dispatch(SetLearning{task.name, "", task.setup});
  program.run(4);
  program.store.dispatch(StepLearning{20});
  program.run(4);
  ASSERT_TRUE(program.store.learning().run());
  EXPECT_EQ(program.store.learning().run()->n_steps(), 20u);
  EXPECT_EQ(program.store.jobs().next_piece(), Clock::time_point::max());
}

TEST_F(InABrowser, ThePinnedCellIsSaidInASentence) {
  program.store.dispatch(PinCell{{Stage::weights, 0, 1, 0}});
  program.run();
  EXPECT_THAT(program.screen.description,
              testing::MatchesRegex("Weight: .* attends to .*, 0\\.[0-9]+ \\(.*query 1 → key 0\\).*"));
}

TEST_F(InABrowser, EveryActionHasAKeyThatTheBrowserDoesNotKeep) {
  const DocumentState document = program.store.document();
  const auto displayed = displayed_state(program.store);
  const auto all = actions({displayed.displayed(), program.store.pending(), program.store.view().settings,
                            program.store.view().forms, document});
  for (const Action& action : all)
    EXPECT_TRUE(action.keys.empty() || !std::ranges::all_of(action.keys, is_reserved_in_browsers))
        << action.id;
  for (const KeyLine& line : key_sheet(all, true))
    EXPECT_THAT(line.keys, testing::Not(testing::HasSubstr("Ctrl+N")));
  program.edit(core::editing::SetTokenCount{3});
  program.key(Key::n, {.alt = true});
  EXPECT_EQ(program.store.view().forms.dialog, Dialog::unsaved_work) << "New, which is Ctrl+N elsewhere";
}

}  // namespace
}  // namespace app
