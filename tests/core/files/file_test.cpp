#include "core/files/file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/signals.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

bool ends_at_ftruncate = false;  // as if somebody killed it there

}  // namespace

extern "C" int ftruncate(int descriptor, off_t length) noexcept {
  if (ends_at_ftruncate) ::_exit(9);
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, length));
}

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
            path + ": cannot be written: its links lead in a circle");
  EXPECT_TRUE(fs::is_symlink(path));
}

TEST(WriteAtomically, LeavesAFileItsOtherNames) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "one", "old and longer");
  fs::create_hard_link(dir / "one", dir / "other");
  write_atomically(dir / "one", "new");
  EXPECT_EQ(bytes_of(dir / "other"), "new");
  EXPECT_EQ(fs::hard_link_count(dir / "one"), 2u);
  EXPECT_EQ(dir.names(), (std::set<std::string>{"one", "other"}));
}

TEST(WriteAtomically, LeavesAFileItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root writes files of others so";
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "file", "old");
  ASSERT_EQ(::chown((dir / "file").c_str(), 1234, 4321), 0);
  write_atomically(dir / "file", "new");
  struct stat about;
  ASSERT_EQ(::stat((dir / "file").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 1234u);
  EXPECT_EQ(about.st_gid, 4321u);
}

/// What a process that was killed leaves behind: nobody holds its lock.
fs::path leftover(const fs::path& folder, const std::string& digits) {
  const fs::path path = folder / (".attnscope-" + digits);
  support::put_bytes(path, "half");
  return path;
}

TEST(Sweep, TakesWhatNobodyWritesAnyMoreAndNothingElse) {
  const support::TemporaryDirectory dir;
  leftover(dir.path(), "0123456789abcdef");
  fs::create_directories(dir / ".attnscope-fedcba9876543210/sequence0");
  support::put_bytes(dir / ".attnscope-notes", "a person's own");
  support::put_bytes(dir / ".attnscope-0123456789abcdeg", "no such digit");
  const Unfinished written(dir.path(), Unfinished::Kind::file, "shown");
  write_atomically(dir / "file", "new");
  EXPECT_EQ(dir.names(), (std::set<std::string>{".attnscope-notes", ".attnscope-0123456789abcdeg", "file",
                                                written.path().filename().string()}));
  Staging staging(dir.path());
  staging.add("more", "1");
  staging.keep();
  EXPECT_TRUE(fs::exists(written.path()));
}

/// Does something in a process of its own, which a signal ends meanwhile; what ended it.
template <class Action>
int ended_by(int signal, Action action) {
  const pid_t child = ::fork();
  if (child == 0) {
    action([signal] { ::raise(signal); });
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(WriteAtomically, KeepsTheWholeBesideWhatItWritesOver) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "a.json", std::string(1000, 'o'));
  fs::create_hard_link(dir / "a.json", dir / "b.json");
  const pid_t child = ::fork();
  if (child == 0) {
    ends_at_ftruncate = true;
    write_atomically(dir / "a.json", "new");
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 9);
  EXPECT_EQ(bytes_of(dir / "b.json").size(), 1000u);  // torn: new at its beginning
  sweep(dir.path());
  std::string whole;
  for (const std::string& name : dir.names())
    if (name.starts_with("attnscope-whole-") && name.ends_with(".json")) whole = bytes_of(dir / name);
  EXPECT_EQ(whole, "new");
  write_atomically(dir / "a.json", "newer");
  EXPECT_EQ(bytes_of(dir / "b.json"), "newer");
  EXPECT_EQ(dir.names().size(), 3u);
}

TEST(Staging, LeavesNothingWhenTheProgramIsAskedToEnd) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "old", "old");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(ended_by(signal,
                       [&](auto raise) {
                         try {
                           Staging staging(dir.path());
                           staging.add("old", "new");
                           raise();
                           staging.add("other", "");
                           staging.keep();
                         } catch (const Error&) {
                         }
                       }),
              signal);
  EXPECT_EQ(dir.names(), (std::set<std::string>{"old"}));
  EXPECT_EQ(bytes_of(dir / "old"), "old");
}

