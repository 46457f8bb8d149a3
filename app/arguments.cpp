#include "app/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "core/attention/stages.hpp"
#include "core/error.hpp"
#include "core/formats/number.hpp"
#include "core/random/draw_op.hpp"

namespace app {
namespace {

namespace formats = core::formats;

/// What the reader of options fills in, as plain text.
struct Options {
  std::string file, export_file, preset, out, stages, format, seed, layer, heads, embeddings, tensor,
      stage, head, scale;
  std::vector<std::string> ops;
  bool no_labels = false, all_heads = false, strip = false, dark = false, no_numbers = false;
};

/// The format that holds all matrices in one file; the others hold one matrix a file.
constexpr const char* archive_format = "npz";

struct Commands {
  CLI::App* presets;
  CLI::App* exporting;
  CLI::App* session;
  CLI::App* program;
  CLI::App* figure;
  CLI::App* draw;
};

std::string names_of_formats() {
  std::string names;
  for (const formats::MatrixFormat& format : formats::matrix_formats())
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names + " or " + archive_format;
}

Commands describe(CLI::App& program, Options& options) {
  const std::string format_names = names_of_formats();
  const auto text_option = [](CLI::App* command, const char* name, std::string& value, const char* type,
                              const char* about) {
    return command->add_option(name, value, about)->type_name(type);
  };
  const auto model_options = [&](CLI::App* command) {
    text_option(command, "FILE", options.export_file, "", "Session, checkpoint (.safetensors) or tensors (.npz, .npy, .csv, text)");
    text_option(command, "--preset", options.preset, "NAME", "Preset instead of a file");
    text_option(command, "--layer", options.layer, "N", "Layer of a checkpoint, from 0, or the beginning of its names");
    text_option(command, "--heads", options.heads, "N", "Number of heads, where no config.json beside the file tells it");
    text_option(command, "--embeddings", options.embeddings, "FILE", "Tensors of which one is the checkpoint's input");
    text_option(command, "--tensor", options.tensor, "NAME", "Which tensor is the embeddings");
  };
  program.set_version_flag("--version", "attnscope " ATTNSCOPE_VERSION, "Print the version");
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  program.require_subcommand(0, 1);
  text_option(&program, "FILE", options.file, "", "Session, checkpoint or tensors to open in the window");
  Commands commands{};

  commands.presets = program.add_subcommand("presets", "List the presets: a name, a tab, what it shows");

  CLI::App* e =
      program.add_subcommand("export", "Write every stage of a session or a preset, a file for each matrix");
  model_options(e);
  text_option(e, "--out", options.out, "PATH", "Directory, made when there is none; a file for npz or a single matrix")
      ->required();
  text_option(e, "--stages", options.stages, "A,B", "Only these stages");
  text_option(e, "--format", options.format, "NAME", format_names.c_str());
  e->add_flag("--no-labels", options.no_labels, "Numbers alone, without tokens and column names");
  commands.exporting = e;

  commands.session = program.add_subcommand("session", "Write a preset, or a model made of any file, as a session file");
  model_options(commands.session);
  text_option(commands.session, "--out", options.out, "FILE", "Session file to write")->required();

  commands.program = program.add_subcommand("program", "Write a session or a preset as a PyTorch program");
  model_options(commands.program);
  text_option(commands.program, "--out", options.out, "FILE", "Python file; without it, standard output");

  CLI::App* f = program.add_subcommand("figure", "Draw a stage, or all of them, as a figure for a page");
  model_options(f);
  text_option(f, "--stage", options.stage, "NAME", "The stage");
  text_option(f, "--head", options.head, "N", "The head, 0 when it is not given");
  f->add_flag("--all-heads", options.all_heads, "All heads of the stage beside each other");
  f->add_flag("--strip", options.strip, "All stages of the head instead of one");
  text_option(f, "--out", options.out, "FILE", "F.svg or F.png")->required();
  text_option(f, "--scale", options.scale, "S", "How much larger a PNG is, 0.1 to 16");
  f->add_flag("--dark", options.dark, "Light on dark");
  f->add_flag("--no-numbers", options.no_numbers, "Colours alone, even where numbers fit");
  commands.figure = f;

  CLI::App* d = program.add_subcommand("draw", "Print what PyTorch draws, op after op, after one seed");
  text_option(d, "--seed", options.seed, "N", "As given to manual_seed")->required();
  d->add_option("OPS", options.ops, "Such as rand(6,3), Linear(3,2,bias), Dropout(0.5,6,6)")
      ->type_name("")
      ->required();
  commands.draw = d;

  for (CLI::App* command :
       {&program, commands.presets, commands.exporting, commands.session, commands.program, commands.figure, commands.draw})
    command->set_help_flag("--help,-h", "Print this help");
  program.footer("attnscope COMMAND --help tells about one command.");  // last: commands inherit it
  return commands;
}

WrongUsage unknown_preset(const std::string& name) {
  return {"--preset: there is no preset \"" + name + "\"; attnscope presets lists them"};
}

/// "a,b" as a and b; a name may be empty.
std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == ',')
      names.emplace_back();
    else
      names.back() += c;
  }
  return names;
}

/// The model that a command is about, or how it was named wrongly.
std::variant<Source, WrongUsage> source_of(const std::string& command, const Options& options) {
  if (options.preset.empty() == options.export_file.empty())
    return WrongUsage{command + ": expected either a FILE or --preset NAME, got " +
                      (options.preset.empty() ? "neither" : "both")};
  if (options.preset.empty()) return Source(std::filesystem::path(options.export_file));
  const core::editing::Preset* preset = core::editing::find_preset(options.preset);
  if (!preset) return unknown_preset(options.preset);
  return Source(preset);
}

