// The real program without a display: commands, pipes, links, untrusted names, manual and binary.
#include <gmock/gmock.h>
#include <link.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>

#include "core/base/version.hpp"
#include "core/files/little_endian.hpp"
#include "tests/cli/run_program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace cli {
namespace {

using Names = std::set<std::string>;
using support::put_bytes;
using support::TemporaryDirectory;

/// Expects exactly this line on standard error and nothing on standard output.
void expect_failure(const Outcome& outcome, int status, const std::string& line) {
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.err, "attnscope: " + line + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(Program, ListsPresetsWithoutADisplay) {
  const Outcome outcome = run({"presets"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(("\n" + outcome.out).find("\nmulti-head\t"), outcome.out.npos);
  EXPECT_EQ(run({"--version"}).out, std::string("attnscope ") + core::version() + "\n");
  const Outcome window = run({});
  EXPECT_EQ(window.status, 1);
  EXPECT_EQ(std::count(window.err.begin(), window.err.end(), '\n'), 1) << window.err;
}

TEST(Program, LeavesNothingWhereItCannotWrite) {
  const TemporaryDirectory dir;
  put_bytes(dir / "file", "");
  const std::string inside = (dir / "file/D").string(), missing = (dir / "no/s.json").string();
  expect_failure(run({"export", "--preset", "multi-head", "--out", inside}), 1,
                 inside + ": cannot be written: part of the path is not a directory");
  expect_failure(run({"session", "--preset", "multi-head", "--out", missing}), 1,
                 missing + ": cannot be written: no such file or directory");
  EXPECT_EQ(dir.names(), Names{"file"});
}

TEST(Program, NamesTheFileOnAFullDisk) {
  expect_failure(run({"session", "--preset", "multi-head", "--out", "/dev/full"}), 1,
                 "/dev/full: cannot be written: no space left on the disk");
  expect_failure(run({"presets"}, "/dev/full"), 1, "standard output: cannot be written");
}

TEST(Recordings, ThatCannotBeReplayedAreOneLineAndThoseThatAreWrittenAreAnnounced) {
  const TemporaryDirectory dir;
  const std::string old = (dir / "old").string(), file = (dir / "new").string();
  put_bytes(old, "attnscope 0.0.9 recording\nGoBack\n");
  expect_failure(run({"--replay", old}), 1,
                 old + ": line 1: expected \"attnscope " + core::version() +
                     " recording\", got \"attnscope 0.0.9 recording\"");
  expect_failure(run({"--replay", file}), 1, file + ": no such file");
  const Outcome window = run({"--record", file});  // which has no display
  EXPECT_EQ(window.err.substr(0, window.err.find('\n')),
            "attnscope: note: " + file + " will hold all that is typed, and the paths of files");
  EXPECT_NE(support::bytes_of(file).find("\nSetField Settings::dark "), std::string::npos);
}

using support::bytes_of;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Runs a shell command in a folder, with $A as the program, and returns its exit status.
int shell(const TemporaryDirectory& dir, const std::string& line) {
  const int status = std::system(("cd '" + dir.path().string() + "' && A='" PROGRAM "' && " + line).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Pipes, AreReadOnceAndWhole) {
  const TemporaryDirectory dir;
  std::string rows;
  for (int k = 0; k < 3000; ++k) rows += std::to_string(k) + " 0.5\n";  // more than is inspected first
  put_bytes(dir / "rows.txt", rows);
  ASSERT_EQ(shell(dir, "$A session /dev/stdin <rows.txt --out of_file.json 2>/dev/null"), 0);
  ASSERT_EQ(shell(dir, "cat rows.txt | $A session /dev/stdin --out of_pipe.json 2>/dev/null"), 0);
  EXPECT_EQ(bytes_of(dir / "of_pipe.json"), bytes_of(dir / "of_file.json"));
  EXPECT_THAT(bytes_of(dir / "of_pipe.json"), HasSubstr("2999"));
}

TEST(Output, ToWhatTheProgramHasOpenIsWrittenBehindWhatIsThere) {
  const TemporaryDirectory dir;
  ASSERT_EQ(shell(dir, "(echo before; $A program --preset 004-causal --out /dev/stdout; echo after) > out"),
            0);
  const std::string text = bytes_of(dir / "out");
  EXPECT_THAT(text, StartsWith("before\n# -*- coding"));
  EXPECT_THAT(text, HasSubstr("import torch\n"));
  EXPECT_THAT(text, EndsWith("\nafter\n"));
  ASSERT_EQ(
      shell(
          dir,
          "ln -s /dev/stdout link; (echo before; $A program --preset 004-causal --out link; echo after) > out"),
      0);
  EXPECT_EQ(bytes_of(dir / "out"), text) << "through a link too";
}

TEST(Pipes, ThatGiveNothingCanBeLeft) {
  const TemporaryDirectory dir;
  ASSERT_EQ(shell(dir, "mkfifo f; exec 3<>f; timeout -k 5 -s TERM 1 $A /dev/fd/3; echo $? >status"), 0);
  EXPECT_EQ(bytes_of(dir / "status"), "124\n");  // SIGTERM sufficed; SIGKILL gives 137
}

TEST(Output, OfAModelGivesATerminalNothingThatItObeys) {
  const TemporaryDirectory dir;
  put_bytes(dir / "model.sh", "$A generate '" FIXTURES
                              "/../../assets/examples/tiny_gpt' --text \"$(printf 'egg\\033[2J jam\\n')\" "
                              "--tokens 2");
  ASSERT_EQ(shell(dir, "export A && script -qec 'sh model.sh' /dev/null </dev/null >terminal"), 0);
  ASSERT_EQ(shell(dir, "export A && sh model.sh >pipe"), 0);
  EXPECT_THAT(bytes_of(dir / "terminal"), StartsWith("egg\\x1b[2J jam"));
  EXPECT_THAT(bytes_of(dir / "pipe"), StartsWith("egg\x1b[2J jam"));
}

TEST(Output, OfASingleMatrixGoesToWhatTheProgramHasOpen) {
  const TemporaryDirectory dir;
  ASSERT_EQ(
      shell(dir, "(echo before; $A export --preset 004-causal --stages weights --out /dev/stdout) > out"), 0);
  ASSERT_EQ(shell(dir, "$A export --preset 004-causal --stages weights --out w.csv"), 0);
  EXPECT_EQ(bytes_of(dir / "out"), "before\n" + bytes_of(dir / "w.csv"));
  EXPECT_EQ(shell(dir, "$A export --preset 004-causal --out /dev/stdout 2>err >none"), 1);
  EXPECT_THAT(bytes_of(dir / "err"), HasSubstr("/dev/stdout: expected a directory for "));
}

/// OpenBLAS starts its threads before the program can block signals in them.
TEST(Output, ThatIsInterruptedIsClearedAwayWhateverThreadTheSignalComesTo) {
  const TemporaryDirectory dir;
  for (int round = 0; round < 3; ++round) {
    const int status =
        shell(dir,
              "mkdir -p D && { OPENBLAS_NUM_THREADS=4 $A export --preset 001-attention --out D & p=$!; k=0;"
              " until [ -n \"$(ls -A D)\" ] || [ $k -ge 3000 ]; do sleep 0.01; k=$((k + 1)); done;"
              " kill -TERM $p; wait $p; s=$?; ls -A D > left; rm -r D; exit $s; }");
    EXPECT_EQ(status, 128 + 15) << "round " << round;
    EXPECT_EQ(bytes_of(dir / "left"), "") << "round " << round;
  }
}

TEST(Output, ThatMayNotGrowIsSaidAndLeavesNothing) {
  const TemporaryDirectory dir;
  EXPECT_EQ(shell(dir, "ulimit -f 1 && $A session --preset 004-causal --out s.json 2>err"), 1);
  EXPECT_EQ(bytes_of(dir / "err"),
            "attnscope: s.json: cannot be written: it would be larger than files may be here\n");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"err"}));
}

/// Returns how often the program opens and closes a file while it runs.
std::size_t count_readings(const std::filesystem::path& file, const std::vector<std::string>& arguments) {
  const int events = ::inotify_init1(IN_NONBLOCK);
  EXPECT_GE(::inotify_add_watch(events, file.c_str(), IN_OPEN | IN_CLOSE), 0) << file;
  EXPECT_EQ(run(arguments).status, 0);
  std::array<inotify_event, 256> found;
  const ssize_t n_bytes = ::read(events, found.data(), sizeof found);
  ::close(events);
  return n_bytes < 0 ? 0 : static_cast<std::size_t>(n_bytes) / sizeof(inotify_event) / 2;
}

TEST(Configuration, OfAModelIsReadOnce) {
  const TemporaryDirectory dir;
  const std::filesystem::path fixtures = FIXTURES, layer = fixtures / "checkpoints/families/llama3",
                              model = fixtures / "transformer/llama";
  const std::string out = (dir / "session.json").string();
  EXPECT_EQ(count_readings(layer / "config.json",
                           {"session", (layer / "model.safetensors").string(), "--out", out}),
            1u);
  EXPECT_EQ(count_readings(model / "config.json", {"predict", model.string(), "--text", "a"}), 1u);
  EXPECT_EQ(count_readings(model / "config.json", {"session", model.string(), "--text", "a", "--out", out}),
            1u);
}

TEST(NamesOfTensors, DoNothingToATerminalAndForgeNoLine) {
  const TemporaryDirectory dir;
  const std::string name = R"(weights\n\u001b[31mscores  agrees\u009b\u202e)";
  const std::string header = "{\"" + name + R"(":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}})";
  std::string bytes;
  core::formats::append_little_endian(bytes, std::uint64_t{header.size()});
  put_bytes(dir / "evil.safetensors", bytes + header + std::string(8, '\0'));
  const std::string shown = R"(weights\x0a\x1b[31mscores  agrees\x9b\u202e)";
  EXPECT_EQ(shell(dir, "$A check --preset 004-causal --against evil.safetensors --map '" + shown +
                           "=weights' > out 2>&1"),
            1);
  const std::string report = bytes_of(dir / "out");
  EXPECT_THAT(report, HasSubstr(shown));
  for (const char* raw : {"\x1b", "\n\x1b[31m", "\u009b", "\u202e"}) EXPECT_THAT(report, Not(HasSubstr(raw)));
}

