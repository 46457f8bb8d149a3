#include "app/cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <type_traits>

#include "app/cli/argument_values.hpp"
#include "app/cli/combinations.hpp"
#include "app/cli/manual.hpp"
#include "core/base/error.hpp"
#include "core/files/tensor_formats.hpp"

namespace app {
namespace {

/// Puts what the text behind an option means where it belongs; what it throws is the answer to the person.
template <class Target>
using Read = void (*)(Text option, Text text, Target& target);

template <class Target>
void read_as_it_is(Text, Text text, Target& target) {
  target = text;
}

/// The options of one command, each described once; they are read in this order.
struct Options {
  CLI::App& app;
  std::string place = "";  ///< stands before the option in errors

  template <class Target>
  CLI::Option* one(const char* name, const char* type, const std::string& about, Target& target,
                   Read<std::type_identity_t<Target>> read = read_as_it_is) {
    const auto put = [&target, read, option = place + name](Text text) { read(option, text, target); };
    return app.add_option_function<std::string>(name, put, about)->type_name(type);
  }
  /// An option that may be given again.
  template <class Target>
  CLI::Option* many(const char* name, const char* type, const char* about, Target& target,
                    Read<std::type_identity_t<Target>> read) {
    const auto put = [&target, read, option = place + name](const std::vector<std::string>& texts) {
      for (Text text : texts) read(option, text, target);
    };
    return app.add_option_function<std::vector<std::string>>(name, put, about)
        ->type_name(type)
        ->allow_extra_args(name[0] != '-');  // "--map A B" is one map and something else
  }
  template <class Target, class Value>
  void flag(const char* name, const char* about, Target& target, Value meaning) {
    app.add_flag_callback(
        name, [&target, meaning] { target = meaning; }, about);
  }
};

void describe(Options, ListPresets&) {}
void describe(Options, ListMistakes&) {}

void describe_model(Options options, OfModel& command,
                    const char* layers = "Layer of a checkpoint or of given tensors") {
  auto& choices = command.choices;
  options.one("FILE", "",
              "Session, checkpoint (.safetensors, .pt, .index.json) or tensors (.npz, .npy, .csv, text)",
              command.source, read_file);
  options.one("--preset", "NAME", "Preset instead of a file", command.source, read_preset);
  options.many("--given", "STAGE=FILE[:TENSOR]",
               "A stage from a file of tensors, instead of computing it; as often as needed", choices.given,
               read_given);
  options.one("--layer", "N", std::string(layers) + ", from 0, or the beginning of its names", choices.layer);
  options.one("--text", "TEXT", "What a whole model reads, of which FILE is the folder or the .gguf file",
              command.text, read_text);
  options.one("--heads", "N", "Number of heads; needed where no config.json beside the file tells it",
              choices.n_heads, read_n_heads);
  options.one("--embeddings", "FILE", "Tensors of which one is the checkpoint's input", choices.embeddings);
  options.one("--tensor", "NAME", "Which tensor is the embeddings", choices.embeddings_tensor);
  options.one("--first-line", "WHAT",
              "What a table's first line is where that is 0, 1, 2 …: names, of the columns, or numbers",
              choices.first_line_is_names, read_first_line);
  options.one("--ignore", "NAMES",
              "Open a layer without what cannot be computed yet: all, or with commas " +
                  core::importing::names_to_ignore(),
              choices.ignored, read_ignored);
  options.flag("--allow-outside", "Open files that a session names and that do not lie beside it",
               choices.elsewhere, core::Elsewhere::allowed);
}

void describe_mistakes(Options options, OfModel& command) {
  options.many("--mistake", "NAME", "Make this mistake in the model first; may be given again",
               command.mistakes, read_mistake);
}

void describe(Options options, Export& command) {
  describe_model(options, command);
  options
      .one("--out", "PATH", "Directory, made when there is none; a file for npz or a single matrix", command,
           read_target)
      ->required();
  options.one("--stages", "A,B", "Only these stages", command.options.stages, read_stages);
  options.one("--format", "NAME", names_of_formats(), command.options, read_format);
  options.flag("--no-labels", "Numbers alone, without tokens and column names", command.options.labels,
               false);
  describe_mistakes(options, command);
}

void describe(Options options, WriteSession& command) {
  describe_model(options, command);
  options.one("--out", "FILE", "Session file to write", command.file)->required();
  describe_mistakes(options, command);
}

void describe(Options options, Check& command) {
  describe_model(
      options, command,
      "Layer of a checkpoint, of given tensors and of those to be checked (of a whole model all, unless given)");
  options
      .one("--against", "PATH", "The tensors: .npz, .safetensors, .pt, or a folder of these, .npy or .csv",
           command.against)
      ->required();
  options.one("--rtol", "R", "Relative tolerance, 1e-5 unless given", command.tolerance.relative,
              read_tolerance);
  options.one("--atol", "A", "Absolute tolerance, 1e-6 unless given", command.tolerance.absolute,
              read_tolerance);
  options.many("--map", "NAME=STAGE",
               "Which stage a tensor is; without a stage it is left out; may be given again", command.by_hand,
               read_stage_of_tensor);
  options.one("--layout", "NAME",
              "How queries, keys, values and contexts lie in memory, where the shape alone does not tell: " +
                  names_of_layouts() + " (batch, heads, tokens, features; td: heads side by side)",
              command.layout, read_layout);
  options.flag("--json", "The report as JSON", command.json, true);
}

void describe(Options options, WriteProgram& command) {
  describe_model(options, command);
  options.one("--out", "FILE", "Python file; without it, standard output", command.file);
}

void describe(Options options, DrawFigure& command) {
  describe_model(options, command);
  options.place = "figure: ";
  auto& figure = command.options;
  options.one("--stage", "NAME", "The stage", figure.stage, read_stage);
  options.one("--head", "N", "The head, 0 when it is not given", figure.head, read_index);
  options.one("--sequence", "N", "The sequence of a batch, 0 when it is not given", figure.sequence,
              read_sequence);
  options.flag("--all-heads", "All heads of the stage beside each other", figure.head, std::nullopt);
  options.flag("--strip", "All stages of the head instead of one", figure.stage, std::nullopt);
  options.one("--out", "FILE", "F.svg, F.pdf or F.png", command, read_figure_file)->required();
  options.one("--scale", "S", "How much larger a PNG is, 0.1 to 16", command.scale, read_scale);
  options.one("--colours", "NAME",
              "viridis, magma, cividis or greys, blue-orange or red-blue; or one of each, as magma,red-blue",
              command.colours, read_maps);
  options.one("--range", "RANGE", "Whose numbers set the colours: matrix, stage or all; or LOW:HIGH",
              command.colours, read_range);
  options.flag("--logarithmic", "Colours by the logarithm of the size", command.colours.logarithmic, true);
  options.flag("--dark", "Light on dark", figure.dark, true);
  options.flag("--no-numbers", "Colours alone, even where numbers fit", figure.numbers, false);
}

void describe(Options options, Draw& command) {
  options.one("--seed", "N", "As given to manual_seed", command.seed, read_seed)->required();
  options
      .many("OPS", "", "Such as rand(6,3), Linear(3,2,bias), Linear(3,2) which has no bias, Dropout(0.5,6,6)",
            command.ops, read_op)
      ->required();
}

void describe_whole_model(Options options, OfWholeModel& command) {
  options
      .one("MODEL", "", "A .gguf file, or a folder with config.json, tensors and a tokenizer", command.model)
      ->required();
  options.one("--text", "TEXT", "What the model reads", command.text)->required();
}

void describe_heads_off(Options options, OfWholeModel& command) {
  options.one("--off", "LAYER.HEAD,...", "Heads that are switched off, as 5.1,3.0", command.heads_off,
              read_heads_off);
}

void describe(Options options, ListTokens& command) {
  describe_whole_model(options, command);
  options.flag("--json", "As JSON", command.json, true);
}

void describe(Options options, Predict& command) {
  describe_whole_model(options, command);
  options.one("--top", "N", "How many tokens, the most probable first; 10 unless given", command.top,
              read_count);
  describe_heads_off(options, command);
  options.flag("--json", "As JSON", command.json, true);
}

void describe(Options options, DescribeHeads& command) {
  describe_whole_model(options, command);
  describe_heads_off(options, command);
}

void describe(Options options, Generate& command) {
  describe_whole_model(options, command);
  options.one("--tokens", "N", "How many tokens more, 20 unless given", command.n_tokens, read_count);
  options.one("--temperature", "T",
              "0, unless given, for the most probable token each time; else they are drawn",
              command.choice.temperature, read_temperature);
  options.one("--top", "K", "Draw among the K most probable ones", command.choice.top, read_count);
  options.one("--seed", "N", "Of what is drawn, 123 unless given", command.seed, read_seed);
  describe_heads_off(options, command);
}

void add_help(CLI::App& app) {
  app.set_help_flag();  // the library's own counts only when every other option is found right
  app.add_flag_callback(
         "-h,--help", [] { throw CLI::CallForHelp(); }, "Print this help")
      ->trigger_on_parse();  // whatever else is missing or wrong
}

/// Later releases of the library break lines to a column, and an example is to be copied as it stands.
void keep_examples_whole(auto& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); })
    formatter.enable_footer_formatting(false);
}

