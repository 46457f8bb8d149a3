#include "core/formats/files/file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "core/formats/files/staging.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

using support::bytes_of;
using support::error_of;
namespace fs = std::filesystem;

fs::perms permissions(const fs::path& path) {
  return fs::status(path).permissions();
}

TEST(ReadFile, NamesWhatCannotBeRead) {
  const support::TemporaryDirectory dir;
  const std::string missing = (dir / "no.json").string();
  EXPECT_EQ(error_of([&] { read_file(missing, 10); }), missing + ": no such file");
  EXPECT_EQ(error_of([&] { read_file(dir.path(), 10); }),
            dir.path().string() + ": expected a file, got a directory");
}

TEST(ReadFile, RefusesMoreThanTheLimit) {
  const support::TemporaryDirectory dir;
  const fs::path path = dir / "long";
  support::put_bytes(path, "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_EQ(error_of([&] { read_file(path, 4); }), path.string() + ": expected at most 4 bytes, got more");
}

TEST(ReadFile, TakesNeitherADeviceNorAPipe) {
  const support::TemporaryDirectory dir;
  const std::string pipe = (dir / "pipe.csv").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    EXPECT_EQ(error_of([&] { read_file(path, 1000); }),
              path + ": expected a regular file, got a device or pipe");
    EXPECT_EQ(error_of([&] { read_begin(path, 10); }),
              path + ": expected a regular file, got a device or pipe");
  }
}

TEST(Staging, MindsNeitherLeftoversNorOthersInTheSameDirectory) {
  const support::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / (".attnscope-" + std::to_string(::getpid())));
  Staging one(directory.path()), other(directory.path());
  one.add("one", "1");
  other.add("other", "2");
  one.keep();
  other.keep();
  EXPECT_EQ(read_file(directory / "one", 9), "1");
  EXPECT_EQ(read_file(directory / "other", 9), "2");
}

TEST(WriteAtomically, ReplacesAFileAndKeepsItsPermissions) {
  const support::TemporaryDirectory dir;
  const fs::path path = dir / "file";
  support::put_bytes(path, "old and longer");
  fs::permissions(path, fs::perms(0640));
  write_atomically(path, "new");
  EXPECT_EQ(bytes_of(path), "new");
  EXPECT_EQ(permissions(path), fs::perms(0640));
  EXPECT_EQ(dir.names(), (std::set<std::string>{"file"}));
}

TEST(WriteAtomically, GivesANewFileThePermissionsOfTheProcess) {
  const support::TemporaryDirectory dir;
  const mode_t old_mask = ::umask(027);
  write_atomically(dir / "file", "");
  ::umask(old_mask);
  EXPECT_EQ(permissions(dir / "file"), fs::perms(0640));
}

TEST(WriteAtomically, FollowsLinks) {
  const support::TemporaryDirectory dir;
  fs::create_directory(dir / "there");
  fs::create_symlink("there/real", dir / "hop");
  fs::create_symlink("hop", dir / "link");
  write_atomically(dir / "link", "first");  // the real file does not exist yet
  write_atomically(dir / "link", "second");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(bytes_of(dir / "there/real"), "second");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"hop", "link", "there", "there/real"}));
}

TEST(WriteAtomically, NamesTheFileThatCannotBeWritten) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "file", "");
  const std::string path = dir.path().string();
  EXPECT_EQ(error_of([&] { write_atomically(path, ""); }), path + ": cannot be written: it is a directory");
  EXPECT_EQ(error_of([&] { write_atomically(dir / "no/file", ""); }),
            path + "/no/file: cannot be written: no such file or directory");
  EXPECT_EQ(error_of([&] { write_atomically(dir / "file/x", ""); }),
            path + "/file/x: cannot be written: part of the path is not a directory");
  EXPECT_EQ(error_of([] { write_atomically("/dev/full", "x"); }),
            "/dev/full: cannot be written: no space left on the disk");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"file"}));
}

/// For its lifetime no file of this process can grow beyond a size, as on a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  void (*old_handler_)(int);
  rlimit old_limit_;
};

TEST(WriteAtomically, LeavesTheOldFileWhenTheDiskIsFull) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "file", "old");
  const std::string path = (dir / "file").string();
  {
    const SmallDisk disk(5);
    EXPECT_EQ(error_of([&] { write_atomically(path, "longer"); }),
              path + ": cannot be written: File too large");
  }
  EXPECT_EQ(bytes_of(path), "old");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"file"}));
}

TEST(WriteNewFile, DoesNotTouchAnExistingOne) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "file", "old");
  EXPECT_EQ(error_of([&] { write_new_file(dir / "file", "new", "shown"); }),
            "shown: cannot be written: File exists");
  EXPECT_EQ(bytes_of(dir / "file"), "old");
}

}  // namespace
}  // namespace core::formats