/// Returns every word of a text that begins with two hyphens.
std::set<std::string> options_in(const std::string& text) {
  std::set<std::string> options;
  for (std::size_t at = text.find("--"); at != text.npos; at = text.find("--", at + 2)) {
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
    if (end - at > 2 && (at == 0 || text[at - 1] == ' ' || text[at - 1] == ','))
      options.insert(text.substr(at, end - at));
  }
  return options;
}

std::string manual(const char* kind) {
  const Outcome outcome = run({"manual", kind});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome.out;
}

TEST(Manual, HasEveryCommandAndOptionThatHelpHas) {
  std::string man = manual("man");
  for (std::size_t at = 0; (at = man.find("\\-", at)) != man.npos;) man.erase(at, 1);  // escaped hyphens
  const std::string bash = manual("bash"), zsh = manual("zsh"), fish = manual("fish"),
                    markdown = manual("markdown");
  for (const char* command : {"export", "session", "check", "program", "figure", "draw"}) {
    for (const std::string& text : {man, bash, zsh, fish, markdown}) EXPECT_THAT(text, HasSubstr(command));
    const std::string help = run({command, "--help"}).out;
    ASSERT_GT(options_in(help).size(), 1u);
    const std::size_t at = help.find("Example: attnscope " + std::string(command));
    ASSERT_NE(at, help.npos) << command;
    EXPECT_THAT(man, HasSubstr("\n" + help.substr(at, help.find('\n', at) - at) + "\n"));
    for (const std::string& option : options_in(help)) {
      for (const std::string& text : {man, bash, zsh, markdown})
        EXPECT_THAT(text, HasSubstr(option)) << command;
      EXPECT_THAT(fish, HasSubstr(" -l " + option.substr(2))) << command;
    }
  }
  EXPECT_THAT(man, HasSubstr(core::version()));
  EXPECT_EQ(run({"manual", "tcsh"}).status, 2);
}

