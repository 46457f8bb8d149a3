// Exceptions become a line of the status bar, wherever they are thrown.
#include "app/session/jobs.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>

#include "app/session/opening.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

template <class Thrown>
std::string words_of(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (...) {
    return current_failure("the masks").words;
  }
}

TEST(FailureText, SaysWhatIsKnown) {
  EXPECT_EQ(words_of(core::Error("a.json: row 3 has 2 numbers")), "a.json: row 3 has 2 numbers");
  EXPECT_EQ(words_of(std::bad_alloc()), "There is not enough memory for the masks");
  EXPECT_EQ(words_of(std::out_of_range("no row 7")), "Something went wrong with the masks: no row 7");
  EXPECT_EQ(words_of(7), "Something went wrong with the masks");
  const auto loop = std::make_error_code(std::errc::too_many_symbolic_link_levels);
  EXPECT_EQ(words_of(fs::filesystem_error("status", "/a/b", loop)), "/a/b: " + loop.message());
}

TEST(Store, SaysWhatACommandThrewAndGoesOn) {
  Store store;
  store.dispatch(SetField{[](View&, const std::any&) { throw std::out_of_range("no row 7"); }, {}});
  EXPECT_TRUE(store.message().is_error);
  EXPECT_THAT(store.message().text, HasSubstr("no row 7"));
  store.dispatch(SetField{[](View&, const std::any&) { throw std::bad_alloc(); }, {}});
  EXPECT_THAT(store.message().text, HasSubstr("memory"));
  store.dispatch(SetField{[](View&, const std::any&) { throw 7; }, {}});
  EXPECT_TRUE(store.message().is_error);
  store.dispatch(ApplyEdit{core::editing::SetCausal{!store.model().mask.causal}});
  EXPECT_TRUE(store.document().steps.can_undo);
}

struct OddFolders : testing::Test {
  support::TemporaryDirectory directory;
  const fs::path loop = directory.path() / "loop", odd = directory.path() / "odd";
  const std::string not_utf8 = "caf\xe9.json";
  void SetUp() override {
    fs::create_directory_symlink("loop", loop);
    fs::create_directory(odd);
    fs::create_directory_symlink("self", odd / "self");
    std::ofstream(odd / not_utf8) << "{}";
  }
};

TEST_F(OddFolders, AreListedAsFarAsTheyCanBeRead) {
  const Browser listed = browse(odd, core::StopToken());
  EXPECT_EQ(listed.error, "");
  ASSERT_EQ(listed.entries.size(), 2u);
  EXPECT_EQ(listed.entries[0].name, not_utf8);
  EXPECT_EQ(listed.entries[0].size, 2u);
  EXPECT_EQ(listed.entries[1].name, "self");
  EXPECT_FALSE(listed.entries[1].is_directory);
  EXPECT_EQ(listed.entries[1].size, 0u);
}

TEST_F(OddFolders, ThatLeadNowhereAreNamedAndNotReplacedByAnother) {
  const Browser listed = browse(loop, core::StopToken());
  EXPECT_EQ(listed.directory, loop);
  EXPECT_THAT(listed.error, HasSubstr(loop.string()));
  EXPECT_TRUE(listed.entries.empty());
}

TEST_F(OddFolders, AreTakenByEveryDialogWithoutEndingTheProgram) {
  gui::Program program;
  for (const fs::path& path : {loop, odd, odd / not_utf8, odd / "self"}) {
    SCOPED_TRACE(path.string());
    const auto model = program.store.model();
    for (const Command& command :
         {Command(OpenPath{path}), Command(CheckTensors{path}), Command(LoadReference{path}),
          Command(OverrideStageFromFile{Stage::queries, path}), Command(FillFromFile{{}, path}),
          Command(PreviewFile{path}), Command(BrowseTo{path})}) {
      program.store.dispatch(command);
      program.run(1);
      EXPECT_EQ(program.store.model(), model);
    }
    EXPECT_TRUE(program.store.message().is_error);
  }
}

}  // namespace
}  // namespace app