Said said_of(const CLI::App& app) {
  return {app.get_name(), [&app](const std::string& option) { return app.count(option) > 0; }};
}

/// Throws when something that is of the window stands before a command.
void expect_nothing_of_the_window(const CLI::App& program) {
  for (const CLI::Option* option : program.get_options())
    if (option->count() > 0)
      throw core::Error("expected " + std::string(option->get_positional() ? "a " : "") + option->get_name() +
                        " or a command, got both");
}

/// Makes `chosen` the command when that is what stands on the command line.
template <class Command>
void add(CLI::App& program, Arguments& chosen, const char* name, const char* about, const char* example) {
  CLI::App* app = program.add_subcommand(name, about);
  app->footer(std::string("Example: ") + example);
  const auto command = std::make_shared<Command>();
  add_help(*app);
  describe({*app}, *command);
  app->callback([&program, &chosen, app, command] {
    expect_nothing_of_the_window(program);
    const Said said = said_of(*app);
    if constexpr (std::is_base_of_v<OfModel, Command>) settle_model(said, *command);
    if constexpr (std::is_same_v<Command, DrawFigure>) settle_figure(said, *command);
    if constexpr (std::is_same_v<Command, Export>) settle_export(said, *command);
    if constexpr (std::is_same_v<Command, Generate>) settle_generate(said, *command);
    chosen = std::move(*command);
  });
}

