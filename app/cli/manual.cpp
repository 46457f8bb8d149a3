#include "app/cli/manual.hpp"

#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/base/version.hpp"

namespace app {
namespace {

/// Escapes text for troff: no request at the start of a line, no escape, hyphens that can be copied.
std::string troff(const std::string& text) {
  std::string line;
  for (const char32_t c : core::text::decode_utf8_lossy(text)) {
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

std::string tag_of(const OptionHelp& option) {
  if (option.names.empty()) return ".TP\n.I " + troff(option.argument) + "\n";
  return ".TP\n.B " + troff(core::text::joined(option.names, ", ")) +
         (option.type.empty() ? "" : " \\fI" + troff(option.type) + "\\fP") + "\n";
}

std::string options_text(const CommandHelp& command) {
  std::string text;
  for (const OptionHelp& option : command.options)
    text += tag_of(option) + troff(option.about) + (option.required ? " (required)" : "") + ".\n";
  return text;
}

/// Returns the long names of the options, separated by spaces.
std::string long_option_names(const CommandHelp& command) {
  std::vector<std::string> words;
  for (const OptionHelp& option : command.options)
    for (const std::string& name : option.names)
      if (name.starts_with("--")) words.push_back(name);
  return core::text::joined(words, " ");
}

/// Returns text in single quotes for a shell; fish accepts the same.
std::string quoted(const std::string& text) {
  std::string in_quotes = "'";
  for (const char c : text) in_quotes += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return in_quotes + "'";
}

/// Escapes text for zsh's descriptions, in which brackets and colons are special.
std::string in_zsh(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') plain += '\\';
    plain += c;
  }
  return plain;
}

std::string man_page(const Manual& manual, const std::string& version) {
  std::string text = ".TH ATTNSCOPE 1 \"\" \"attnscope " + troff(version) +
                     "\" \"User Commands\"\n.SH NAME\nattnscope \\- take attention apart: edit it, watch it, "
                     "explain it\n.SH SYNOPSIS\n.B attnscope\n.RI [ FILE ]\n";
  for (const CommandHelp& command : manual.commands)
    text += ".br\n.B attnscope " + troff(command.name) + "\n.RI [ options ]\n";
  text += ".SH DESCRIPTION\n" + troff(manual.program.about) +
          "\nWithout a command it opens a window. The commands need no display.\n.SH OPTIONS\n" +
          options_text(manual.program) + ".SH COMMANDS\n";
  for (const CommandHelp& command : manual.commands)
    text += ".SS attnscope " + troff(command.name) + "\n" + troff(command.about) + ".\n" +
            options_text(command) +
            (command.example.empty() ? "" : ".PP\n" + troff("Example: " + command.example) + "\n");
  return text +
         ".SH EXIT STATUS\n0 when done, 1 when something failed or differs, 2 for a wrong command line.\n"
         ".SH FILES\n.TP\n.I $XDG_CONFIG_HOME/attnscope\nSettings and recent files; ~/.config without it.\n"
         ".TP\n.I $XDG_STATE_HOME/attnscope\nEdits that are not saved; ~/.local/state without it.\n";
}

/// Escapes text for a cell of a Markdown table.
std::string in_markdown(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (std::string_view("|<*_`[]\\").find(c) != std::string_view::npos) cell += '\\';
    cell += c;
  }
  return cell;
}

/// Returns a table with a row for each option.
std::string options_table(const CommandHelp& command, bool with_help) {
  std::string rows;
  for (const OptionHelp& option : command.options) {
    if (!with_help && !option.names.empty() && option.names.back() == "--help") continue;
    rows += "| `" + (option.names.empty() ? option.argument : core::text::joined(option.names, ", ")) +
            (option.type.empty() ? "" : " " + option.type) + "` | " + in_markdown(option.about) +
            (option.required ? " (required)" : "") + ". |\n";
  }
  return rows.empty() ? "" : "\n| option | meaning |\n|---|---|\n" + rows;
}

/// Returns the generated part of docs/command-line.md.
std::string markdown_reference(const Manual& manual) {
  std::string text = "### attnscope\n\nOpens the window.\n" + options_table(manual.program, true);
  for (const CommandHelp& command : manual.commands) {
    text += "\n### attnscope " + command.name + "\n\n" + in_markdown(command.about) + ".\n\n    " +
            command.example + "\n" + options_table(command, false);
  }
  return text;
}

std::string bash_completion(const Manual& manual) {
  const std::string commands =
      core::text::joined(manual.commands, " ", [](const CommandHelp& c) { return c.name; });
  const std::string all = quoted(commands + " " + long_option_names(manual.program));
  std::string text =
      "# Completion of attnscope's command line in bash.\n"
      "_attnscope() {\n  local word=${COMP_WORDS[COMP_CWORD]} words=\n  case ${COMP_WORDS[1]} in\n";
  for (const CommandHelp& command : manual.commands)
    text += "    " + command.name + ") words=" + quoted(long_option_names(command)) + " ;;\n";
  return text + "    *) words=" + all +
         " ;;\n  esac\n"
         "  [ \"$COMP_CWORD\" -eq 1 ] && words=" +
         all +
         "\n"
         "  if [[ ${COMP_WORDS[COMP_CWORD-1]} == --preset ]]; then\n"
         "    words=$(\"${COMP_WORDS[0]}\" presets 2>/dev/null | cut -f1)\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n    return\n  fi\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "  [[ $word == -* ]] || mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$word\")\n"
         "}\ncomplete -o filenames -F _attnscope attnscope\n";
}

std::string zsh_completion(const Manual& manual) {
  const auto arguments = [](const CommandHelp& command) {
    std::string text;
    for (const OptionHelp& option : command.options)
      for (const std::string& name : option.names) {
        text += " \\\n      " + quoted(name + "[" + in_zsh(option.about) + "]" +
                                       (option.type.empty() ? "" : ":" + in_zsh(option.type) + ":_files"));
      }
    return text + " \\\n      '*:file:_files'";
  };
  std::string text =
      "#compdef attnscope\n# Completion of attnscope's command line in zsh.\n_attnscope() {\n"
      "  local -a commands=(\n";
  for (const CommandHelp& command : manual.commands)
    text += "    " + quoted(command.name + ":" + in_zsh(command.about)) + "\n";
  text += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    _arguments" +
          arguments(manual.program) + "\n    return\n  fi\n  case $words[2] in\n";
  for (const CommandHelp& command : manual.commands)
    text += "    " + command.name + ") _arguments" + arguments(command) + " ;;\n";
  return text + "    *) _files ;;\n  esac\n}\n_attnscope \"$@\"\n";
}

std::string fish_completion(const Manual& manual) {
  std::string text = "# Completion of attnscope's command line in fish.\n";
  const auto add = [&text](const CommandHelp& command, const std::string& condition) {
    for (const OptionHelp& option : command.options)
      for (const std::string& name : option.names)
        text += "complete -c attnscope -n " + quoted(condition) +
                (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1)) +
                (option.type.empty() ? "" : " -r") + " -d " + quoted(option.about) + "\n";
  };
  add(manual.program, "__fish_use_subcommand");
  for (const CommandHelp& command : manual.commands) {
    text += "complete -c attnscope -n __fish_use_subcommand -a " + command.name + " -d " +
            quoted(command.about) + "\n";
    add(command, "__fish_seen_subcommand_from " + command.name);
  }
  return text + "complete -c attnscope -l preset -f -a '(attnscope presets | cut -f1)'\n";
}

}  // namespace

std::string manual_text(const Manual& manual, const std::string& kind) {
  if (kind == "man") return man_page(manual, core::version());
  if (kind == "markdown") return markdown_reference(manual);
  if (kind == "bash") return bash_completion(manual);
  if (kind == "zsh") return zsh_completion(manual);
  if (kind == "fish") return fish_completion(manual);
  throw core::Error("manual: expected man, markdown, bash, zsh or fish, got \"" + kind + "\"");
}

}  // namespace app
