// The start page: its doors by mouse and keyboard, in every size, and the recent files.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/files/session.hpp"
#include "core/lessons/lessons.hpp"
#include "core/system/file.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/lessons.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace {

using app::Dialog;
using app::Key;
using testing::Contains;
using testing::StartsWith;

struct StartPage : testing::Test {
  support::TemporaryDirectory folder;
  gui::Program ui{{1280, 800}};

  void SetUp() override { ui.screen.has_fonts = true; }
  void show(app::PersistentState kept = {}) {
    ui.store.apply_settings(std::move(kept));
    ui.store.dispatch(app::set<&app::Forms::start_page>(true));
    do support::settle(ui.store, [&] { ui.run(1); });
    while (!ui.store.start_pictures());
    ui.run(3);
  }
  bool is_shown() const { return ui.store.view().forms.start_page; }
  std::filesystem::path saved_session() {
    const auto file = folder / "mine.json";
    core::system::write_atomically(file, core::formats::session_text({ui.store.model(), ""}));
    return file;
  }
  std::vector<std::string> texts_in(const std::string& name) {
    const auto place = ui.rect(name);
    return support::texts_within(place.min, place.max);
  }
};

TEST_F(StartPage, ShowsWhatTheRecentFilesHoldAndWhenTheyWereChanged) {
  const auto file = saved_session();
  show({.recent = {file, folder / "lost.json"}, .progress = {}});
  EXPECT_THAT(texts_in("start/recent/0"), Contains("mine.json"));
  EXPECT_THAT(texts_in("start/recent/0"), Contains("6 tokens, 2 heads"));
  EXPECT_THAT(texts_in("start/recent/0"), Contains(StartsWith("today, ")));
  EXPECT_THAT(texts_in("start/recent/1"), Contains("not found"));
  ASSERT_TRUE(ui.store.start_pictures());
  EXPECT_EQ(arma::size(ui.store.start_pictures()->recent[0].weights), arma::size(6, 6));
  ui.click("start/recent/0");
  support::settle(ui.store, [&] { ui.run(1); });
  EXPECT_FALSE(is_shown());
  EXPECT_EQ(ui.store.document().path, file);
}

TEST_F(StartPage, ReadsAFileAgainWhenItIsShownAgain) {
  const auto file = saved_session();
  show({.recent = {file}, .progress = {}});
  ui.edit(core::editing::SetTokenCount{3});
  ui.run(3);
  saved_session();
  show({.recent = {file}, .progress = {}});
  EXPECT_THAT(texts_in("start/recent/0"), Contains("3 tokens, 2 heads"));
}

TEST_F(StartPage, ShowsTheStepThatALessonGoesOnWith) {
  ImGui::GetIO().DisplaySize = {1920, 1080};  // narrower cards shorten the words
  show({.recent = {}, .progress = {{"000", {5, {0, 1, 2, 3, 4}}}}});
  const auto& lesson = *core::lessons::find_lesson("000");
  EXPECT_THAT(texts_in("start/lessons"), Contains(lesson.steps[5].title));
  EXPECT_THAT(texts_in("start/lessons"), Contains("Resume: " + lesson.title + ", step 6"));
  EXPECT_THAT(texts_in("start/lessons"), Contains("0.5133")) << "a weight of that step";
  ui.type("2");
  ui.run(3);
  ASSERT_TRUE(ui.store.lesson());
  EXPECT_EQ(ui.store.lesson()->step, 5u);
}

TEST_F(StartPage, NamesTheStepsOfALessonAboutAWholeModel) {
  show({.recent = {}, .progress = {{"induction", {2, {0, 1}}}}});
  const auto& lesson = *core::lessons::find_lesson("induction");
  for (std::size_t k = 2; k < lesson.steps.size(); ++k)
    EXPECT_THAT(texts_in("start/lessons"), Contains(lesson.steps[k].title));
}

