#include "core/system/file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/token.hpp"
#include "core/system/process.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::system {
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
    EXPECT_EQ(error_of([&] { read_prefix(path, 10); }),
              path + ": expected a regular file, got a device or pipe");
  }
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

/// Limits the size of this process's files for its lifetime, as a full disk would.
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
              path + ": cannot be written: it would be larger than files may be here");
  }
  EXPECT_EQ(bytes_of(path), "old");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"file"}));
}

TEST(WriteAtomically, SaysThatLinksLeadInACircleAndLeavesThem) {
  const support::TemporaryDirectory dir;
  fs::create_symlink("b", dir / "a");
  fs::create_symlink("a", dir / "b");
  const std::string path = (dir / "a").string();
  EXPECT_EQ(error_of([&] { write_atomically(path, "x"); }),
            path + ": cannot be written: its links form a cycle");
  EXPECT_TRUE(fs::is_symlink(path));
}

/// Writes what a killed process leaves behind: a file without a lock.
fs::path leftover(const fs::path& folder, const std::string& digits) {
  const fs::path path = folder / (".attnscope-" + digits);
  support::put_bytes(path, "half");
  return path;
}

TEST(RemoveStale, TakesWhatNobodyWritesAnyMoreAndNothingElse) {
  const support::TemporaryDirectory dir;
  leftover(dir.path(), "0123456789abcdef");
  fs::create_directories(dir / ".attnscope-fedcba9876543210/sequence0");
  support::put_bytes(dir / ".attnscope-notes", "a person's own");
  support::put_bytes(dir / ".attnscope-0123456789abcdeg", "no such digit");
  Staging staging(dir.path());  // removes the leftovers, and is not removed by the next write
  staging.add("more", "1");
  write_atomically(dir / "file", "new");
  staging.commit();
  EXPECT_EQ(bytes_of(dir / "more"), "1");
}

/// Runs an action in a child process and returns the signal that ended it, or 0.
template <class Action>
int terminating_signal(int signal, Action action) {
  const pid_t child = ::fork();
  if (child == 0) {
    action([signal] { ::raise(signal); });
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(Staging, LeavesNothingWhenTheProgramIsAskedToEnd) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "old", "old");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(terminating_signal(signal,
                                 [&](auto raise) {
                                   try {
                                     Staging staging(dir.path());
                                     staging.add("old", "new");
                                     raise();
                                     staging.add("other", "");
                                     staging.commit();
                                   } catch (const Error&) {
                                   }
                                 }),
              signal);
  EXPECT_EQ(dir.names(), (std::set<std::string>{"old"}));
  EXPECT_EQ(bytes_of(dir / "old"), "old");
}

TEST(Staging, KeepsThePermissionsOfAnOldFile) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "old", "old");
  fs::permissions(dir / "old", fs::perms(0600));
  Staging staging(dir.path());
  staging.add("old", "new");
  staging.commit();
  EXPECT_EQ(bytes_of(dir / "old"), "new");
  EXPECT_EQ(permissions(dir / "old"), fs::perms(0600));
}

TEST(SignalBlocker, LeavesIgnoredSignalsAlone) {
  ::signal(SIGHUP, SIG_IGN);  // as nohup does
  {
    const SignalBlocker blocker;
    ::raise(SIGHUP);
    EXPECT_NO_THROW(blocker.throw_if_pending());
    EXPECT_EQ(blocker.take(), 0);
  }
  ::signal(SIGHUP, SIG_DFL);
}

TEST(SignalBlocker, TheOutermostAnswersWhateverThreadASignalComesTo) {
  const SignalBlocker outer;
  std::thread([] {
    const SignalBlocker inner;
    ::raise(SIGTERM);
    EXPECT_NO_THROW(inner.throw_if_pending());
    EXPECT_EQ(inner.take(), 0);
  }).join();
  EXPECT_THROW(outer.throw_if_pending(), Stopped);
  EXPECT_EQ(outer.take(), SIGTERM);
  EXPECT_EQ(outer.take(), 0);
}

TEST(Staging, SaysHowManyFilesAreThereWhenOneCannotBeMoved) {
  const support::TemporaryDirectory dir;
  std::string message;
  {
    Staging staging(dir.path());
    staging.add("a", "1");
    staging.add("b/c", "2");
    fs::create_directory(dir / "b");
    for (const auto& entry : fs::directory_iterator(dir.path()))
      if (entry.path().filename().string().starts_with(".attnscope-"))
        fs::rename(entry.path() / "b", entry.path() / "gone");
    message = error_of([&] { staging.commit(); });
  }
  EXPECT_EQ(message, (dir / "b/c").string() +
                         ": cannot be written: no such file or directory; 1 of 2 files are there, up to a");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"a", "b"}));
}

TEST(OwnDescriptor, IsNamedInManyWays) {
  const support::TemporaryDirectory dir;
  fs::create_symlink("/dev/stdout", dir / "out");
  fs::create_symlink("out", dir / "again");
  fs::create_symlink("loop", dir / "loop");
  support::put_bytes(dir / "file", "");
  for (const fs::path& path :
       {fs::path("/dev/stdout"), fs::path("/dev/./stdout"), fs::path("/dev/../dev/fd/1"),
        fs::path("/proc/self/fd/1"), dir / "out", dir / "again"})
    EXPECT_EQ(descriptor_from_path(path), 1) << path;
  for (const fs::path& path : {dir / "file", dir / "none", dir / "loop", fs::path("stdout"), fs::path(""),
                               fs::path("/dev/fd/"), fs::path("/dev/fd/x"), fs::path("/dev/fd/99999999999")})
    EXPECT_EQ(descriptor_from_path(path), std::nullopt) << path;
}

TEST(ReadPipeWhole, HasALimit) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "12345", 5), 5);
  ::close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(error_of([&] { buffer_pipe_to_file(path, 4); }),
            path + ": expected at most 4 bytes through a pipe, got more");
  ::close(ends[0]);
}

TEST(ReadPipeWhole, GivesAllOfAPipeToWhoeverOpensItAgain) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string content(50'000, 'x');
  std::thread writer([&] {
    EXPECT_EQ(::write(ends[1], content.data(), content.size()), static_cast<ssize_t>(content.size()));
    ::close(ends[1]);
  });
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  buffer_pipe_to_file(path);
  writer.join();
  EXPECT_EQ(read_prefix(path, 10), std::string(10, 'x'));
  EXPECT_EQ(read_file(path, 100'000), content);
  EXPECT_EQ(read_file(path, 100'000), content);
  ::close(ends[0]);
}

}  // namespace
}  // namespace core::system