TEST(Manual, IsReadByTheProgramsThatItIsFor) {
  const support::TemporaryDirectory dir;
  const std::string path = dir.path().string();
  support::put_bytes(dir / "man", manual("man"));
  support::put_bytes(dir / "bash", manual("bash"));
  if (std::system("command -v groff >/dev/null") == 0) {
    EXPECT_EQ(std::system(
                  ("groff -man -Tutf8 -ww " + path + "/man > " + path + "/page 2> " + path + "/err").c_str()),
              0);
    EXPECT_EQ(support::bytes_of(dir / "err"), "");
    EXPECT_THAT(support::bytes_of(dir / "page"), HasSubstr("attnscope - take attention apart"));
  }
  const std::string ask =
      "bash -c '. " + path +
      "/bash; COMP_WORDS=(attnscope export --sta); COMP_CWORD=2; _attnscope; echo ${COMPREPLY[@]}' > " +
      path + "/reply";
  ASSERT_EQ(std::system(ask.c_str()), 0);
  EXPECT_EQ(support::bytes_of(dir / "reply"), "--stages\n");
}

template <class Record>
Record record_at(const std::string& bytes, std::size_t at) {
  Record record;
  std::memcpy(&record, bytes.substr(at, sizeof record).data(), sizeof record);
  return record;
}

