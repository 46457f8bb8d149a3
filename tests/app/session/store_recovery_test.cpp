// Unsaved work survives a window that is told to end or runs next to others; killed_test.cpp kills it.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "app/session/store.hpp"
#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "core/system/file.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace {

std::atomic<int> flock_error{0};  // errno of a failing flock(), or 0

}  // namespace

/// Replaces flock() to fail as on file systems without locks.
extern "C" int flock(int descriptor, int operation) {
  if (flock_error == 0) return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
  errno = flock_error;
  return -1;
}

namespace app {
namespace {

using core::editing::MatrixName;
using core::editing::SetCell;
using support::bytes_of;
using support::put_bytes;
using support::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::vector<std::filesystem::path> models{FIXTURES "/../../assets/examples/tiny_gpt"};

Command edited(double value) {
  return ApplyEdit{SetCell{{MatrixName::embeddings, 0}, 1, 2, value}};
}

double edited_number(const Store& store) {
  return (*store.model().sequences.front().embeddings)(1, 2);
}

void record(Store& store, const TemporaryDirectory& state) {
  store.apply_settings({{}, {}, state.path()});
}

/// Edits, and waits until the edit is recorded or recording has failed.
void edit_and_record(Store& store, double value) {
  store.dispatch(edited(value));
  store.update();
  store.jobs().finish();
}

/// Restores the first piece of recovered work as the document.
void restore(Store& store) {
  support::carry_out(store, RestoreLeftover{0});
}

/// Runs commands in a window that then ends, and leaves its journal.
void leave(const TemporaryDirectory& state, const std::vector<Command>& commands) {
  Store store;
  store.apply_settings({{}, {}, state.path(), models});
  for (const Command& command : commands) {
    store.dispatch(command);
    support::finish_working(store);
    support::finish_reading(store);
  }
  store.dispatch(QuitNow{});
  EXPECT_TRUE(store.wants_to_quit());
}

/// Returns the only journal in a folder, or "".
std::filesystem::path journal_in(const TemporaryDirectory& state) {
  for (const std::string& name : state.names())
    if (name.ends_with(".journal")) return state / name;
  return "";
}

void change_journal(const TemporaryDirectory& state, const std::string& from, const std::string& to) {
  std::string text = bytes_of(journal_in(state));
  text.replace(text.find(from), from.size(), to);
  put_bytes(journal_in(state), text);
}

/// Returns the edited number from the only journal in a folder, or 0.
double recorded_number(const TemporaryDirectory& state) {
  if (journal_in(state).empty()) return 0;
  const std::string text = bytes_of(journal_in(state));
  const std::size_t begin = text.find('\n') + 1;
  const auto session = core::formats::parse_session(text.substr(begin, text.find('\x1e') - begin), "/a.json");
  return (*session.model.sequences.front().embeddings)(1, 2);
}

/// Updates a store until a condition holds, for at most 20 seconds.
template <class Condition>
void wait_for(Store& store, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (; !condition() && std::chrono::steady_clock::now() < end; store.update())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Limits files to 100 bytes while it lives.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{100, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

constexpr const char* not_recorded_words = "Edits are not recorded for the case of a crash: ";

TEST(Recovery, LeavesNothingOfWorkThatIsSavedOrGivenUp) {
  const TemporaryDirectory state, folder;
  {
    Store store;
    record(store, state);
    edit_and_record(store, 1);
    EXPECT_EQ(state.names().size(), 2u);  // a journal and its lock
    support::carry_out(store, SaveFileAs{folder / "a.json"});
    store.update();
    EXPECT_EQ(state.names().size(), 1u);
    edit_and_record(store, 2);
    store.dispatch(Quit{});
    store.dispatch(DiscardAndContinue{});
    EXPECT_TRUE(store.wants_to_quit());
    store.update();  // as the window's last frame does
  }
  EXPECT_THAT(state.names(), IsEmpty());
}

TEST(Recovery, KnowsThePresetThatWasEdited) {
  const TemporaryDirectory state;
  leave(state, {LoadPreset{"004-causal"}, edited(4)});
  Store store;
  record(store, state);
  restore(store);
  EXPECT_EQ(store.document().preset, "004-causal");
  EXPECT_FALSE(store.document().is_preset) << "it was edited";
  store.dispatch(ShowDialog{Dialog::save_as});
  EXPECT_EQ(store.view().forms.browser.name, "004-causal.json");
}

TEST(Recovery, KeepsALessonUntilItIsBack) {
  for (const bool own_is_edited : {false, true}) {
    const TemporaryDirectory state;
    std::vector<Command> commands{StartLesson{"next-word"}, ToggleLayerHead{1, 2}};
    if (own_is_edited) commands.insert(commands.begin(), edited(3));
    leave(state, commands);
    {
      Store store;  // cannot find the lesson's model
      record(store, state);
      restore(store);
      EXPECT_FALSE(store.lesson());
      EXPECT_THAT(store.message().text, HasSubstr("The lesson needs the model"));
      EXPECT_EQ(store.document().modified, own_is_edited);
      store.update();
      store.jobs().finish();
      EXPECT_EQ(store.view().forms.dialog, Dialog::recovery);
      EXPECT_THAT(store.view().forms.leftovers, ElementsAre(HasSubstr(", in the lesson ")));
      store.dispatch(KeepLeftovers{});
    }
    Store store;
    store.apply_settings({{}, {}, state.path(), models});
    const auto& left = store.view().forms.leftovers;
    ASSERT_EQ(left.size(), own_is_edited ? 2u : 1u);  // the second window's document is left too
    const auto lesson =
        std::ranges::find_if(left, [](const std::string& line) { return line.find("lesson") != line.npos; });
    support::carry_out(store, RestoreLeftover{static_cast<std::size_t>(lesson - left.begin())});
    ASSERT_TRUE(store.lesson()) << store.message().text;
    EXPECT_EQ(store.pending().full_model->experiment.heads_off.size(), 1u);
  }
}

TEST(Recovery, BringsWhatWasTriedBackIntoItsStepOfAFinishedLesson) {
  const TemporaryDirectory state;
  std::map<std::string, LessonProgress> progress;
  const std::size_t n_steps = core::lessons::find_lesson("004")->steps.size();
  for (std::size_t k = 0; k < n_steps; ++k) progress["004"].done.insert(k);
  progress["004"].step = n_steps - 1;
  const bool was_causal = model_at_start(core::lessons::find_lesson("004")->steps.back()).mask.causal;
  std::vector<Command> commands{StartLesson{"004"}};
  commands.insert(commands.end(), n_steps - 1, StepLesson{1});
  commands.emplace_back(ApplyEdit{core::editing::SetCausal{!was_causal}});
  leave(state, commands);
  Store store;
  store.apply_settings({{}, progress, state.path()});
  restore(store);
  ASSERT_TRUE(store.lesson()) << store.message().text;
  EXPECT_EQ(store.lesson()->step, n_steps - 1);
  EXPECT_EQ(store.model().mask.causal, !was_causal);
}

TEST(Recovery, OfAStepThatALessonNoLongerHasBringsTheOwnWorkBack) {
  const TemporaryDirectory state;
  leave(state, {edited(3), StartLesson{"004"}});
  change_journal(state, "\"step\": 0", "\"step\": 99");
  Store store;
  record(store, state);
  restore(store);
  EXPECT_FALSE(store.lesson());
  EXPECT_THAT(store.message().text, HasSubstr("no step 100 any more"));
  EXPECT_EQ(edited_number(store), 3);
}

TEST(Recovery, KnowsWhereWorkWasSavedThatWasEditedMeanwhile) {
  const TemporaryDirectory state;
  const View view;
  Document work;  // edited while it was being saved
  work.model = core::editing::default_preset().make();
  work.origin = {"old.json", "", "/old.json", "1"};
  {
    Jobs jobs;
    Recorder recorder(jobs);
    recorder.begin(state.path());
    ASSERT_TRUE(work.is_modified());
    recorder.follow({work, view});
    jobs.finish();
    work.origin = {"new.json", "", "/new.json", "2"};  // and then it was saved
    recorder.follow({work, view});
    jobs.finish();
  }
  const auto left = Journal::leftovers_in(state.path());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left.front()->header().path, "/new.json");
  EXPECT_EQ(left.front()->header().stamp, "2");
}

TEST(Recovery, OfWorkThatCameThroughAPipeHasNoPlace) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = core::formats::session_text({core::editing::default_preset().make(), "", {}});
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  Store store;
  const std::filesystem::path pipe = "/dev/fd/" + std::to_string(ends[0]);
  core::system::buffer_pipe_to_file(pipe);
  store.open(pipe);
  ::close(ends[0]);
  EXPECT_FALSE(store.document().path);
  EXPECT_THAT(store.document().recent, IsEmpty());
  store.dispatch(edited(2));
  store.dispatch(SaveFile{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::save_as);
  EXPECT_TRUE(store.document().modified);
}

TEST(Recovery, OfAWindowThatIsAskedToEndKeepsTheNewestEdit) {
  const TemporaryDirectory state;
  leave(state, {edited(3)});
  Store store;
  record(store, state);
  ASSERT_THAT(store.view().forms.leftovers, ElementsAre(HasSubstr(", 1 edit, at ")));
  restore(store);
  EXPECT_EQ(edited_number(store), 3);
}

TEST(Recovery, WritesTheNewestOfTheEditsThatWaited) {
  const TemporaryDirectory state;
  Store store;
  record(store, state);
  edit_and_record(store, 1);
  ASSERT_EQ(recorded_number(state), 1);
  // The first edit schedules the next write; the others come while it waits.
  for (const double value : {2.0, 3.0, 4.0}) {
    store.dispatch(edited(value));
    store.update();
  }
  while (recorded_number(state) == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(recorded_number(state), 4);
  store.dispatch(edited(5));
  wait_for(store, [&] { return recorded_number(state) != 4; });
  EXPECT_EQ(recorded_number(state), 5);
}

TEST(Recovery, RecordsWhatWasUndoneAndRedoneWhileItWaited) {
  const TemporaryDirectory state;
  Store store;
  record(store, state);
  edit_and_record(store, 1);
  store.dispatch(edited(2));  // waits, because another was just written
  store.dispatch(EndGesture{});
  store.update();
  store.dispatch(Undo{});
  store.dispatch(Undo{});
  store.update();
  ASSERT_FALSE(store.document().modified);
  store.dispatch(Redo{});
  store.dispatch(Redo{});
  store.update();
  wait_for(store, [&] { return recorded_number(state) == 2; });
  EXPECT_EQ(recorded_number(state), 2);
}

TEST(Recovery, IsOfferedBesideTheFileThatTheNextWindowOpensAfterWhatIsAskedAboutThat) {
  const TemporaryDirectory state;
  leave(state, {edited(3)});
  put_bytes(state / "t.csv", "0,1\n2,3\n4,5\n");
  put_bytes(state / "s.json",
            core::formats::session_text({core::editing::find_preset("004-causal")->make(), ""}));
  {
    Store store;
    record(store, state);
    store.open(state / "s.json");
    EXPECT_EQ(store.document().title, "s.json");
    EXPECT_EQ(store.view().forms.dialog, Dialog::recovery);
    EXPECT_EQ(store.view().forms.leftovers.size(), 1u);
    store.dispatch(KeepLeftovers{});
  }
  Store store;
  record(store, state);
  store.open(state / "t.csv");
  ASSERT_EQ(store.view().forms.dialog, Dialog::import_tensors);
  store.dispatch(ShowDialog{Dialog::none});
  EXPECT_EQ(store.view().forms.dialog, Dialog::recovery);
  restore(store);
  EXPECT_EQ(edited_number(store), 3);
  store.dispatch(ShowDialog{Dialog::about});
  store.dispatch(ShowDialog{Dialog::none});
  EXPECT_EQ(store.view().forms.dialog, Dialog::none) << "that was answered";
}

TEST(Recovery, FindsTheJournalOfAWindowThatIsStillEnding) {
  const TemporaryDirectory state;
  std::optional<Store> ending(std::in_place);
  record(*ending, state);
  edit_and_record(*ending, 3);
  Store store;
  record(store, state);
  store.update();
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
  ending.reset();
  wait_for(store, [&] { return store.view().forms.dialog != Dialog::none; });
  ASSERT_EQ(store.view().forms.dialog, Dialog::recovery);
  restore(store);
  EXPECT_EQ(edited_number(store), 3);
}

/// Working directory of the process until the end of the scope.
class In {
 public:
  explicit In(const std::filesystem::path& folder) { std::filesystem::current_path(folder); }
  In(const In&) = delete;
  In& operator=(const In&) = delete;
  ~In() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

TEST(Recovery, SavesWhereTheFileLayWhateverFolderTheNextWindowIsStartedIn) {
  const TemporaryDirectory state, folder, elsewhere;
  put_bytes(folder / "s.json",
            core::formats::session_text({core::editing::find_preset("004-causal")->make(), ""}));
  {
    const In in(folder.path());
    Store store;
    record(store, state);
    store.open("s.json");
    store.dispatch(edited(3));
    store.dispatch(QuitNow{});
  }
  const In in(elsewhere.path());
  Store store;
  record(store, state);
  restore(store);
  support::carry_out(store, SaveFile{});
  EXPECT_EQ(store.document().path, folder / "s.json");
  EXPECT_THAT(elsewhere.names(), IsEmpty());
  const auto saved = core::formats::load_session(folder / "s.json");
  EXPECT_EQ((*saved.model.sequences.front().embeddings)(1, 2), 3);
}

TEST(Recovery, CountsTheEditsThatAreNotSaved) {
  const TemporaryDirectory state, folder;
  const auto edit = [](Store& store, double value) {
    store.dispatch(edited(value));
    store.dispatch(EndGesture{});
  };
  {
    Store store;
    record(store, state);
    edit(store, 1);
    edit(store, 2);
    support::carry_out(store, SaveFileAs{folder / "lesson2.json"});
    for (const double value : {3.0, 4.0, 5.0, 6.0}) edit(store, value);
    store.dispatch(Undo{});
    store.dispatch(QuitNow{});
  }
  {
    Store store;
    record(store, state);
    EXPECT_THAT(store.view().forms.leftovers, ElementsAre(StartsWith("lesson2.json, 3 edits, at ")));
    restore(store);
    EXPECT_THAT(store.message().text, StartsWith("Recovered: lesson2.json, 3 edits, at "));
    edit(store, 7);
    store.dispatch(QuitNow{});
  }
  Store store;
  record(store, state);
  EXPECT_THAT(store.view().forms.leftovers, ElementsAre(StartsWith("lesson2.json, 4 edits, ")));
}

TEST(Recovery, NamesTheDayOfWhatIsOlder) {
  JournalHeader header{"a.json", {}, "", "2026-11-21 23:58", "2026-11-22 10:32"};
  header.n_edits = 14;
  EXPECT_EQ(journal_summary(header, "2026-11-22 10:33"), "a.json, 14 edits, from 2026-11-21 23:58 to 10:32");
  EXPECT_EQ(journal_summary(header, "2026-11-23 10:33"),
            "a.json, 14 edits, from 2026-11-21 23:58 to 2026-11-22 10:32");
}

TEST(Recovery, BringsBackBothALessonWithWhatWasTriedInItAndTheOwnWork) {
  for (const std::string name : {"004", "next-word"}) {
    const TemporaryDirectory state;
    const auto is_tried = [&](Store& store) {
      return name == "004" ? !store.model().mask.causal
                           : store.pending().full_model->experiment.heads_off.size() == 1;
    };
    leave(state,
          {edited(3), StartLesson{name}, StepLesson{1},
           name == "004" ? Command(ApplyEdit{core::editing::SetCausal{false}}) : ToggleLayerHead{1, 2}});
    Store store;
    store.apply_settings({{}, {}, state.path(), models});
    ASSERT_THAT(store.view().forms.leftovers, ElementsAre(HasSubstr(", in the lesson "))) << name;
    EXPECT_THAT(store.view().forms.leftovers, ElementsAre(HasSubstr(", 2 edits, at "))) << name;
    restore(store);
    ASSERT_TRUE(store.lesson()) << name << ": " << store.message().text;
    EXPECT_THAT(store.message().text, StartsWith("Recovered: "));
    EXPECT_EQ(store.lesson()->step, 1u);
    EXPECT_TRUE(is_tried(store)) << name;
    store.dispatch(Undo{});
    EXPECT_FALSE(is_tried(store)) << name;
    store.dispatch(LeaveLesson{});
    EXPECT_EQ(edited_number(store), 3);
    EXPECT_TRUE(store.document().modified);
  }
}

TEST(Recovery, KeepsWhatWasTriedInALessonWhereTheOwnWorkIsSaved) {
  const TemporaryDirectory state;
  leave(state, {StartLesson{"004"}, StepLesson{1}, ApplyEdit{core::editing::SetCausal{false}}});
  Store store;
  record(store, state);
  restore(store);
  ASSERT_TRUE(store.lesson());
  EXPECT_FALSE(store.model().mask.causal);
  store.dispatch(LeaveLesson{});
  EXPECT_FALSE(store.document().modified);
}

TEST(Recovery, SaysWhatIsWrongWithAJournalAndLeavesIt) {
  const TemporaryDirectory state;
  leave(state, {edited(3)});
  change_journal(state, "\"path\": \"", "\"path\": \"zz");
  Store store;
  record(store, state);
  ASSERT_THAT(store.view().forms.leftovers,
              ElementsAre(HasSubstr("path: expected two digits for each byte")));
  restore(store);
  EXPECT_TRUE(store.message().is_error);
  EXPECT_EQ(store.view().forms.dialog, Dialog::recovery);
}

TEST(Recovery, OffersWhatIsLeftAgainUntilItIsThrownAway) {
  const TemporaryDirectory state;
  leave(state, {edited(3)});
  {
    Store store;
    record(store, state);
    store.dispatch(KeepLeftovers{});
    EXPECT_EQ(store.view().forms.dialog, Dialog::none);
    store.dispatch(Quit{});
  }
  {
    Store store;
    record(store, state);
    ASSERT_EQ(store.view().forms.leftovers.size(), 1u);
    store.dispatch(DiscardLeftover{0});
    ASSERT_EQ(store.view().forms.dialog, Dialog::question) << "it is nowhere else";
    EXPECT_THAT(store.view().forms.question, HasSubstr(", 1 edit, at "));
    store.dispatch(CancelQuestion{});
    EXPECT_EQ(store.view().forms.dialog, Dialog::recovery);
    EXPECT_EQ(state.names().size(), 3u) << "two journals' locks, and what is left";
    store.dispatch(DiscardLeftover{0});
    store.dispatch(ConfirmQuestion{});
    EXPECT_EQ(store.view().forms.dialog, Dialog::none);
    store.dispatch(Quit{});
  }
  EXPECT_THAT(state.names(), IsEmpty());
}

TEST(Recovery, IsNobodyElsesToRead) {
  const TemporaryDirectory state;
  std::filesystem::permissions(state.path(), std::filesystem::perms(0755));
  leave(state, {edited(3)});
  EXPECT_EQ(std::filesystem::status(state.path()).permissions(), std::filesystem::perms(0700));
}

TEST(Recovery, LeavesTheWorkOfAnotherWindowAlone) {
  const TemporaryDirectory state;
  Store one;
  record(one, state);
  one.dispatch(edited(1));
  one.update();
  one.jobs().finish();
  Store other;
  record(other, state);
  EXPECT_EQ(other.view().forms.dialog, Dialog::none);
  EXPECT_EQ(state.names().size(), 3u);
}

TEST(Recovery, SaysWhereItCannotRecordForWantOfLocks) {
  const TemporaryDirectory state;
  flock_error = ENOLCK;
  {
    Store store;
    record(store, state);
    EXPECT_EQ(store.message().text,
              not_recorded_words + state.path().string() + ": cannot be written: No locks available");
    edit_and_record(store, 2);
  }
  flock_error = 0;
  EXPECT_THAT(state.names(), IsEmpty());
}

TEST(Recovery, SaysThatItCannotRecordAtTheStartAndAtTheFirstEditOfAFileUntilItCan) {
  const TemporaryDirectory folder;
  put_bytes(folder / "a file", "");
  Store store;
  support::carry_out(store, SaveFileAs{folder / "s.json"});
  store.apply_settings({{}, {}, folder / "a file/state"});
  EXPECT_TRUE(store.message().is_error);
  EXPECT_THAT(store.message().text, StartsWith(not_recorded_words));
  EXPECT_THAT(store.message().text, HasSubstr("part of the path is not a directory"));
  store.open(folder / "s.json");
  EXPECT_THAT(store.message().text, StartsWith("Opened "));
  store.dispatch(edited(1));
  store.update();
  EXPECT_THAT(store.message().text, StartsWith(not_recorded_words));
  store.dispatch(edited(2));
  store.update();
  EXPECT_EQ(store.message().text, "") << "once is enough";
}

TEST(Recovery, RecordsOnceAFolderCanBeWrittenThatCouldNotAtTheStart) {
  const TemporaryDirectory folder;
  put_bytes(folder / "a file", "");
  Store store;
  store.apply_settings({{}, {}, folder / "a file/state"});
  std::filesystem::remove(folder / "a file");
  edit_and_record(store, 1);
  EXPECT_EQ(folder.names().size(), 4u) << "two folders, a journal and its lock";
}

TEST(Recovery, SaysOnceThatTheDiskIsFullAndRecordsAgainWhenThereIsRoom) {
  for (const bool is_whole : {false, true}) {
    const TemporaryDirectory state;
    Store store;
    record(store, state);
    if (is_whole) store.open(models.front());
    {
      const FullDisk full;
      store.dispatch(is_whole ? Command(ToggleLayerHead{2, 3}) : edited(1));
      store.update();
      store.jobs().finish();
      EXPECT_TRUE(store.message().is_error);
      EXPECT_THAT(store.message().text, StartsWith(not_recorded_words));
      EXPECT_EQ(state.names().size(), 1u) << "the lock, and nothing half-written";
      if (!is_whole) {
        store.dispatch(ShowMessage{"something else"});
        store.update();  // retries after a second
        store.jobs().finish();
        EXPECT_EQ(store.message().text, "something else");
      }
    }
    if (is_whole)
      wait_for(store, [&] { return !journal_in(state).empty(); });  // without another edit
    else
      store.dispatch(QuitNow{});
    EXPECT_EQ(state.names().size(), 2u);
  }
}

TEST(Recovery, RecordsInAFolderThatWasRemovedMeanwhile) {
  const TemporaryDirectory folder;
  const auto state = folder / "state";
  for (const bool is_asked_to_end : {false, true}) {
    {
      Store store;
      store.apply_settings({{}, {}, state});
      edit_and_record(store, 1);
      std::filesystem::remove_all(state);
      store.dispatch(edited(2));
      if (is_asked_to_end) {
        store.dispatch(QuitNow{});
      } else {
        store.update();
        store.jobs().finish();
      }
      EXPECT_FALSE(store.message().is_error) << store.message().text;
      EXPECT_TRUE(Journal::leftovers_in(state).empty()) << "this window holds it";
    }
    Store next;
    next.apply_settings({{}, {}, state});
    ASSERT_EQ(next.view().forms.leftovers.size(), 1u);
    restore(next);
    EXPECT_EQ(edited_number(next), 2);
    next.dispatch(Quit{});
    next.dispatch(DiscardAndContinue{});
  }
}

TEST(Recovery, OffersAWholeModelAgainThatCouldNotBeOpened) {
  const TemporaryDirectory state, folder;
  std::filesystem::copy(FIXTURES "/../../assets/examples/tiny_gpt", folder / "tiny");
  core::experiment::Experiment experiment;
  {
    Store store;
    record(store, state);
    store.open(folder / "tiny");
    store.dispatch(
        ApplyEdit{core::editing::SetCell{{core::editing::MatrixName::query_weight, 0}, 3, 4, 0.5}});
    store.dispatch(EndGesture{});
    store.dispatch(ToggleLayerHead{2, 3});
    experiment = store.pending().full_model->experiment;
    store.dispatch(QuitNow{});
  }
  std::filesystem::rename(folder / "tiny", folder / "elsewhere");
  Store store;
  record(store, state);
  restore(store);
  EXPECT_EQ(store.view().forms.dialog, Dialog::recovery);
  EXPECT_TRUE(store.message().is_error);
  EXPECT_THAT(store.message().text, HasSubstr((folder / "tiny").string()));
  std::filesystem::rename(folder / "elsewhere", folder / "tiny");
  restore(store);
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
  ASSERT_TRUE(store.pending().full_model) << store.message().text;
  EXPECT_EQ(store.pending().full_model->experiment, experiment);
  EXPECT_TRUE(store.document().modified);
}

TEST(Saving, AsksBeforeItReplacesWhatSomebodyElseHasWritten) {
  const TemporaryDirectory folder;
  const auto path = folder / "a.json";
  Store store;
  support::carry_out(store, SaveFileAs{path});
  store.dispatch(edited(1));
  put_bytes(path, "somebody else's");
  store.dispatch(SaveFile{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::question);
  EXPECT_THAT(store.view().forms.question, HasSubstr("has been changed by somebody else"));
  support::carry_out(store, CancelQuestion{});
  EXPECT_EQ(bytes_of(path), "somebody else's");
  store.dispatch(SaveFile{});
  support::carry_out(store, ConfirmQuestion{});
  const std::string own = bytes_of(path);
  EXPECT_THAT(own, StartsWith("{\n  \"attnscope\": 1"));
  const auto time = std::filesystem::last_write_time(path);
  put_bytes(path, std::string(own.size(), ' '));  // by a program that keeps its length and restores its time
  std::filesystem::last_write_time(path, time);
  store.dispatch(edited(1.5));
  store.dispatch(SaveFile{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::question);
  support::carry_out(store, ConfirmQuestion{});
  store.dispatch(edited(2));
  store.dispatch(SaveFile{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);  // its own writing is no foreign change
}

TEST(Opening, AsksBeforeFilesElsewhereAreRead) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "in");
  put_bytes(folder / "x.csv", "1,2\n3,4\n");
  put_bytes(folder / "in/s.json", R"({"attnscope": 1, "embeddings": {"file": "../x.csv"}})");
  Store store;
  support::carry_out(store, OpenPath{folder / "in/s.json"});
  ASSERT_EQ(store.view().forms.dialog, Dialog::question);
  EXPECT_THAT(store.view().forms.question, HasSubstr("\"../x.csv\" does not lie beside the session"));
  EXPECT_NE(store.document().title, "s.json");
  support::carry_out(store, ConfirmQuestion{});
  EXPECT_EQ(store.document().title, "s.json");
}

}  // namespace
}  // namespace app
