#pragma once

#include <string>
#include <vector>

namespace app {

/// The command line as --help knows it: what manual and completions are written from.
struct Described {
  struct Option {
    std::vector<std::string> names;  ///< "-h", "--help"; of what has no name, none
    std::string type;                ///< "NAME"; of a flag, or of what has no name, "" or its place: "FILE"
    std::string about;
    bool is_required = false;
  };
  std::string name, about;
  std::string footer;  ///< what --help ends with: an example of a command
  std::vector<Option> options;
  std::vector<Described> commands;
};

/// A page of the manual, section 1, in troff with man's macros.
std::string man_page(const Described& program, const std::string& version);

/// What completes commands, options and files in bash, zsh and fish.
std::string bash_completion(const Described& program);
std::string zsh_completion(const Described& program);
std::string fish_completion(const Described& program);

}  // namespace app
