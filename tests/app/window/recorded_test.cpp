// What random users do in the window, recorded, leads a replay to the same model and view.
#include <gtest/gtest.h>

#include "app/session/recording.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_user.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

const std::string whole_example = FIXTURES "/../../assets/examples/tiny_gpt";

/// Whole models that a random user begins with, and the seed.
struct RandomUsers : testing::TestWithParam<std::pair<std::string, unsigned>> {};

TEST_P(RandomUsers, AreReplayedToTheSameModelAndFields) {
  const auto [file, seed] = GetParam();
  const support::TemporaryDirectory directory, recordings;
  const std::filesystem::path path = recordings / "recording";
  const ImVec2 size{1120, 640};
  gui::Program program(size);
  record(program.store, path);
  program.store.dispatch(BrowseTo{directory.path()});  // the only place that may be written to
  if (!file.empty()) program.store.open(file);
  support::RandomUser user(seed, size);
  std::size_t in_dialogs = 0;
  for (int i = 0; i < 700; ++i) {
    program.Hands::play({user.next(program.landmarks())});
    if (program.store.view().forms.browser.directory != directory.path())
      program.store.dispatch(BrowseTo{directory.path()});
    in_dialogs = program.store.view().forms.dialog == Dialog::none ? 0 : in_dialogs + 1;
    if (in_dialogs > 20) program.store.dispatch(CancelQuestion{});
  }
  program.run(3);
  support::settle(program.store);
  EXPECT_NE(program.store.model(), Store().model());

  Store again;
  replay(again, path);
  EXPECT_EQ(again.model(), program.store.model());
  EXPECT_EQ(support::text_of_fields(again), support::text_of_fields(program.store));
  EXPECT_EQ(again.document().title, program.store.document().title);
}

INSTANTIATE_TEST_SUITE_P(Recording, RandomUsers,
                         testing::Values(std::pair("", 1u), std::pair("", 2u), std::pair("", 3u),
                                         std::pair(whole_example, 4u), std::pair(whole_example, 5u)));

}  // namespace
}  // namespace app