/// What the library found wrong; that there is something nobody knows says more than that something is
/// missing.
std::string what_is_wrong(const CLI::App& program, const std::vector<std::string>& arguments,
                          const CLI::ParseError& error) {
  const std::vector<std::string> unknown = program.remaining(true);
  const auto commands = program.get_subcommands();
  const std::string help =
      (commands.empty() ? "" : commands.front()->get_name() + " ") + "--help tells more)";
  const auto first = std::ranges::find_if(arguments, [&](const std::string& argument) {
    return std::ranges::find(unknown, argument) != unknown.end();
  });
  if (first == arguments.end()) return std::string(error.what()) + " (attnscope " + help;
  if (commands.empty() && program.count("FILE") > 0 && !first->starts_with('-'))
    return "expected a command or one FILE, got \"" + arguments.front() + "\" and \"" + *first +
           "\" (attnscope " + help;
  return "there is no option or place for \"" + *first + "\" (attnscope " + help;
}

/// The command line as it was described; of its library nothing is known elsewhere.
Described described(CLI::App& app) {
  Described all{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    Described::Option one{{}, option->get_type_name(), option->get_description(), option->get_required()};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    if (one.names.empty()) one.type = option->get_name();
    all.options.push_back(std::move(one));
  }
  for (CLI::App* command :
       app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
    all.commands.push_back(described(*command));
  return all;
}

std::string manual_text(CLI::App& program, const std::string& kind) {
  const Described all = described(program);
  if (kind == "man") return man_page(all, ATTNSCOPE_VERSION);
  if (kind == "bash") return bash_completion(all);
  if (kind == "zsh") return zsh_completion(all);
  if (kind == "fish") return fish_completion(all);
  throw core::Error("manual: expected man, bash, zsh or fish, got \"" + kind + "\"");
}

/// What packages hold beside the program, and people hardly ask for.
void add_manual(CLI::App& program, Arguments& chosen) {
  CLI::App* app = program.add_subcommand("manual", "Print the manual page, or completions for a shell");
  app->group("");
  const auto print = [&program, &chosen](const std::string& kind) {
    expect_nothing_of_the_window(program);
    chosen = ShowText{manual_text(program, kind)};
  };
  app->add_option_function<std::string>("KIND", print, "man, bash, zsh or fish")->required();
}

}  // namespace

