#include "app/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/figure_arguments.hpp"
#include "core/error.hpp"
#include "core/formats/number.hpp"
#include "core/random/draw_op.hpp"
#include "core/text/words.hpp"

namespace app {
namespace {

namespace formats = core::formats;

struct CheckOptions {
  std::string against, relative, absolute;
  std::vector<std::string> map;
  bool json = false;
};

/// What the reader of options fills in, as plain text.
struct Options {
  std::string file, export_file, preset, out, stages, format, seed, layer, heads, embeddings, tensor;
  std::vector<std::string> ops, mistakes, given;
  CheckOptions check;
  FigureWords figure;
  bool no_labels = false;
};

/// The format that holds all matrices in one file; the others hold one matrix a file.
constexpr const char* archive_format = "npz";

struct Commands {
  CLI::App* presets;
  CLI::App* mistakes;
  CLI::App* exporting;
  CLI::App* session;
  CLI::App* check;
  CLI::App* program;
  CLI::App* figure;
  CLI::App* draw;
};

std::string names_of_formats() {
  return core::text::joined(formats::matrix_formats(), ", ", &formats::MatrixFormat::name) + " or " +
         archive_format;
}

Commands describe(CLI::App& program, Options& options) {
  const std::string format_names = names_of_formats();
  const auto text_option = [](CLI::App* command, const char* name, std::string& value, const char* type,
                              const char* about) {
    return command->add_option(name, value, about)->type_name(type);
  };
  const auto model_options = [&](CLI::App* command) {
    text_option(command, "FILE", options.export_file, "",
                "Session, checkpoint (.safetensors) or tensors (.npz, .npy, .csv, text)");
    text_option(command, "--preset", options.preset, "NAME", "Preset instead of a file");
    command
        ->add_option("--given", options.given,
                     "A stage from a file of tensors, instead of computing it; as often as needed")
        ->type_name("STAGE=FILE[:TENSOR]")
        ->allow_extra_args(false);
    text_option(command, "--layer", options.layer, "N",
                "Layer of a checkpoint or of given tensors, from 0, or the beginning of its names");
    text_option(command, "--heads", options.heads, "N",
                "Number of heads, where no config.json beside the file tells it");
    text_option(command, "--embeddings", options.embeddings, "FILE",
                "Tensors of which one is the checkpoint's input");
    text_option(command, "--tensor", options.tensor, "NAME", "Which tensor is the embeddings");
  };
  program.set_version_flag("--version", "attnscope " ATTNSCOPE_VERSION, "Print the version");
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  program.require_subcommand(0, 1);
  text_option(&program, "FILE", options.file, "", "Session, checkpoint or tensors to open in the window");
  Commands commands{};

  commands.presets = program.add_subcommand("presets", "List the presets: a name, a tab, what it shows");

  commands.mistakes = program.add_subcommand(
      "mistakes", "List the mistakes that can be made and found: a name, a tab, what it is");
  const auto mistake_option = [&options](CLI::App* command) {
    command
        ->add_option("--mistake", options.mistakes,
                     "Make this mistake in the model first; may be given again")
        ->type_name("NAME")
        ->allow_extra_args(false);
  };

  CLI::App* e =
      program.add_subcommand("export", "Write every stage of a session or a preset, a file for each matrix");
  model_options(e);
  text_option(e, "--out", options.out, "PATH",
              "Directory, made when there is none; a file for npz or a single matrix")
      ->required();
  text_option(e, "--stages", options.stages, "A,B", "Only these stages");
  text_option(e, "--format", options.format, "NAME", format_names.c_str());
  e->add_flag("--no-labels", options.no_labels, "Numbers alone, without tokens and column names");
  mistake_option(e);
  commands.exporting = e;

  commands.session =
      program.add_subcommand("session", "Write a preset, or a model made of any file, as a session file");
  model_options(commands.session);
  text_option(commands.session, "--out", options.out, "FILE", "Session file to write")->required();
  mistake_option(commands.session);

  CLI::App* c =
      program.add_subcommand("check", "Compare tensors with a session or a preset, and say what went wrong");
  model_options(c);
  text_option(c, "--against", options.check.against, "PATH",
              "The tensors: a folder of .npy or .csv, .npz, .safetensors")
      ->required();
  text_option(c, "--rtol", options.check.relative, "R", "Relative tolerance, 1e-5 unless given");
  text_option(c, "--atol", options.check.absolute, "A", "Absolute tolerance, 1e-6 unless given");
  c->add_option("--map", options.check.map,
                "Which stage a tensor is; without a stage it is left out; may be given again")
      ->type_name("NAME=STAGE")
      ->allow_extra_args(false);
  c->add_flag("--json", options.check.json, "The report as JSON");
  commands.check = c;

  commands.program = program.add_subcommand("program", "Write a session or a preset as a PyTorch program");
  model_options(commands.program);
  text_option(commands.program, "--out", options.out, "FILE", "Python file; without it, standard output");

  CLI::App* f = program.add_subcommand("figure", "Draw a stage, or all of them, as a figure for a page");
  model_options(f);
  FigureWords& words = options.figure;
  text_option(f, "--stage", words.stage, "NAME", "The stage");
  text_option(f, "--head", words.head, "N", "The head, 0 when it is not given");
  text_option(f, "--sequence", words.sequence, "N", "The sequence of a batch, 0 when it is not given");
  f->add_flag("--all-heads", words.all_heads, "All heads of the stage beside each other");
  f->add_flag("--strip", words.strip, "All stages of the head instead of one");
  text_option(f, "--out", options.out, "FILE", "F.svg or F.png")->required();
  text_option(f, "--scale", words.scale, "S", "How much larger a PNG is, 0.1 to 16");
  text_option(f, "--colours", words.colours, "NAME",
              "viridis, magma, cividis or greys, blue-orange or red-blue; or one of each, as magma,red-blue");
  text_option(f, "--range", words.range, "RANGE",
              "Whose numbers set the colours: matrix, stage or all; or LOW:HIGH");
  f->add_flag("--logarithmic", words.logarithmic, "Colours by the logarithm of the size");
  f->add_flag("--dark", words.dark, "Light on dark");
  f->add_flag("--no-numbers", words.no_numbers, "Colours alone, even where numbers fit");
  commands.figure = f;

  CLI::App* d = program.add_subcommand("draw", "Print what PyTorch draws, op after op, after one seed");
  text_option(d, "--seed", options.seed, "N", "As given to manual_seed")->required();
  d->add_option("OPS", options.ops, "Such as rand(6,3), Linear(3,2,bias), Dropout(0.5,6,6)")
      ->type_name("")
      ->required();
  commands.draw = d;

  for (CLI::App* command :
       {&program, commands.presets, commands.mistakes, commands.exporting, commands.session, commands.program,
        commands.figure, commands.check, commands.draw})
    command->set_help_flag("--help,-h", "Print this help");
  program.footer("attnscope COMMAND --help tells about one command.");  // last: commands inherit it
  return commands;
}

WrongUsage unknown_preset(const std::string& name) {
  return {"--preset: there is no preset \"" + name + "\"; attnscope presets lists them"};
}

using Mistakes = std::vector<const core::mistakes::Mistake*>;

/// The mistakes of those names, or what is wrong with one of them.
std::variant<Mistakes, WrongUsage> named_mistakes(const std::vector<std::string>& names) {
  Mistakes found;
  for (const std::string& name : names) {
    found.push_back(core::mistakes::find_mistake(name));
    if (!found.back())
      return WrongUsage{"--mistake: there is no mistake \"" + name + "\"; attnscope mistakes lists them"};
  }
  return found;
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

/// "weights=FILE" with the layer, or why it is none.
std::variant<formats::GivenTensor, WrongUsage> given_tensor(const std::string& text,
                                                            std::optional<std::size_t> layer) {
  const std::size_t sign = text.find('=');
  const std::string stage = text.substr(0, sign);
  const core::attention::StageInfo* found = core::attention::find_stage(stage);
  const bool can = found && (found->stage == core::attention::Stage::embeddings ||
                             core::attention::can_be_given(found->stage));
  if (sign == text.npos || sign + 1 == text.size() || !can)
    return WrongUsage{
        "--given: expected STAGE=FILE with embeddings, queries, keys, values, scores, scaled_scores, masked_scores, "
        "weights or dropout_mask, got \"" +
        text + "\""};
  return formats::GivenTensor{stage, text.substr(sign + 1), layer};
}

/// A whole number that is the whole of a text, or nothing.
std::optional<std::size_t> whole_number(const std::string& text) {
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// The model that a command is about, or how it was named wrongly.
std::variant<Source, WrongUsage> source_of(const std::string& command, const Options& options) {
  const bool neither = options.preset.empty() && options.export_file.empty();
  if (neither && !options.given.empty()) return Source(std::filesystem::path());
  if (neither || (!options.preset.empty() && !options.export_file.empty()))
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
  const std::optional<std::size_t> layer = whole_number(options.layer);
  if (!options.given.empty() && !options.layer.empty() && !layer)
    return WrongUsage{"--layer: expected a whole number for given tensors, got \"" + options.layer + "\""};
  for (const std::string& text : options.given) {
    const auto tensor = given_tensor(text, layer);
    if (const auto* wrong = std::get_if<WrongUsage>(&tensor)) return *wrong;
    choices.given.push_back(std::get<formats::GivenTensor>(tensor));
  }
  if (options.heads.empty()) return choices;
  choices.n_heads = whole_number(options.heads);
  if (choices.n_heads.value_or(0) == 0)
    return WrongUsage{"--heads: expected a whole number of at least 1, got \"" + options.heads + "\""};
  return choices;
}

/// A number from 0, or what is wrong with it; without a text the number stays.
std::optional<WrongUsage> read_tolerance(const char* option, const std::string& text, double& number) {
  if (text.empty()) return std::nullopt;
  const auto read = formats::parse_number(text);
  if (!read || !(*read >= 0) || !std::isfinite(*read))
    return WrongUsage{std::string(option) + ": expected a number from 0, got \"" + text + "\""};
  number = *read;
  return std::nullopt;
}

Arguments check_command(const Options& all) {
  const CheckOptions& options = all.check;
  const auto source = source_of("check", all);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(all);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  Check command{std::get<Source>(source),
                options.against,
                {},
                {},
                options.json,
                std::get<core::importing::Choices>(choices)};
  if (const auto wrong = read_tolerance("--rtol", options.relative, command.tolerance.relative))
    return *wrong;
  if (const auto wrong = read_tolerance("--atol", options.absolute, command.tolerance.absolute))
    return *wrong;
  for (const std::string& pair : options.map) {
    const std::size_t equals = pair.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return WrongUsage{"--map: expected NAME=STAGE, got \"" + pair + "\""};
    const std::string stage = pair.substr(equals + 1);
    if (!stage.empty() && !core::attention::find_stage(stage))
      return WrongUsage{"--map: expected a stage among " + formats::known_stage_names() + "; got \"" + stage +
                        "\""};
    command.by_hand[pair.substr(0, equals)] = stage;
  }
  return command;
}

Arguments export_command(const Options& options) {
  const auto source = source_of("export", options);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(options);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  const auto mistakes = named_mistakes(options.mistakes);
  if (const auto* wrong = std::get_if<WrongUsage>(&mistakes)) return *wrong;
  Export command{std::get<Source>(source),
                 std::get<Mistakes>(mistakes),
                 options.out,
                 {},
                 std::get<core::importing::Choices>(choices)};
  command.options.labels = !options.no_labels;
  if (!options.stages.empty()) command.options.stages = split_at_commas(options.stages);
  for (const std::string& name : command.options.stages)
    if (!core::attention::find_stage(name))
      return WrongUsage{"--stages: expected names among " + formats::known_stage_names() + "; got \"" + name +
                        "\""};
  // Without --format the ending of the file's name says it.
  const std::string ending = command.out.extension().string();
  const std::string format = !options.format.empty() ? options.format
                             : ending.empty()        ? ""
                                                     : ending.substr(1);
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

Arguments figure_command(const Options& options) {
  const auto source = source_of("figure", options);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(options);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  FigureWords words = options.figure;
  words.out = options.out;
  return figure_arguments(std::get<Source>(source), std::get<core::importing::Choices>(choices), words);
}

Arguments session_command(const Options& options) {
  const auto source = source_of("session", options);
  if (const auto* wrong = std::get_if<WrongUsage>(&source)) return *wrong;
  const auto choices = choices_of(options);
  if (const auto* wrong = std::get_if<WrongUsage>(&choices)) return *wrong;
  const auto mistakes = named_mistakes(options.mistakes);
  if (const auto* wrong = std::get_if<WrongUsage>(&mistakes)) return *wrong;
  return WriteSession{std::get<Source>(source), std::get<Mistakes>(mistakes), options.out,
                      std::get<core::importing::Choices>(choices)};
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
  if (commands.mistakes->parsed()) return ListMistakes{};
  if (commands.exporting->parsed()) return export_command(options);
  if (commands.session->parsed()) return session_command(options);
  if (commands.check->parsed()) return check_command(options);
  if (commands.program->parsed()) return program_command(options);
  if (commands.figure->parsed()) return figure_command(options);
  if (commands.draw->parsed()) return draw_command(options);
  return OpenWindow{options.file.empty() ? std::nullopt : std::optional<std::filesystem::path>(options.file)};
}

}  // namespace app