/// What is said about a file of tensors, or how it was said wrongly.
std::variant<core::importing::Choices, WrongUsage> choices_of(const Options& options) {
  core::importing::Choices choices;
  choices.layer = options.layer;
  choices.embeddings = options.embeddings;
  choices.embeddings_tensor = options.tensor;
  if (options.heads.empty()) return choices;
  std::size_t n_heads = 0;
  const char* end = options.heads.data() + options.heads.size();
  const auto [stop, error] = std::from_chars(options.heads.data(), end, n_heads);
  if (error != std::errc() || stop != end || n_heads == 0)
    return WrongUsage{"--heads: expected a whole number of at least 1, got \"" + options.heads + "\""};
  choices.n_heads = n_heads;
  return choices;
}

Arguments export_command(const Options& options) {
  const auto source = source_of("export", options);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(options);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  Export command{std::get<Source>(source), options.out, {}, std::get<core::importing::Choices>(choices)};
  command.options.labels = !options.no_labels;
  if (!options.stages.empty()) command.options.stages = split_at_commas(options.stages);
  for (const std::string& name : command.options.stages)
    if (!core::attention::find_stage(name))
      return WrongUsage{"--stages: expected names among " + formats::known_stage_names() + "; got \"" + name +
                        "\""};
  // Without --format the ending of the file's name says it.
  const std::string ending = command.out.extension().string();
  const std::string format = !options.format.empty() ? options.format : ending.empty() ? "" : ending.substr(1);
  command.options.archive = format == archive_format;
  if (const formats::MatrixFormat* found = formats::find_matrix_format(format))
    command.options.format = found;
  else if (!options.format.empty() && !command.options.archive)
    return WrongUsage{"--format: expected " + names_of_formats() + ", got \"" + options.format + "\""};
  return command;
}

Arguments program_command(const Options& options) {
  const auto source = source_of("program", options);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(options);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  return WriteProgram{std::get<Source>(source),
                      options.out.empty() ? std::nullopt : std::optional<std::filesystem::path>(options.out),
                      std::get<core::importing::Choices>(choices)};
}

/// Fills in the stage and the head; gives what is wrong with them, or "".
std::string choose_what_is_drawn(const Options& options, core::figures::FigureOptions& figure) {
  if (options.strip == !options.stage.empty()) return "expected either --stage NAME or --strip";
  if (options.all_heads && (options.strip || !options.head.empty()))
    return "--all-heads: expected with a --stage, and without --head and --strip";
  figure.stage.reset();
  if (!options.strip) {
    const core::attention::StageInfo* stage = core::attention::find_stage(options.stage);
    if (!stage) return "--stage: expected one of " + formats::known_stage_names() + "; got \"" + options.stage + "\"";
    figure.stage = stage->stage;
  }
  if (options.all_heads) figure.head.reset();
  if (options.head.empty()) return "";
  const char* end = options.head.data() + options.head.size();
  const auto [stop, error] = std::from_chars(options.head.data(), end, figure.head.emplace());
  return error == std::errc() && stop == end ? "" : "--head: expected a whole number, 0 for the first, got \"" + options.head + "\"";
}

Arguments figure_command(const Options& options) {
  const auto source = source_of("figure", options);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(options);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  DrawFigure command{std::get<Source>(source), {}, FigureFormat::svg, options.out, 1, std::get<core::importing::Choices>(choices)};
  if (const std::string wrong = choose_what_is_drawn(options, command.options); !wrong.empty())
    return WrongUsage{"figure: " + wrong};
  command.options.dark = options.dark, command.options.numbers = !options.no_numbers;
  const std::string ending = command.file.extension().string();
  if (ending != ".svg" && ending != ".png")
    return WrongUsage{"figure: --out: expected a name that ends in .svg or .png, got \"" + options.out + "\""};
  if (ending == ".png") command.format = FigureFormat::png;
  if (options.scale.empty()) return command;
  const auto scale = formats::parse_number(options.scale);
  if (!scale || !(*scale >= 0.1 && *scale <= 16))
    return WrongUsage{"figure: --scale: expected a number from 0.1 to 16, got \"" + options.scale + "\""};
  command.scale = *scale;
  return command;
}

Arguments session_command(const Options& options) {
  const auto source = source_of("session", options);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(options);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  return WriteSession{std::get<Source>(source), options.out, std::get<core::importing::Choices>(choices)};
}

Arguments draw_command(const Options& options) {
  Draw command{0, options.ops};
  const char* end = options.seed.data() + options.seed.size();
  const auto [stop, error] = std::from_chars(options.seed.data(), end, command.seed);
  if (error != std::errc() || stop != end)
    return WrongUsage{"--seed: expected a whole number from 0 to " + std::to_string(UINT64_MAX) + ", got \"" +
                      options.seed + "\""};
  try {
    for (const std::string& op : options.ops) core::random::parse_draw_op(op);
  } catch (const core::Error& e) {
    return WrongUsage{e.what()};
  }
  return command;
}

}  // namespace

Arguments parse_arguments(std::vector<std::string> arguments) {
  CLI::App program("Take attention apart: edit it, watch it, explain it.", "attnscope");
  Options options;
  const Commands commands = describe(program, options);
  if (std::ranges::find(arguments, "") != arguments.end())
    return WrongUsage{"expected no empty argument, got one"};
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
  if (commands.program->parsed()) return program_command(options);
  if (commands.figure->parsed()) return figure_command(options);
  if (commands.draw->parsed()) return draw_command(options);
  return OpenWindow{options.file.empty() ? std::nullopt : std::optional<std::filesystem::path>(options.file)};
}

}  // namespace app
