// What is done in a window, recorded as lines of text, is done once more by a replay.
#include "app/session/recording.hpp"

#include <gmock/gmock.h>

#include "app/session/store.hpp"
#include "core/base/version.hpp"
#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/look.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

namespace editing = core::editing;
namespace fs = std::filesystem;
using editing::MatrixName;
using support::bytes_of;
using support::text_of_fields;
using testing::HasSubstr;
using testing::Not;

const std::string version_line = std::string("attnscope ") + core::version() + " recording\n";

ApplyEdit change(std::size_t row, double value) {
  return ApplyEdit{editing::SetCell{{MatrixName::embeddings, 0}, row, 1, value}};
}

struct Recording : testing::Test {
  support::TemporaryDirectory directory;
  fs::path path = directory / "recording";

  /// Writes a recording and replays it.
  void replay_text(const std::string& text, std::size_t last_line = 1000) {
    support::put_bytes(path, text);
    replay(store, path, last_line);
  }
  Store store;
};

TEST_F(Recording, HasEachLineInTheFileAtOnceAndNothingWhileNothingIsDone) {
  store.dispatch(set<&Settings::dark>(false));
  record(store, path);
  const std::string begin = bytes_of(path);
  EXPECT_TRUE(begin.starts_with(version_line + "SetField Look::tab stages\n")) << begin.substr(0, 100);
  EXPECT_THAT(begin, HasSubstr("\nSetField Settings::dark 0\n"));
  store.dispatch(PinCell{{Stage::scores, 0, 3, 1}});
  EXPECT_EQ(bytes_of(path), begin + "PinCell scores 0 3 1\n");
  for (int frame = 0; frame < 3; ++frame) store.dispatch(EndGesture{}), store.update();
  EXPECT_EQ(bytes_of(path), begin + "PinCell scores 0 3 1\nEndGesture\nupdate\n");
  store.dispatch(GoBack{});
  store.update();
  EXPECT_EQ(bytes_of(path), begin + "PinCell scores 0 3 1\nEndGesture\nupdate\nGoBack\nupdate\n");
}

TEST_F(Recording, BeginsWithTheViewAndTheProgressInLessons) {
  const auto& lesson = *core::lessons::find_lesson("001");
  ASSERT_GT(lesson.steps.size(), 2u);
  store.apply_settings({.recent = {}, .progress = {{"001", {2, {0, 1}}}}});
  support::look(store, [](View& view) { view.look.tab = Tab::heads, view.settings.scale = 1.5f; });
  record(store, path);
  store.dispatch(StartLesson{"001"});
  store.update();
  Store again;
  replay(again, path);
  EXPECT_EQ(text_of_fields(again), text_of_fields(store));
  ASSERT_TRUE(again.lesson());
  EXPECT_EQ(again.lesson()->step, 2u);
}

TEST_F(Recording, HasTheFileOfTheCommandLine) {
  const fs::path file = directory / "a.json";
  core::formats::save_session(file, {editing::find_preset("004-causal")->make(), "", {}, {}});
  record(store, path);
  store.open(file);
  Store again;
  replay(again, path);
  EXPECT_EQ(again.document().title, "a.json");
  EXPECT_EQ(again.model(), store.model());
}

TEST_F(Recording, IsReplayedUpToALine) {
  std::string text = version_line;
  for (int i = 1; i <= 4; ++i) text += to_text(change(0, i)) + "\n";
  replay_text(text, 3);
  EXPECT_EQ(store.model().sequences[0].embeddings.at(0, 1), 2);
  Store all;
  replay(all, path);
  EXPECT_EQ(all.model().sequences[0].embeddings.at(0, 1), 4);
}

TEST_F(Recording, WritesNoFileAndDoesNotQuitWhenItIsReplayed) {
  const fs::path saved = directory / "saved.json", exported = directory / "exported.npz";
  replay_text(
      version_line + to_text(change(0, 5)) + "\n" + to_text(SaveFileAs{saved}) + "\n" +
      to_text(ExportAs{.form = ExportFormat::npz, .what = ExportScope::everything, .path = exported}) +
      "\nupdate\n" + to_text(CopyText{"rm"}) + "\nQuitNow\nQuit\n");
  EXPECT_EQ(directory.names(), std::set<std::string>{"recording"});
  EXPECT_FALSE(store.document().modified) << "it goes on as after saving";
  EXPECT_EQ(store.document().title, "saved.json");
  EXPECT_FALSE(store.wants_to_quit());
  EXPECT_FALSE(store.take_clipboard());
  support::carry_out(store, SaveFileAs{saved});
  EXPECT_TRUE(fs::exists(saved)) << "afterwards files are written again";
}

TEST_F(Recording, ThatIsDamagedOrOfAnotherVersionIsRefusedInOneLineThatNamesThePlace) {
  const std::string good = version_line + "SetField Look::head 0\nupdate\n";
  struct Case {
    std::string text;
    const char* expected;
  };
  for (const Case& c :
       {Case{"", "line 1: expected a whole line"},
        Case{"attnscope 0.1.0 recording\nGoBack\n", "line 1: expected"},
        Case{"attnscope 0.1.0 recording\n", "got \"attnscope 0.1.0 recording\""},
        Case{"{\"format\": \"attnscope\"}\n", "line 1: expected \"attnscope"},
        Case{std::string("\x7f"
                         "ELF\0\n",
                         6),
             "line 1: expected"},
        Case{good + "GoBack", "line 4: expected a whole line"},
        Case{good + "Fly 3\n", "line 4: expected the name of a command, got \"Fly\""},
        Case{good + "\n", "line 4: expected the name of a command, got \"\""},
        Case{good + "PinCell weight 0 1 2\n", "line 4: expected one of Stage, got \"weight\""},
        Case{good + "PinCell 14 0 1 2\n", "line 4: expected one of Stage, got \"14\""},
        Case{good + "PinCell weights 0 1\n", "line 4: expected a number, got \"\""},
        Case{good + "PinCell weights 0 1 2 3\n", "line 4: expected the end of the line, got \" 3\""},
        Case{good + "SetField Look::nose 3\n",
             "line 4: expected the name of a field of the view, got \"Look::nose\""},
        Case{good + "ApplyEdit SetNose 3\n", "line 4: expected the name of a kind, got \"SetNose\""},
        Case{good + "CopyText \"a\n", "line 4: expected a text"}}) {
    const std::string error = support::error_of([&] { replay_text(c.text); });
    EXPECT_THAT(error, testing::StartsWith(path.string() + ": line "));
    EXPECT_THAT(error, HasSubstr(c.expected)) << c.text;
    EXPECT_THAT(error, Not(HasSubstr("\n"))) << c.text;
  }
  replay_text(good);
}

TEST_F(Recording, IsANewFile) {
  support::put_bytes(path, "mine");
  EXPECT_EQ(support::error_of([&] { record(store, path); }),
            path.string() + ": expected the name of a new file");
  EXPECT_EQ(bytes_of(path), "mine");
  EXPECT_THAT(support::error_of([&] { record(store, directory / "no/recording"); }),
              HasSubstr("cannot be written"));
}

TEST_F(Recording, NamesTheFileOnAFullDisk) {
  EXPECT_THAT(support::error_of([&] { record(store, "/dev/full"); }),
              HasSubstr("/dev/full: cannot be written"));
}

}  // namespace
}  // namespace app