Arguments parse_arguments(std::vector<std::string> arguments) {
  CLI::App program("Take attention apart: edit it, watch it, explain it.", "attnscope");
  OpenWindow window;
  Source preset;
  Arguments chosen;
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  keep_examples_whole(*program.get_formatter());
  program.require_subcommand(0, 1);
  add_help(program);
  program.set_version_flag("--version", "attnscope " ATTNSCOPE_VERSION, "Print the version");
  const std::string openable = "Session, checkpoint or tensors to open in the window (.json " +
                               core::formats::tensor_endings() + ", or a folder)";
  const std::string with_whole =
      openable + "; a folder with its tokenizer, or a .gguf file, as a whole model";
  Options{program}.one("FILE", "", with_whole.c_str(), window.file);
  Options{program}.one("--preset", "NAME", "Preset to begin with, instead of a FILE", preset, read_preset);
  Options{program}.one("--text", "TEXT", "What the whole model reads at first", window.text);
  Options{program}.one("--layer", "L", "Its layer that is looked at at first, from 0", window.layer,
                       read_index);
  add<ListPresets>(program, chosen, "presets", "List the presets: a name, a tab, what it shows",
                   "attnscope presets | cut -f1");
  add<ListMistakes>(program, chosen, "mistakes",
                    "List the mistakes that can be made and found: a name, a tab, what it is",
                    "attnscope mistakes | cut -f1");
  add<Export>(program, chosen, "export", "Write every stage of a session or a preset, a file for each matrix",
              "attnscope export --preset 004-causal --stages weights --out causal");
  add<WriteSession>(program, chosen, "session",
                    "Write a preset, or a model made of any file, as a session file",
                    "attnscope session model.safetensors --layer 3 --heads 12 --out layer3.json");
  add<Check>(program, chosen, "check", "Compare tensors with a session or a preset, and say what went wrong",
             "attnscope check --preset 004-causal --against mine.npz");
  add<WriteProgram>(program, chosen, "program", "Write a session or a preset as a PyTorch program",
                    "attnscope program lesson.json --out lesson.py");
  add<DrawFigure>(program, chosen, "figure", "Draw a stage, or all of them, as a figure for a page",
                  "attnscope figure --preset 004-causal --stage weights --out weights.svg");
  add<Draw>(program, chosen, "draw", "Print what PyTorch draws, op after op, after one seed",
            "attnscope draw --seed 123 \"rand(6,3)\" \"Linear(3,2)\"");
  add<ListTokens>(program, chosen, "tokens", "Cut a text into the tokens of a model",
                  "attnscope tokens MODEL --text \"Once upon a time\"");
  add<Predict>(program, chosen, "predict", "Run a model on a text, and tell which tokens may come next",
               "attnscope predict MODEL --text \"Once upon a time\" --off 5.1");
  add<DescribeHeads>(program, chosen, "heads", "Tell what the heads of a model do on a text, as CSV",
                     "attnscope heads MODEL --text \"Once upon a time\"");
  add<Generate>(program, chosen, "generate", "Go on with a text as a model would",
                "attnscope generate MODEL --text \"Once upon a time\" --temperature 0.8 --top 40");
  add_manual(program, chosen);
  program.footer("attnscope COMMAND --help tells about one command.");
  if (std::ranges::find(arguments, "") != arguments.end())
    return WrongUsage{"expected no empty argument, got one"};
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    program.parse(std::move(reversed));  // the library takes them from the back
    if (program.get_subcommands().empty()) settle_window(said_of(program));
  } catch (const CLI::CallForHelp&) {
    return ShowText{program.help()};
  } catch (const CLI::CallForVersion& version) {
    return ShowText{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return WrongUsage{what_is_wrong(program, arguments, error)};
  } catch (const core::Error& error) {
    return WrongUsage{error.what()};
  }
  if (!program.get_subcommands().empty()) return chosen;
  if (const auto* named = std::get_if<const core::editing::Preset*>(&preset)) window.preset = *named;
  return window;
}

}  // namespace app
