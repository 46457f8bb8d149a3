// Work that is not saved outlives the window: killed, asked to end, or beside others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "app/store/store.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using namespace std::chrono_literals;
using core::editing::MatrixName;
using core::editing::SetCell;
using support::bytes_of;
using support::put_bytes;
using support::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

Command edited(double value) {
  return ApplyEdit{SetCell{{MatrixName::embeddings, 0}, 1, 2, value}};
}

double edited_number(const Store& store) {
  return (*store.model().sequences.front().embeddings)(1, 2);
}

void record(Store& store, const TemporaryDirectory& state) {
  store.recall({{}, {}, state.path()});
}

/// What a process of its own shares with the test.
struct Shared {
  std::atomic<int> value = 0;             ///< of the newest edit
  std::atomic<std::int64_t> times[4096];  ///< when each was made, in nanoseconds
};

/// A window without a display that edits on and on, each edit another value, until it is killed.
pid_t start_editing(const TemporaryDirectory& state, Shared& shared) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  Store store;
  record(store, state);
  for (int value = 1; value < 4096; ++value) {
    store.dispatch(edited(value));
    store.dispatch(EndGesture{});
    store.settle();
    shared.times[value] = Clock::now().time_since_epoch().count();
    shared.value = value;
    std::this_thread::sleep_for(4ms);
  }
  for (;;) {
    store.settle();
    std::this_thread::sleep_for(4ms);
  }
}

TEST(Recovery, LosesAtMostASecondWheneverTheWindowIsKilled) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::mt19937 random(7);
  for (int round = 0; round < 8; ++round) {
    const TemporaryDirectory state;
    auto& shared = *new (memory) Shared;
    const pid_t child = start_editing(state, shared);
    while (shared.value == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100 + random() % 900));
    ::kill(child, SIGKILL);
    const std::int64_t killed = Clock::now().time_since_epoch().count();
    ::waitpid(child, nullptr, 0);
    int must_be_there = 0;
    while (must_be_there < shared.value && killed - shared.times[must_be_there + 1] > 1'000'000'000)
      ++must_be_there;
    ASSERT_GT(must_be_there, 0);

    Store store;
    record(store, state);
    ASSERT_EQ(store.view().forms.dialog, Dialog::recovery);
    ASSERT_EQ(store.view().forms.left.size(), 1u);
    store.dispatch(TakeUpLeft{0});
    EXPECT_GE(edited_number(store), must_be_there) << "of " << shared.value;
    EXPECT_LE(edited_number(store), shared.value);
    EXPECT_TRUE(store.document().modified);
    EXPECT_THAT(store.message().text, StartsWith("Recovered: "));
    store.dispatch(edited(0.5));
    store.dispatch(Undo{});
    EXPECT_GE(edited_number(store), must_be_there);
    store.dispatch(DiscardAndContinue{});
  }
  ::munmap(memory, sizeof(Shared));
}

TEST(Recovery, LeavesNothingOfWorkThatIsSavedOrGivenUp) {
  const TemporaryDirectory state, folder;
  {
    Store store;
    record(store, state);
    store.dispatch(edited(1));
    store.settle();
    store.jobs().finish();
    EXPECT_EQ(state.names().size(), 2u);  // a journal and its lock
    store.dispatch(SaveFileAs{folder / "a.json"});
    support::finish_reading(store);
    store.settle();
    EXPECT_EQ(state.names().size(), 1u);
    store.dispatch(edited(2));
    store.settle();
    store.jobs().finish();
    store.dispatch(Quit{});
    store.dispatch(DiscardAndContinue{});
    EXPECT_TRUE(store.wants_to_quit());
  }
  EXPECT_THAT(state.names(), IsEmpty());
}

TEST(Recovery, OfAWindowThatIsAskedToEndKeepsTheNewestEdit) {
  const TemporaryDirectory state;
  {
    Store store;
    record(store, state);
    store.dispatch(edited(3));
    store.dispatch(EndNow{});
    EXPECT_TRUE(store.wants_to_quit());
  }
  Store store;
  record(store, state);
  ASSERT_THAT(store.view().forms.left, ElementsAre(HasSubstr(", edited at ")));
  store.dispatch(TakeUpLeft{0});
  EXPECT_EQ(edited_number(store), 3);
}

TEST(Recovery, OffersWhatIsLeftAgainUntilItIsThrownAway) {
  const TemporaryDirectory state;
  {
    Store store;
    record(store, state);
    store.dispatch(edited(3));
    store.dispatch(EndNow{});
  }
  {
    Store store;
    record(store, state);
    store.dispatch(KeepLeft{});
    EXPECT_EQ(store.view().forms.dialog, Dialog::none);
    store.dispatch(Quit{});
  }
  {
    Store store;
    record(store, state);
    ASSERT_EQ(store.view().forms.left.size(), 1u);
    store.dispatch(DropLeft{0});
    EXPECT_EQ(store.view().forms.dialog, Dialog::none);
    store.dispatch(Quit{});
  }
  EXPECT_THAT(state.names(), IsEmpty());
}

TEST(Recovery, LeavesTheWorkOfAnotherWindowAlone) {
  const TemporaryDirectory state;
  Store one;
  record(one, state);
  one.dispatch(edited(1));
  one.settle();
  one.jobs().finish();
  Store other;
  record(other, state);
  EXPECT_EQ(other.view().forms.dialog, Dialog::none);
  EXPECT_EQ(state.names().size(), 3u);
}

TEST(Saving, AsksBeforeItReplacesWhatSomebodyElseHasWritten) {
  const TemporaryDirectory folder;
  const auto path = folder / "a.json";
  Store store;
  store.dispatch(SaveFileAs{path});
  support::finish_reading(store);
  store.dispatch(edited(1));
  put_bytes(path, "somebody else's");
  store.dispatch(SaveFile{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::question);
  EXPECT_THAT(store.view().forms.question, HasSubstr("has been changed by somebody else"));
  store.dispatch(CancelQuestion{});
  support::finish_reading(store);
  EXPECT_EQ(bytes_of(path), "somebody else's");
  store.dispatch(SaveFile{});
  store.dispatch(GoOn{});
  support::finish_reading(store);
  EXPECT_THAT(bytes_of(path), StartsWith("{\n  \"attnscope\": 1"));
  store.dispatch(edited(2));
  store.dispatch(SaveFile{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);  // what it has written itself is its own
}

TEST(Opening, AsksBeforeFilesElsewhereAreRead) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "in");
  put_bytes(folder / "x.csv", "1,2\n3,4\n");
  put_bytes(folder / "in/s.json", R"({"attnscope": 1, "embeddings": {"file": "../x.csv"}})");
  Store store;
  store.dispatch(OpenFile{folder / "in/s.json"});
  support::finish_reading(store);
  ASSERT_EQ(store.view().forms.dialog, Dialog::question);
  EXPECT_THAT(store.view().forms.question, HasSubstr("\"../x.csv\" does not lie beside the session"));
  EXPECT_NE(store.document().title, "s.json");
  store.dispatch(GoOn{});
  support::finish_reading(store);
  EXPECT_EQ(store.document().title, "s.json");
}

}  // namespace
}  // namespace app
