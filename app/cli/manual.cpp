#include "app/cli/manual.hpp"

#include "core/base/text.hpp"
#include "core/base/utf8.hpp"

namespace app {
namespace {

/// Text as troff shows it: no request at the start of a line, no escape, hyphens that can be copied.
std::string troff(const std::string& text) {
  std::string line;
  for (const char32_t c : core::text::repaired_characters(text)) {
    if (c == U'\\')
      line += "\\e";
    else if (c == U'-')
      line += "\\-";
    else if (c == U'\'')
      line += "\\(aq";
    else if (c < 0x80)
      line += static_cast<char>(c);
    else
      line += "\\[u" + [c] {
        constexpr const char* digits = "0123456789ABCDEF";
        std::string code;
        for (int shift = c > 0xFFFF ? 20 : 12; shift >= 0; shift -= 4) code += digits[c >> shift & 15];
        return code;
      }() + "]";
  }
  return line.starts_with('.') ? "\\&" + line : line;
}

std::string tag_of(const Described::Option& option) {
  std::string tag = ".TP\n";
  if (option.names.empty()) return tag + ".I " + troff(option.type) + "\n";
  tag += ".B " + troff(core::text::joined(option.names, ", "));
  return tag + (option.type.empty() ? "" : " \\fI" + troff(option.type) + "\\fP") + "\n";
}

std::string options_text(const Described& command) {
  std::string text;
  for (const auto& option : command.options)
    text += tag_of(option) + troff(option.about) + (option.is_required ? " (required)" : "") + ".\n";
  return text;
}

std::vector<std::string> long_names(const Described& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options)
    if (!option.names.empty()) names.push_back(option.names.back());
  return names;
}

/// In single quotes of a shell, of which fish takes the same.
std::string quoted(const std::string& text) {
  std::string in_quotes = "'";
  for (const char c : text) in_quotes += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return in_quotes + "'";
}

/// The same as zsh's descriptions take it, in which brackets and colons mean something.
std::string described(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') plain += '\\';
    plain += c;
  }
  return plain;
}

}  // namespace

std::string man_page(const Described& program, const std::string& version) {
  std::string text = ".TH ATTNSCOPE 1 \"\" \"attnscope " + troff(version) +
                     "\" \"User Commands\"\n.SH NAME\nattnscope \\- take attention apart: edit it, watch it, "
                     "explain it\n.SH SYNOPSIS\n.B attnscope\n.RI [ FILE ]\n";
  for (const Described& command : program.commands)
    text += ".br\n.B attnscope " + troff(command.name) + "\n.RI [ options ]\n";
  text += ".SH DESCRIPTION\n" + troff(program.about) +
          "\nWithout a command it opens a window. The commands need no display.\n.SH OPTIONS\n" +
          options_text(program) + ".SH COMMANDS\n";
  for (const Described& command : program.commands)
    text += ".SS attnscope " + troff(command.name) + "\n" + troff(command.about) + ".\n" +
            options_text(command) + (command.footer.empty() ? "" : ".PP\n" + troff(command.footer) + "\n");
  return text +
         ".SH EXIT STATUS\n0 when done, 1 when something failed or differs, 2 when the command was wrong.\n"
         ".SH FILES\n.TP\n.I $XDG_CONFIG_HOME/attnscope\nSettings and recent files; ~/.config without it.\n"
         ".TP\n.I $XDG_STATE_HOME/attnscope\nEdits that are not saved; ~/.local/state without it.\n";
}

std::string bash_completion(const Described& program) {
  const auto words = [](const Described& command) { return core::text::joined(long_names(command), " "); };
  std::string text =
      "# Completion of attnscope's command line in bash.\n"
      "_attnscope() {\n  local word=${COMP_WORDS[COMP_CWORD]} words=\n  case ${COMP_WORDS[1]} in\n";
  for (const Described& command : program.commands)
    text += "    " + command.name + ") words=" + quoted(words(command)) + " ;;\n";
  return text + "    *) words=" +
         quoted(core::text::joined(program.commands, " ", &Described::name) + " " + words(program)) +
         " ;;\n  esac\n"
         "  [ \"$COMP_CWORD\" -eq 1 ] && words=" +
         quoted(core::text::joined(program.commands, " ", &Described::name) + " " + words(program)) +
         "\n"
         "  if [[ ${COMP_WORDS[COMP_CWORD-1]} == --preset ]]; then\n"
         "    words=$(\"${COMP_WORDS[0]}\" presets 2>/dev/null | cut -f1)\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n    return\n  fi\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "  [[ $word == -* ]] || mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$word\")\n"
         "}\ncomplete -o filenames -F _attnscope attnscope\n";
}

std::string zsh_completion(const Described& program) {
  const auto arguments = [](const Described& command) {
    std::string text;
    for (const auto& option : command.options) {
      for (const std::string& name : option.names)
        text += " \\\n      " + quoted(name + "[" + described(option.about) + "]" +
                                       (option.type.empty() ? "" : ":" + described(option.type) + ":_files"));
    }
    return text + " \\\n      '*:file:_files'";
  };
  std::string text =
      "#compdef attnscope\n# Completion of attnscope's command line in zsh.\n_attnscope() {\n"
      "  local -a commands=(\n";
  for (const Described& command : program.commands)
    text += "    " + quoted(command.name + ":" + described(command.about)) + "\n";
  text += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    _arguments" +
          arguments(program) + "\n    return\n  fi\n  case $words[2] in\n";
  for (const Described& command : program.commands)
    text += "    " + command.name + ") _arguments" + arguments(command) + " ;;\n";
  return text + "    *) _files ;;\n  esac\n}\n_attnscope \"$@\"\n";
}

std::string fish_completion(const Described& program) {
  std::string text = "# Completion of attnscope's command line in fish.\n";
  const auto add = [&text](const Described& command, const std::string& condition) {
    for (const auto& option : command.options)
      for (const std::string& name : option.names)
        text += "complete -c attnscope -n " + quoted(condition) +
                (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1)) +
                (option.type.empty() ? "" : " -r") + " -d " + quoted(option.about) + "\n";
  };
  add(program, "__fish_use_subcommand");
  for (const Described& command : program.commands) {
    text += "complete -c attnscope -n __fish_use_subcommand -a " + command.name + " -d " +
            quoted(command.about) + "\n";
    add(command, "__fish_seen_subcommand_from " + command.name);
  }
  return text + "complete -c attnscope -l preset -f -a '(attnscope presets | cut -f1)'\n";
}

}  // namespace app
