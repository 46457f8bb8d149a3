#include "core/files/file.hpp"

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

namespace fs = std::filesystem;

struct Beside : testing::Test {
  support::TemporaryDirectory directory;
  const fs::path home = directory / "home";

  Beside() {
    fs::create_directories(home / "model");
    fs::create_directories(directory / "elsewhere");
    support::put_bytes(home / "model/a.npy", "a");
    support::put_bytes(directory / "elsewhere/b.npy", "b");
  }
};

TEST_F(Beside, IsWhatLiesBelowTheFolderWhetherItExistsOrNot) {
  for (const char* path : {"model", "model/a.npy", "missing.npy", "model/./a.npy"})
    EXPECT_TRUE(lies_beside(path, home)) << path;
}

TEST(BesideTheCurrentFolder, IsWhatDoesNotExistToo) {
  EXPECT_TRUE(lies_beside("there is no such file", ""));
  EXPECT_EQ(leading_words("there is no such file", ""), "");
}

TEST_F(Beside, IsNothingThatAPathOrALinkLeadsOutTo) {
  fs::create_symlink(directory / "elsewhere", home / "linked");
  fs::create_symlink("../elsewhere/b.npy", home / "b.npy");
  for (const fs::path& path :
       {fs::path("../elsewhere/b.npy"), fs::path("model/../model/a.npy"), home / "model", fs::path("linked"),
        fs::path("linked/b.npy"), fs::path("b.npy")})
    EXPECT_FALSE(lies_beside(path, home)) << path;
}

TEST_F(Beside, IsNoFolderOfFilesThatLieElsewhere) {
  fs::create_symlink("a.npy", home / "model/again.npy");
  EXPECT_TRUE(lies_beside("model", home)) << "a link to what lies beside it";
  fs::create_symlink(directory / "elsewhere/b.npy", home / "model/b.npy");
  EXPECT_FALSE(lies_beside("model", home));
}

TEST_F(Beside, IsNoFolderWithASequenceThatLiesElsewhere) {
  fs::create_directories(home / "data/sequence0");
  fs::create_directories(home / "other");
  EXPECT_TRUE(lies_beside("data", home));
  fs::create_symlink(directory / "elsewhere/b.npy", home / "data/sequence0/x.npy");
  EXPECT_FALSE(lies_beside("data", home));
  EXPECT_EQ(leading_words("data", home),
            ", in which \"sequence0/x.npy\" leads to \"" + (directory / "elsewhere/b.npy").string() + "\",");
  fs::remove_all(home / "data/sequence0");
  fs::create_directory_symlink("../other", home / "data/sequence0");
  EXPECT_TRUE(lies_beside("data", home)) << "a link to a folder beside it";
  fs::create_symlink("../../elsewhere/b.npy", home / "other/x.npy");
  EXPECT_FALSE(lies_beside("data", home));
}

TEST_F(Beside, SaysNothingOfWhereAPathLeadsThatSaysItItself) {
  EXPECT_EQ(leading_words("model/../model/a.npy", home), "");
  EXPECT_EQ(leading_words(home / "model", home), "");
}

TEST_F(Beside, CountsTheBlobsOfASnapshotOfACache) {
  const fs::path model = directory / "models--org--name", snapshot = model / "snapshots/1a2b";
  fs::create_directories(snapshot);
  fs::create_directories(model / "blobs");
  support::put_bytes(model / "blobs/3c4d", "a");
  fs::create_symlink("../../blobs/3c4d", snapshot / "model.safetensors");
  EXPECT_TRUE(lies_beside("model.safetensors", snapshot));
  EXPECT_TRUE(lies_beside(".", snapshot));
}

}  // namespace
}  // namespace core::formats
