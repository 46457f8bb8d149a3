#pragma once

#include <string>
#include <vector>

namespace app {

struct OptionHelp {
  std::vector<std::string> names;  // with their hyphens, short ones first; empty for an argument by position
  std::string argument;            // its name, if by position
  std::string type;                // of its value, as FILE; empty for a flag
  std::string about;
  bool required = false;
};

struct CommandHelp {
  std::string name, about;
  std::string example;  // may be empty
  std::vector<OptionHelp> options;
};

/// Command line as its library describes it.
struct Manual {
  CommandHelp program;
  std::vector<CommandHelp> commands;
};

/// Returns the manual page for "man", the reference of docs/command-line.md for "markdown", or the completion
/// for "bash", "zsh" or "fish". Throws core::Error for another kind.
std::string manual_text(const Manual& manual, const std::string& kind);

}  // namespace app
