#include <gtest/gtest.h>

#include "app/session/store.hpp"
#include "core/editing/presets.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/support/look.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::editing::SetCausal;
using core::editing::SetDropoutRate;

void start(Store& store, const char* name) {
  store.dispatch(StartLesson{name});
  store.update();
}

TEST(Lesson, PutsTheOwnWorkAsideWithItsHistoryAndView) {
  Store store;
  store.dispatch(ApplyEdit{SetCausal{false}});
  support::look(store, [](View& v) {
    v.look.head = 1;
    v.look.tab = Tab::heads;
    v.selection.pinned = CellRef{Stage::weights, 1, 2, 1};
  });
  const auto own = store.model();
  start(store, "000");
  EXPECT_EQ(store.model(), core::editing::find_preset("000-causal")->make());
  EXPECT_EQ(store.view().look.tab, Tab::stages);
  EXPECT_EQ(store.document().title, "lesson: Causal attention in eleven steps");
  EXPECT_TRUE(store.document().modified) << "the own work is not saved";
  store.dispatch(LeaveLesson{});
  EXPECT_EQ(store.model(), own);
  EXPECT_EQ(store.view().look.tab, Tab::heads);
  EXPECT_EQ(store.view().look.head, 1u);
  EXPECT_EQ(store.view().selection.pinned, (CellRef{Stage::weights, 1, 2, 1}));
  EXPECT_FALSE(store.view().selection.lesson);
  for (int k = 0; k < 3 && store.model() == own; ++k) store.dispatch(Undo{});
  start(store, "000");
  store.dispatch(LeaveLesson{});
  store.dispatch(Redo{});
  EXPECT_EQ(store.model(), own) << "a lesson leaves what was undone to be redone";
}

TEST(Lesson, IsLeftByUndoingPastItsStart) {
  Store store;
  const auto own = store.model();
  start(store, "no such");
  EXPECT_EQ(store.lesson(), nullptr);
  EXPECT_TRUE(store.message().is_error);
  start(store, "000");
  store.dispatch(ApplyEdit{SetCausal{false}});
  store.dispatch(app::EndGesture{});
  store.dispatch(Undo{});
  EXPECT_NE(store.lesson(), nullptr) << "the first undo takes back what was tried";
  EXPECT_TRUE(store.model().mask.causal);
  store.dispatch(Undo{});
  EXPECT_EQ(store.lesson(), nullptr);
  EXPECT_EQ(store.model(), own);
}

TEST(Lesson, IsNeverSavedOverTheOwnWork) {
  support::TemporaryDirectory directory;
  const auto path = directory / "own.json";
  Store store;
  support::carry_out(store, SaveFileAs{path});
  const std::string saved = support::bytes_of(path);
  start(store, "004");
  support::carry_out(store, SaveFile{});
  EXPECT_TRUE(store.message().is_error);
  store.dispatch(ShowDialog{Dialog::save_as});
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
  EXPECT_EQ(support::bytes_of(path), saved);
}

TEST(Lesson, GivesWayToAPresetAndToQuitting) {
  Store store;
  store.dispatch(ApplyEdit{SetCausal{false}});
  start(store, "002");
  store.dispatch(Quit{});
  EXPECT_FALSE(store.wants_to_quit()) << "the own work is not saved";
  EXPECT_EQ(store.view().forms.dialog, Dialog::unsaved_work);
  EXPECT_FALSE(store.model().mask.causal);
  store.dispatch(DiscardAndContinue{});
  EXPECT_TRUE(store.wants_to_quit());
}

TEST(Lesson, KeepsItsProgress) {
  Store store;
  start(store, "dropout");
  store.dispatch(ApplyEdit{SetDropoutRate{0.5}});
  store.update();
  EXPECT_FALSE(store.lesson()->seen.empty());
  store.dispatch(StepLesson{1});
  store.dispatch(StepLesson{1});
  store.dispatch(LeaveLesson{});
  EXPECT_EQ(store.persistent_state().progress.at("dropout"), (LessonProgress{2, {0}}));
  Store later;
  later.apply_settings(store.persistent_state());
  start(later, "dropout");
  EXPECT_EQ(later.lesson()->step, 2u);
  EXPECT_TRUE(later.lesson()->done.contains(0));
}

TEST(LessonProgress, IsReadBackAndRefusedWhenItDoesNotFit) {
  for (const LessonProgress& progress : {LessonProgress{0, {}}, LessonProgress{4, {0, 3, 10}}})
    EXPECT_EQ(parse_progress(progress_text(progress), 11), progress);
  EXPECT_EQ(progress_text({4, {0, 3, 10}}), "4 0,3,10");
  for (const char* bad :
       {"", "x", "11 0", "4 11", "4 0,", "4 0;1", "-1 0", "4  0", "4,0", "99999999999999999999 0"})
    EXPECT_FALSE(parse_progress(bad, 11).has_value()) << bad;
}

TEST(OwnLesson, IsDraftedNextToTheSessionOpenedAndSentAsALink) {
  const support::TemporaryDirectory directory;
  Store store;
  store.dispatch(NewLesson{});
  EXPECT_TRUE(store.message().is_error) << "there is no session to begin with";
  store.dispatch(ApplyEdit{SetCausal{false}});
  support::carry_out(store, SaveFileAs{directory.path() / "day3.json"});
  const auto own = store.model();
  support::carry_out(store, NewLesson{});
  const std::filesystem::path file = directory.path() / "day3-lesson.json";
  ASSERT_TRUE(std::filesystem::exists(file)) << store.message().text;
  ASSERT_TRUE(store.lesson()) << store.message().text;
  EXPECT_EQ(store.lesson()->lesson->name, file.string());
  EXPECT_EQ(store.model(), own);
  store.dispatch(ApplyEdit{SetCausal{true}});
  support::settle(store);
  EXPECT_TRUE(store.lesson()->done.contains(0));
  EXPECT_NE(store.lesson()->seen.find("The output moved by"), std::string::npos) << store.lesson()->seen;
  EXPECT_TRUE(store.persistent_state().progress.empty());
  store.dispatch(CopyLink{});
  store.update();
  const std::string link = store.take_clipboard().value_or("");
  EXPECT_TRUE(link.starts_with("attnscope:#l="));

  Store other;
  support::carry_out(other, OpenPath{link});
  ASSERT_TRUE(other.lesson()) << other.message().text;
  EXPECT_EQ(other.model(), own);
  support::put_bytes(file, "{\"attnscope_lesson\": 1,\n \"title\": 3}");
  support::carry_out(other, OpenPath{file});
  EXPECT_NE(other.message().text.find("day3-lesson.json: line 2: title"), std::string::npos)
      << other.message().text;
}

}  // namespace
}  // namespace app
