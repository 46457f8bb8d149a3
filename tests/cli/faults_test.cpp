// Every system call that writes fails, once or from then on: the program reports it in one line and leaves
// existing files unchanged.
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <optional>

#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

namespace fs = std::filesystem;
using support::bytes_of;
using support::put_bytes;
using support::TemporaryDirectory;
using testing::HasSubstr;
using testing::StartsWith;

using Files = std::map<std::string, std::string>;

struct Fault {
  const char* call;
  int error;
  const char* words;  ///< expected in the message
};

/// Environment variable for programs started while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

struct Faults : testing::Test {
  TemporaryDirectory dir, elsewhere;

  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers must be loaded first";
#endif
  }

  Files files() const {
    Files files;
    for (const std::string& name : dir.names())
      files[name] = fs::is_directory(dir / name) ? "" : bytes_of(dir / name);
    return files;
  }
  void put_back(const Files& old_files) const {
    for (const std::string& name : dir.names())
      if (!old_files.contains(name)) fs::remove_all(dir / name);
    for (const auto& [name, bytes] : old_files)
      if (fs::is_regular_file(dir / name)) put_bytes(dir / name, bytes);
  }

  /// Runs the program with one call failing; returns nullopt if it makes no such call.
  std::optional<Outcome> run_with(const Fault& fault, int number, const char* times,
                                  const std::vector<std::string>& words) const {
    const fs::path log = elsewhere / "failed";
    fs::remove(log);
    const Variable preload("LD_PRELOAD", FAULTS), log_name("ATTNSCOPE_FAULT_LOG", log.string()),
        which("ATTNSCOPE_FAULT", std::string(fault.call) + " " + std::to_string(number) + " " +
                                     std::to_string(fault.error) + " " + times);
    Outcome outcome = run(words);
    if (!fs::exists(log)) return std::nullopt;
    return outcome;
  }

  /// Makes each call fail, one after the other, and returns how many there are.
  int inject(const Fault& fault, const std::vector<std::string>& words, int most = 1000) {
    const Files old_files = files();
    int n_calls = 0;
    for (const char* times : {"once", "on"})
      for (int number = 0; number < most; ++number) {
        put_back(old_files);
        const auto outcome = run_with(fault, number, times, words);
        if (!outcome) break;
        ++n_calls;
        SCOPED_TRACE(testing::Message()
                     << fault.call << " " << number << " " << times << ": " << outcome->err);
        if (outcome->status == 0) continue;  // the call was retried or did not matter
        EXPECT_EQ(outcome->status, 1);
        EXPECT_THAT(outcome->err, StartsWith("attnscope: "));
        EXPECT_THAT(outcome->err, HasSubstr(fault.words));
        EXPECT_EQ(std::ranges::count(outcome->err, '\n'), 1);
        if (outcome->err.find(" files are there") == std::string::npos) {
          EXPECT_TRUE(files() == old_files) << testing::PrintToString(dir.names());
        }
      }
    put_back(old_files);
    return n_calls;
  }
};

constexpr Fault writing_faults[] = {{"create", ENOSPC, "no space left on the disk"},
                                    {"create", EROFS, "the file system is read-only"},
                                    {"write", ENOSPC, "no space left on the disk"},
                                    {"fsync", EIO, "Input/output error"},
                                    {"rename", ENOSPC, "no space left on the disk"}};

TEST_F(Faults, OfASaveLeaveTheOldSession) {
  put_bytes(dir / "a.json", "old");
  for (const Fault& fault : writing_faults)
    EXPECT_GE(inject(fault, {"session", "--preset", "004-causal", "--out", (dir / "a.json").string()}), 2)
        << fault.call;
}

TEST_F(Faults, OfAnExportLeaveNothing) {
  const std::vector<std::string> words{"export",
                                       "--preset",
                                       "004-causal",
                                       "--stages",
                                       "weights,output",
                                       "--out",
                                       (dir / "new/stages").string()};
  for (const Fault& fault : writing_faults) EXPECT_GE(inject(fault, words), 4) << fault.call;
  EXPECT_GE(inject({"mkdir", ENOSPC, "no space left on the disk"}, words), 4);
}

TEST_F(Faults, OfAnArchiveAndAPictureLeaveNothing) {
  for (const Fault& fault : writing_faults) {
    EXPECT_GE(inject(fault, {"export", "--preset", "004-causal", "--out", (dir / "a.npz").string()}), 2);
    EXPECT_GE(inject(fault, {"figure", "--preset", "004-causal", "--stage", "weights", "--out",
                             (dir / "a.png").string()}),
              2);
  }
}

}  // namespace
}  // namespace cli
