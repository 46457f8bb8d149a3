#include "app/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/attention/stages.hpp"

namespace app {
namespace {

namespace formats = core::formats;

/// What the reader of options fills in, as plain text.
struct Options {
  std::string file, export_file, preset, directory, format, session_preset, session_file;
  std::vector<std::string> stages;
  bool no_labels = false;
};

struct Commands {
  CLI::App* presets;
  CLI::App* exporting;
  CLI::App* session;
};

std::string names_of_formats() {
  std::string names;
  for (const formats::MatrixFormat& format : formats::matrix_formats())
    names += (names.empty() ? "" : " or ") + std::string(format.name);
  return names;
}

Commands describe(CLI::App& program, Options& options) {
  program.set_version_flag("--version", "attnscope " ATTNSCOPE_VERSION, "Print the version");
  program.set_help_flag("--help,-h", "Print this help");
  program.add_option("FILE", options.file, "Session to open in the window");
  program.require_subcommand(0, 1);
  Commands commands{};

  commands.presets = program.add_subcommand("presets", "List the presets: a name, a tab, what it shows");

  commands.exporting =
      program.add_subcommand("export", "Write the stages of a session or a preset, a file for each matrix");
  auto* file = commands.exporting->add_option("FILE", options.export_file, "Session file");
  auto* preset = commands.exporting->add_option("--preset", options.preset, "Preset instead of a file");
  file->excludes(preset);
  commands.exporting->add_option("--out", options.directory, "Directory; made when there is none")
      ->required();
  commands.exporting->add_option("--stages", options.stages, "Only these stages, separated by commas")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false);
  commands.exporting->add_option("--format", options.format, names_of_formats());
  commands.exporting->add_flag("--no-labels", options.no_labels,
                               "Numbers alone, without tokens and column names");

  commands.session = program.add_subcommand("session", "Write a preset as a session file");
  commands.session->add_option("--preset", options.session_preset, "Name of the preset")->required();
  commands.session->add_option("--out", options.session_file, "Session file to write")->required();
  for (CLI::App* command : {commands.presets, commands.exporting, commands.session})
    command->set_help_flag("--help,-h", "Print this help");
  return commands;
}

WrongUsage unknown_preset(const std::string& name) {
  return {"--preset: there is no preset \"" + name + "\"; attnscope presets lists them"};
}

Arguments export_command(const Options& options) {
  Export command{
      {}, options.directory, {options.stages, &formats::matrix_formats().front(), !options.no_labels}};
  if (!options.preset.empty()) {
    const core::editing::Preset* preset = core::editing::find_preset(options.preset);
    if (!preset) return unknown_preset(options.preset);
    command.source = preset;
  } else if (!options.export_file.empty()) {
    command.source = std::filesystem::path(options.export_file);
  } else {
    return WrongUsage{"export: expected a session FILE or --preset NAME, got neither"};
  }
  for (const std::string& name : options.stages)
    if (!core::attention::find_stage(name))
      return WrongUsage{"--stages: expected names among " + formats::known_stage_names() + "; got \"" + name +
                        "\""};
  if (!options.format.empty()) {
    command.options.format = formats::find_matrix_format(options.format);
    if (!command.options.format)
      return WrongUsage{"--format: expected " + names_of_formats() + ", got \"" + options.format + "\""};
  }
  return command;
}

Arguments session_command(const Options& options) {
  const core::editing::Preset* preset = core::editing::find_preset(options.session_preset);
  if (!preset) return unknown_preset(options.session_preset);
  return WriteSession{preset, options.session_file};
}

}  // namespace

Arguments parse_arguments(std::vector<std::string> arguments) {
  CLI::App program("Take attention apart: edit it, watch it, explain it.", "attnscope");
  Options options;
  const Commands commands = describe(program, options);
  try {
    std::reverse(arguments.begin(), arguments.end());  // the library takes them from the back
    program.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return ShowText{program.help()};
  } catch (const CLI::CallForVersion& version) {
    return ShowText{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return WrongUsage{std::string(error.what()) + " (attnscope --help tells more)"};
  }
  if (!options.file.empty() && !program.get_subcommands().empty())
    return WrongUsage{"expected a FILE or a command, got both"};
  if (commands.presets->parsed()) return ListPresets{};
  if (commands.exporting->parsed()) return export_command(options);
  if (commands.session->parsed()) return session_command(options);
  return OpenWindow{options.file.empty() ? std::nullopt : std::optional<std::filesystem::path>(options.file)};
}

}  // namespace app