TEST(Staging, ReplacesAFileForThoseWhoCouldReadIt) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "old", "old");
  fs::permissions(dir / "old", fs::perms::owner_read | fs::perms::owner_write);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((dir / "old").c_str(), 65534, 65534), 0);
  }
  Staging staging(dir.path());
  staging.add("old", "new");
  staging.keep();
  struct stat about;
  ASSERT_EQ(::stat((dir / "old").c_str(), &about), 0);
  EXPECT_EQ(bytes_of(dir / "old"), "new");
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(about.st_uid, ::geteuid() == 0 ? 65534u : ::geteuid());
}

TEST(SignalBlocker, LeaveIgnoredOnesAlone) {
  ::signal(SIGHUP, SIG_IGN);  // as nohup has it
  {
    const SignalBlocker held;
    ::raise(SIGHUP);
    EXPECT_NO_THROW(held.check());
    const sigset_t ending = ending_signals();
    EXPECT_EQ(sigismember(&ending, SIGHUP), 0);
    EXPECT_EQ(sigismember(&ending, SIGTERM), 1);
  }
  ::signal(SIGHUP, SIG_DFL);
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
    message = error_of([&] { staging.keep(); });
  }
  EXPECT_EQ(message, (dir / "b/c").string() + ": cannot be written: no such file or directory");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"b"}));  // none of them
}

TEST(OwnDescriptor, IsNamedInManyWays) {
  const support::TemporaryDirectory dir;
  fs::create_symlink("/dev/stdout", dir / "out");
  fs::create_symlink("out", dir / "again");
  fs::create_symlink("loop", dir / "loop");
  support::put_bytes(dir / "file", "");
  for (const fs::path& path :
       {fs::path("/dev/stdout"), fs::path("/dev/./stdout"), fs::path("/dev/../dev/fd/1"),
        fs::path("/proc/self/fd/1"), fs::path("/proc/thread-self/fd/1"),
        fs::path("/proc/" + std::to_string(::getpid()) + "/fd/1"), dir / "out", dir / "again"})
    EXPECT_EQ(own_descriptor(path), 1) << path;
  for (const fs::path& path : {dir / "file", dir / "none", dir / "loop", fs::path("stdout"), fs::path("")})
    EXPECT_EQ(own_descriptor(path), std::nullopt) << path;
}

TEST(ReadPipeWhole, HasALimit) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(write_all(ends[1], "12345"), 0);
  ::close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(error_of([&] { read_pipe_whole(path, 4); }),
            path + ": expected at most 4 bytes through a pipe, got more");
  ::close(ends[0]);
}

TEST(ReadPipeWhole, GivesAllOfAPipeToWhoeverOpensItAgain) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string content(50'000, 'x');
  std::thread writer([&] {
    EXPECT_EQ(write_all(ends[1], content), 0);
    ::close(ends[1]);
  });
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  read_pipe_whole(path);
  writer.join();
  EXPECT_EQ(read_begin(path, 10), std::string(10, 'x'));
  EXPECT_EQ(read_file(path, 100'000), content);
  EXPECT_EQ(read_file(path, 100'000), content);
  ::close(ends[0]);
}

TEST(OwnDescriptor, KnowsTheNamesOfThem) {
  EXPECT_EQ(own_descriptor("/dev/stdout"), 1);
  EXPECT_EQ(own_descriptor("/dev/fd/63"), 63);
  EXPECT_EQ(own_descriptor("/proc/self/fd/0"), 0);
  for (const char* path : {"/dev/fd/", "/dev/fd/x", "/dev/fd/-1", "/dev/fd/99999999999", "stdin", "/tmp/1"})
    EXPECT_EQ(own_descriptor(path), std::nullopt) << path;
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