TEST_F(StartPage, BeginsWithoutFocusWheneverItIsShown) {
  show();
  ui.key(Key::tab);
  ui.run(2);
  ui.key(Key::tab);
  ui.run(2);
  ui.key(Key::escape);
  ui.run(3);
  ASSERT_FALSE(is_shown());
  show();
  ui.key(Key::tab);
  ui.run(2);
  ui.key(Key::enter);
  ui.run(3);
  EXPECT_FALSE(is_shown());
  EXPECT_FALSE(ui.store.lesson()) << "Tab began at the first door again";
}

TEST_F(StartPage, MovesBetweenDoorsWithArrows) {
  show();
  ui.key(Key::right);
  ui.run(3);
  EXPECT_THAT(texts_in("start/example"), Contains("Enter"));
  ui.key(Key::right);
  ui.run(3);
  EXPECT_THAT(texts_in("start/lessons"), Contains("Enter"));
  ui.key(Key::enter);
  ui.run(3);
  EXPECT_TRUE(ui.store.lesson());
}

TEST_F(StartPage, OpensFilesThroughTheThirdDoorWithoutAModel) {
  show();
  for (int k = 0; k < 3; ++k) {
    ui.key(Key::tab);
    ui.run(2);
  }
  ui.key(Key::enter);
  ui.run(3);
  EXPECT_EQ(ui.store.view().forms.dialog, Dialog::open);
  EXPECT_TRUE(is_shown()) << "nothing was opened yet";
}

TEST_F(StartPage, OffersAnotherModelNextToItsOwn) {
  show({.recent = {}, .progress = {}, .models = {support::model_of_lessons()}});
  EXPECT_THAT(texts_in("start/model"), Contains("0.9285")) << "of the next token";
  ui.click("start/model/other");
  ui.run(3);
  EXPECT_EQ(ui.store.view().forms.dialog, Dialog::open);
  EXPECT_FALSE(ui.store.pending().full_model);
}

TEST_F(StartPage, HasRoomForEverythingInEverySize) {
  std::vector<std::filesystem::path> recent(6, saved_session());
  show({.recent = recent, .progress = {}, .models = {support::model_of_lessons()}});
  for (const auto& [size, scale] : {std::pair(ImVec2(1280, 800), 1.0f),
                                    {ImVec2(1024, 700), 1.0f},
                                    {ImVec2(960, 600), 1.0f},
                                    {ImVec2(700, 900), 1.0f},
                                    {ImVec2(1600, 1000), 1.0f},
                                    {ImVec2(1920, 1080), 1.0f},
                                    {ImVec2(1280, 800), 1.5f}}) {
    ImGui::GetIO().DisplaySize = size;
    support::look(ui.store, [s = scale](app::View& v) { v.settings.scale = s; });
    ui.run(4);
    SCOPED_TRACE(testing::Message() << size.x << " at " << scale);
    std::vector<app::Rect> parts{ui.rect("start/example"), ui.rect("start/lessons"), ui.rect("start/model"),
                                 ui.rect("start/learn"),   ui.rect("start/open"),    ui.rect("start/show")};
    for (std::size_t k = 0; ui.has("start/recent/" + std::to_string(k)); ++k)
      parts.push_back(ui.rect("start/recent/" + std::to_string(k)));
    for (std::size_t a = 0; a < parts.size(); ++a) {
      EXPECT_GE(parts[a].min.x, 0);
      EXPECT_LE(parts[a].max.x, size.x);
      EXPECT_LE(parts[a].max.y, ui.rect("region/start").max.y) << a;
      for (std::size_t b = 0; b < a; ++b)
        EXPECT_TRUE(parts[a].min.x >= parts[b].max.x || parts[a].max.x <= parts[b].min.x ||
                    parts[a].min.y >= parts[b].max.y || parts[a].max.y <= parts[b].min.y)
            << a << " and " << b << " overlap";
    }
    EXPECT_EQ(parts[0].min.y == parts[1].min.y, size.x / scale >= 760) << "side by side where there is room";
  }
}

}  // namespace