/// Calls look() with each program header. Source: System V ABI, Program Header and Dynamic Linking.
void each_part(const std::string& bytes, const auto& look) {
  const auto header = record_at<ElfW(Ehdr)>(bytes, 0);
  for (std::size_t k = 0; k < header.e_phnum; ++k)
    look(record_at<ElfW(Phdr)>(bytes, header.e_phoff + k * header.e_phentsize));
}

/// Returns the tags of the dynamic section, with their values.
std::multimap<long, std::uint64_t> dynamic_tags(const std::string& bytes) {
  std::multimap<long, std::uint64_t> tags;
  each_part(bytes, [&](const ElfW(Phdr) & part) {
    for (std::size_t at = 0; part.p_type == PT_DYNAMIC && at < part.p_filesz; at += sizeof(ElfW(Dyn))) {
      const auto entry = record_at<ElfW(Dyn)>(bytes, part.p_offset + at);
      tags.insert({static_cast<long>(entry.d_tag), entry.d_un.d_val});
    }
  });
  return tags;
}

TEST(Binary, NamesNoFolderToLoadLibrariesFrom) {
  for (const char* program : {PROGRAM, "/proc/self/exe"}) {
    const auto tags = dynamic_tags(support::bytes_of(program));
    ASSERT_TRUE(tags.contains(DT_NEEDED)) << program;
    EXPECT_FALSE(tags.contains(DT_RPATH)) << program;
    EXPECT_FALSE(tags.contains(DT_RUNPATH)) << program;
  }
}

TEST(Binary, IsHardened) {
  const std::string bytes = support::bytes_of(PROGRAM);
  EXPECT_EQ(record_at<ElfW(Ehdr)>(bytes, 0).e_type, ET_DYN) << "its place in memory is random";
  const auto tags = dynamic_tags(bytes);
  ASSERT_TRUE(tags.contains(DT_FLAGS) && tags.contains(DT_FLAGS_1));
  EXPECT_TRUE(tags.find(DT_FLAGS_1)->second & DF_1_PIE);
  EXPECT_TRUE(tags.find(DT_FLAGS_1)->second & DF_1_NOW);
  EXPECT_TRUE(tags.find(DT_FLAGS)->second & DF_BIND_NOW) << "every function is bound at the start";
  std::map<unsigned, unsigned> parts;
  each_part(bytes, [&](const ElfW(Phdr) & part) { parts[part.p_type] = part.p_flags; });
  EXPECT_TRUE(parts.contains(PT_GNU_RELRO)) << "and their addresses are read-only then";
  ASSERT_TRUE(parts.contains(PT_GNU_STACK));
  EXPECT_EQ(parts[PT_GNU_STACK] & PF_X, 0u) << "no data is run";
  EXPECT_NE(bytes.find("__glibcxx_assert_fail"), bytes.npos) << "indices of containers are checked";
  EXPECT_NE(bytes.find("Mat::operator(): index out of bounds"), bytes.npos) << "and those of matrices";
#ifdef NDEBUG
  EXPECT_NE(bytes.find("__stack_chk_fail"), bytes.npos);
  EXPECT_NE(bytes.find("_chk@GLIBC"), bytes.npos) << "lengths are checked that the compiler knows";
#endif
}

}  // namespace
}  // namespace cli
