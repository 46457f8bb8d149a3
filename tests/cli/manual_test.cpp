// The manual page and the completions are written from the table that --help is printed from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using testing::HasSubstr;

/// Every word of a text that begins with two hyphens.
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

/// The manual page without what keeps its hyphens from being broken.
std::string plain_man() {
  std::string man = manual("man");
  for (std::size_t at = 0; (at = man.find("\\-", at)) != man.npos;) man.erase(at, 1);
  return man;
}

TEST(Manual, HasEveryCommandAndOptionThatHelpHas) {
  const std::string man = plain_man();
  const std::string bash = manual("bash"), zsh = manual("zsh"), fish = manual("fish");
  for (const char* command : {"export", "session", "check", "program", "figure", "draw"}) {
    for (const std::string& text : {man, bash, zsh, fish}) EXPECT_THAT(text, HasSubstr(command));
    const std::string help = run({command, "--help"}).out;
    ASSERT_GT(options_in(help).size(), 1u);
    for (const std::string& option : options_in(help)) {
      for (const std::string& text : {man, bash, zsh}) EXPECT_THAT(text, HasSubstr(option)) << command;
      EXPECT_THAT(fish, HasSubstr(" -l " + option.substr(2))) << command;
    }
  }
  EXPECT_THAT(man, HasSubstr(ATTNSCOPE_VERSION));
}

TEST(Manual, HasTheExampleThatTheHelpOfACommandEndsWith) {
  const std::string man = plain_man();
  for (const char* command : {"export", "check", "draw", "generate"}) {
    const std::string help = run({command, "--help"}).out;
    const std::size_t at = help.find("Example: attnscope " + std::string(command));
    ASSERT_NE(at, help.npos) << command;
    EXPECT_THAT(man, HasSubstr("\n" + help.substr(at, help.find('\n', at) - at) + "\n"));
  }
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

TEST(Manual, OfAnUnknownKindIsAWrongCommand) {
  const Outcome outcome = run({"manual", "tcsh"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "attnscope: manual: expected man, bash, zsh or fish, got \"tcsh\"\n");
}

}  // namespace
}  // namespace cli
