// Quitting while files are being written, and settings that the program remembers.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "app/window/loop.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace app {
namespace {

/// An export larger than a pipe's buffer lasts until the pipe is read.
struct QuittingWhileAnExportIsWritten : testing::Test {
  support::TemporaryDirectory directory;
  const std::filesystem::path pipe = directory.path() / "pipe.csv", second = directory.path() / "second.csv";
  gui::Program program;
  std::ifstream reader;

  void export_to(const std::filesystem::path& path) {
    program.store.dispatch(ExportAs{ExportFormat::csv, ExportScope::matrix, {Stage::weights, 0, 0, 0}, path});
  }
  void SetUp() override {
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    program.edit(core::editing::SetTokenCount{150});
    export_to(pipe);
    reader.open(pipe);  // waits until the export opens it
    program.store.dispatch(Undo{});
    program.waits = false;
  }
  void quit() {
    program.store.dispatch(Quit{});
    program.run();
  }
  /// Lets the export end, and returns its text.
  std::string read() {
    std::string text{std::istreambuf_iterator<char>(reader), {}};
    program.waits = true;
    program.run();
    return text;
  }
  Dialog dialog() const { return program.store.view().forms.dialog; }
};

TEST_F(QuittingWhileAnExportIsWritten, WaitsForItInTheWindow) {
  quit();
  EXPECT_FALSE(program.store.wants_to_quit());
  EXPECT_EQ(dialog(), Dialog::writing);
  EXPECT_THAT(program.store.view().forms.question, testing::HasSubstr("pipe.csv"));
  EXPECT_TRUE(program.has("dialog/stop"));
  EXPECT_FALSE(read().empty());
  EXPECT_TRUE(program.store.wants_to_quit());
}

TEST_F(QuittingWhileAnExportIsWritten, CanBeTakenBack) {
  quit();
  program.click("dialog/cancel");
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(read().empty());
  EXPECT_FALSE(program.store.wants_to_quit());
  program.store.dispatch(Quit{});
  EXPECT_TRUE(program.store.wants_to_quit());
}

TEST_F(QuittingWhileAnExportIsWritten, GivesUpWhatWaitsWhenToldTo) {
  export_to(second);
  quit();
  program.click("dialog/stop");
  EXPECT_FALSE(program.store.wants_to_quit()) << "the one under way can only stop at its next step";
  read();
  EXPECT_TRUE(program.store.wants_to_quit());
  EXPECT_FALSE(std::filesystem::exists(second));
}

TEST_F(QuittingWhileAnExportIsWritten, IsOffWhenAnotherCannotBeWritten) {
  std::ofstream(second) << "mine";
  export_to(second / "inside.csv");
  quit();
  EXPECT_EQ(dialog(), Dialog::writing);
  read();
  EXPECT_FALSE(program.store.wants_to_quit());
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_TRUE(program.store.message().is_error);
  EXPECT_THAT(program.store.message().text, testing::HasSubstr("inside.csv"));
}

TEST_F(QuittingWhileAnExportIsWritten, AsksAboutUnsavedWorkFirstAndOnce) {
  program.store.dispatch(ApplyEdit{core::editing::SetCausal{!program.store.model().mask.causal}});
  quit();
  ASSERT_EQ(dialog(), Dialog::unsaved_work);
  program.click("dialog/discard");
  EXPECT_EQ(dialog(), Dialog::writing);
  read();
  EXPECT_TRUE(program.store.wants_to_quit());
}

TEST_F(QuittingWhileAnExportIsWritten, AsksAgainAboutWorkThatWasDoneSince) {
  program.store.dispatch(ApplyEdit{core::editing::SetCausal{!program.store.model().mask.causal}});
  quit();
  program.click("dialog/discard");
  program.click("dialog/cancel");
  program.store.dispatch(Quit{});
  EXPECT_EQ(dialog(), Dialog::unsaved_work);
  EXPECT_FALSE(read().empty());
}

using platform::read_user_state;
using platform::UserState;

struct Remembers : testing::Test {
  const support::TemporaryDirectory folder;
  const UserState initial{{{"theme", "dark"}}, {}};
  Jobs jobs;
  std::optional<SettingsWriter> settings_writer{std::in_place, jobs, folder.path(), initial};

  void follow(const UserState& now) {
    settings_writer->follow(now);
    jobs.finish();
  }
};

TEST_F(Remembers, AtOnceWhatHasChanged) {
  follow(initial);
  EXPECT_TRUE(folder.names().empty()) << "nothing is new";
  UserState now = initial;
  now.settings["lesson 000"] = "3 0,1";
  now.recent = {"/a.json"};
  follow(now);
  EXPECT_EQ(read_user_state(folder.path()), now);  // safe even if the program is killed here
}

TEST_F(Remembers, WhatIsNewWhenItEnds) {
  UserState now = initial;
  for (const char* width : {"300", "310", "320"}) {  // a border dragged from frame to frame
    now.settings["left_width"] = width;
    settings_writer->follow(now);
  }
  settings_writer->finish(now);
  EXPECT_EQ(read_user_state(folder.path()), now);
}

TEST_F(Remembers, WhatAnotherWindowHasWrittenMeanwhile) {
  UserState now = initial;
  now.settings["lesson 000"] = "3 0,1";
  follow(now);
  UserState others = now;
  others.settings["theme"] = "light";
  others.recent = {"/theirs.json"};
  ASSERT_EQ(platform::write_user_state(folder.path(), others), "");
  now.settings["lesson 004"] = "1 0";
  follow(now);
  others.settings["lesson 004"] = "1 0";
  EXPECT_EQ(read_user_state(folder.path()), others);
}

TEST_F(Remembers, AndSaysOnceWhereItCannot) {
  support::put_bytes(folder / "a file", "");
  settings_writer.emplace(jobs, folder / "a file", initial);
  int n_named = 0;
  jobs.set_failure_handler([&](const Failure& failure) {
    ++n_named;
    EXPECT_EQ(failure.words,
              (folder / "a file").string() + ": settings and recent files cannot be written there");
  });
  UserState now = initial;
  for (const char* theme : {"light", "dark", "light"}) {
    now.settings["theme"] = theme;
    follow(now);
  }
  EXPECT_EQ(n_named, 1);
}

}  // namespace
}  // namespace app
