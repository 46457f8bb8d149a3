// A window that keeps editing, saving and exporting is killed at random: its files are complete, and the next
// window recovers all but the last second. The environment variable ATTNSCOPE_KILLS is the number of kills.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <random>
#include <thread>

#include "app/session/store.hpp"
#include "core/files/session.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using namespace std::chrono_literals;
using core::editing::MatrixName;
using support::TemporaryDirectory;
using Clock = std::chrono::steady_clock;

constexpr int max_edits = 4096;

/// Memory shared by the window and the test.
struct Shared {
  std::atomic<int> value = 0;                      ///< of the newest edit
  std::atomic<std::int64_t> times[max_edits + 1];  ///< when each was made, in nanoseconds
};

/// Folders that the window writes to.
struct Places {
  TemporaryDirectory state, folder;
  std::filesystem::path session() const { return folder / "work.json"; }
  std::filesystem::path stages() const { return folder / "stages"; }
};

Command with_number(double value) {
  return ApplyEdit{core::editing::SetCell{{MatrixName::embeddings, 0}, 1, 2, value}};
}

double number_of(const core::attention::Model& model) {
  return (*model.sequences.front().embeddings)(1, 2);
}

/// Runs a window without a display, in its own process.
[[noreturn]] void edit_save_and_export(const Places& places, Shared& shared, unsigned seed) {
  std::mt19937 random(seed);
  Store store;
  store.apply_settings({{}, {}, places.state.path()});
  for (int value = 1; value <= max_edits; ++value) {
    store.dispatch(with_number(value));
    store.dispatch(EndGesture{});
    if (random() % 24 == 0) store.dispatch(SaveFileAs{places.session()});
    if (random() % 24 == 0)
      store.dispatch(ExportAs{ExportFormat::csv, ExportScope::everything, {}, places.stages()});
    store.update();
    shared.times[value] = Clock::now().time_since_epoch().count();
    shared.value = value;
    std::this_thread::sleep_for(4ms);
  }
  for (;;) std::this_thread::sleep_for(1s);
}

/// Returns the newest edit made more than a second before the kill; the second is scaled by the slowdown of
/// edits on a busy machine.
int newest_before(const Shared& shared, Clock::time_point killed) {
  constexpr double at_rest = 5e6;  // nanoseconds per edit on an idle machine
  const int n = shared.value;
  const double pace = n > 1 ? double(shared.times[n] - shared.times[1]) / (n - 1) : at_rest;
  const auto allowed = static_cast<std::int64_t>(1e9 * std::max(1.0, pace / at_rest));
  const std::int64_t before = killed.time_since_epoch().count() - allowed;
  int value = 0;
  while (value < n && shared.times[value + 1] < before) ++value;
  return value;
}

/// Returns the number that the next window has: from the journal, or from the file if nothing newer was left.
double recovered(const Places& places, const Shared& shared) {
  double number = 0;
  if (std::filesystem::exists(places.session()))
    number = number_of(core::formats::load_session(places.session()).model);
  Store store;
  store.apply_settings({{}, {}, places.state.path()});
  EXPECT_LE(store.view().forms.leftovers.size(), 1u);
  if (!store.view().forms.leftovers.empty()) {
    EXPECT_EQ(store.view().forms.dialog, Dialog::recovery);
    support::carry_out(store, RestoreLeftover{0});
    EXPECT_THAT(store.message().text, testing::StartsWith("Recovered: "));
    EXPECT_TRUE(store.document().modified);
    number = std::max(number, number_of(store.model()));
    store.dispatch(with_number(0.5));
    store.dispatch(Undo{});
    EXPECT_LE(number_of(store.model()), shared.value + 1);
  }
  // The next writer removes temporary files of the killed one.
  for (const Command& write :
       {Command(SaveFileAs{places.session()}),
        Command(ExportAs{ExportFormat::csv, ExportScope::everything, {}, places.stages()})}) {
    support::carry_out(store, write);
  }
  for (const std::string& name : places.folder.names())
    EXPECT_EQ(name.find(".attnscope-"), name.npos) << name;
  return number;
}

/// Expects each exported file to have all of its rows.
void expect_whole_exports(const Places& places) {
  if (!std::filesystem::exists(places.stages())) return;
  for (const auto& entry : std::filesystem::directory_iterator(places.stages())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(support::bytes_of(entry.path()), testing::EndsWith("\r\n")) << entry.path();
    const auto table = core::formats::open_tensors(entry.path());
    EXPECT_EQ(table.tensors().front().shape.front(), Store().model().n_tokens()) << entry.path();
  }
}

TEST(Killed, AtAnyInstantLosesAtMostASecondAndNoFile) {
  const char* wish = std::getenv("ATTNSCOPE_KILLS");
  const int n_kills = wish ? std::atoi(wish) : 8;
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::mt19937 random(7);
  int n_edits = 0, n_left = 0;
  for (int round = 0; round < n_kills && !testing::Test::HasFailure(); ++round) {
    const Places places;
    auto& shared = *new (memory) Shared;
    const pid_t child = ::fork();
    if (child == 0) edit_save_and_export(places, shared, static_cast<unsigned>(round));
    while (shared.value == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2'000'000));
    ::kill(child, SIGKILL);
    const auto killed = Clock::now();
    ::waitpid(child, nullptr, 0);
    SCOPED_TRACE(testing::Message() << "kill " << round << " after " << shared.value << " edits");
    for (const std::string& name : places.folder.names()) n_left += name.find(".attnscope-") != name.npos;
    expect_whole_exports(places);
    const double number = recovered(places, shared);
    EXPECT_GE(number, newest_before(shared, killed));
    EXPECT_LE(number, shared.value + 1);  // the last edit may have been made but not counted
    n_edits += shared.value;
  }
  std::cout << n_kills << " kills, " << n_edits << " edits, " << n_left
            << " unfinished files left and cleared\n";
  ::munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace app
