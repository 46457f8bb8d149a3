// What the built program does with pipes, links, limits and names that strangers chose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/files/little_endian.hpp"
#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using support::bytes_of;
using support::put_bytes;
using support::TemporaryDirectory;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Runs a line of the shell in a folder, where $A is the program; its exit status.
int shell(const TemporaryDirectory& dir, const std::string& line) {
  const int status = std::system(("cd '" + dir.path().string() + "' && A='" PROGRAM "' && " + line).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Pipes, AreReadOnceAndWhole) {
  const TemporaryDirectory dir;
  std::string rows;
  for (int k = 0; k < 3000; ++k) rows += std::to_string(k) + " 0.5\n";  // longer than what is looked at first
  put_bytes(dir / "rows.txt", rows);
  ASSERT_EQ(shell(dir, "$A session rows.txt --out of_file.json 2>/dev/null"), 0);
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
}

TEST(Pipes, ThatGiveNothingCanBeLeft) {
  const TemporaryDirectory dir;
  ASSERT_EQ(shell(dir, "mkfifo f; exec 3<>f; timeout -k 5 -s TERM 1 $A /dev/fd/3; echo $? >status"), 0);
  EXPECT_EQ(bytes_of(dir / "status"), "124\n");  // and not 137, of SIGKILL
}

TEST(Output, ThroughALinkToWhatTheProgramHasOpenIsWrittenBehindWhatIsThere) {
  const TemporaryDirectory dir;
  ASSERT_EQ(shell(dir,
                  "ln -s /dev/stdout link; (echo before; $A session --preset 004-causal --out link;"
                  " echo after) >out"),
            0);
  EXPECT_THAT(bytes_of(dir / "out"), StartsWith("before\n{"));
  EXPECT_THAT(bytes_of(dir / "out"), EndsWith("\nafter\n"));
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

/// OpenBLAS has begun threads of its own before the program could hold signals back in them.
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

}  // namespace
}  // namespace cli
