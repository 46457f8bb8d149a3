#include "app/cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

#include "app/cli/command_rules.hpp"
#include "app/cli/manual.hpp"
#include "app/cli/option_texts.hpp"
#include "app/session/exporting.hpp"
#include "core/base/draw_op.hpp"
#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/version.hpp"
#include "core/base/words.hpp"
#include "core/files/families.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/training/task.hpp"

namespace app {
namespace {

namespace formats = core::formats;

std::string names_of_formats() {
  return core::text::joined(formats::matrix_formats(), ", ", &formats::MatrixFormat::name) + ", " +
         archive_format + " or " + page_format;
}

bool choose_format(StringRef name, Export& command) {
  command.is_page = name == page_format;
  command.options.archive = name == archive_format;
  const formats::MatrixFormat* found = formats::find_matrix_format(name);
  if (found) command.options.format = found;
  return found || command.options.archive || command.is_page;
}

/// Returns a validator for texts for which `accepts` is true.
template <class Accepts>
CLI::Validator make_validator(const std::string& expected, const char* name, Accepts accepts) {
  return {[expected, accepts](StringRef text) {
            return accepts(text) ? std::string() : "expected " + expected + ", got \"" + text + "\"";
          },
          "", name};
}

/// Returns a validator for whole numbers from `least` up; the library would wrap around or round others.
CLI::Validator whole_number(std::uint64_t least = 0) {
  return make_validator(
      "a whole number" + (least > 0 ? " of at least " + std::to_string(least) : std::string()),
      "whole number", [least](StringRef text) {
        const auto number = core::text::parse_unsigned(text);
        return number && *number >= least;
      });
}

CLI::Validator number_from(double least, double most, const char* expected) {
  return make_validator(expected, "number", [least, most](StringRef text) {
    const auto number = core::text::parse_number(text);
    return number && *number >= least && *number <= most;
  });
}

/// The options of one command, each written straight to its target; the library checks numbers, required
/// options and exclusions.
struct Options {
  CLI::App& app;

  template <class Target>
  CLI::Option* value(const char* name, const char* type, const std::string& about, Target& target) const {
    return app.add_option(name, target, about)->type_name(type);
  }
  template <class Target>
  CLI::Option* required(const char* name, const char* type, const std::string& about, Target& target) const {
    return value(name, type, about, target)->required();
  }
  /// Adds an option for a whole number of at least `least`.
  template <class Target>
  CLI::Option* count(const char* name, const char* type, const std::string& about, Target& target,
                     std::uint64_t least = 0) const {
    return value(name, type, about, target)->check(whole_number(least));
  }
  /// Adds an option whose text `read` parses; the user sees the error that it throws.
  template <class Read>
  CLI::Option* text(const char* name, const char* type, const std::string& about, Read read) const {
    return app
        .add_option_function<std::string>(
            name, [read, option = std::string(name)](StringRef text) { read(option, text); }, about)
        ->type_name(type);
  }
  /// Adds an option for one of some names; find(name) returns its meaning, which set() receives, or nothing.
  template <class Find, class Set>
  CLI::Option* choice(const char* name, const char* type, const std::string& about,
                      const std::string& expected, Find find, Set set) const {
    return text(name, type, about, [expected, find, set](StringRef option, StringRef text) {
      const auto found = find(text);
      if (!found) refuse(option, expected, text);
      set(*found);
    });
  }
  /// Adds an option that may be repeated, or whose texts are separated by commas.
  template <class Read>
  CLI::Option* texts(const char* name, const char* type, const std::string& about, Read read) const {
    const auto read_all = [read, option = std::string(name)](const std::vector<std::string>& all) {
      for (StringRef text : all) read(option, text);
    };
    return app.add_option_function<std::vector<std::string>>(name, read_all, about)
        ->type_name(type)
        ->allow_extra_args(name[0] != '-');  // "--map A B" is one map and another argument
  }
  template <class Target, class Value = bool>
  CLI::Option* flag(const char* name, const char* about, Target& target, Value meaning = true) const {
    return app.add_flag_callback(
        name, [&target, meaning] { target = meaning; }, about);
  }
};

constexpr const char* full_model = "A .gguf file, or a folder with config.json, tensors and a tokenizer";
constexpr const char* any_full_model =
    "A .gguf file, a folder with config.json, tensors and a tokenizer, or the address of an attached model";

/// Adds the option for heads of a whole model to ablate, by layer and head.
void add_ablation_option(Options options, std::set<std::pair<std::size_t, std::size_t>>& heads_off,
                         const char* about = "Heads to ablate, as 5.1,3.0") {
  options
      .texts("--off", "LAYER.HEAD,...", about,
             [&heads_off](StringRef option, StringRef head) { heads_off.insert(read_head(option, head)); })
      ->delimiter(',');
}

void add_token_option(Options options, std::string& token) {
  options.value("--token", "TOKEN", "What attnscope.attach() has printed; else $ATTNSCOPE_TOKEN", token);
}

void add_options(Options options, Attach& command) {
  options.required("ADDRESS", "", "HOST:PORT, or the path of a Unix socket", command.address);
  add_token_option(options, command.token);
  options.value("--text", "TEXT", "What the model reads at first", command.text);
  options.count("--layer", "L", "Layer that is selected at first, from 0", command.layer);
}

/// Adds options that change the setup of the task.
struct SetupOptions {
  Options options;
  Learn& command;

  void count(const char* name, const char* type, const std::string& about,
             std::size_t core::training::TrainingSetup::*member) const {
    change(name, type, about, "a whole number", core::text::parse_unsigned,
           [member](auto& setup, std::uint64_t number) { setup.*member = number; });
  }
  void number(const char* name, const char* type, const std::string& about,
              double core::training::TrainingSetup::*member) const {
    change(name, type, about, "a number", core::text::parse_number,
           [member](auto& setup, double number) { setup.*member = number; });
  }
  template <class Meaning, std::size_t n>
  void word(const char* name, const char* type, const std::string& about,
            const std::array<core::formats::Word<Meaning>, n>& words,
            Meaning core::training::TrainingSetup::*member) const {
    const auto find = [&words](std::string_view text) {
      return core::find_by(words, text, [](const auto& word) { return std::string_view(word.text); });
    };
    change(name, type, about, core::text::joined(words, ", ", &core::formats::Word<Meaning>::text, " or "),
           find, [member](auto& setup, const auto& word) { setup.*member = word.meaning; });
  }

 private:
  template <class Read, class Set>
  void change(const char* name, const char* type, const std::string& about, const std::string& expected,
              Read read, Set set) const {
    options.text(name, type, about, [&of = command, expected, read, set](StringRef option, StringRef text) {
      const auto meaning = read(text);
      if (!meaning) refuse("learn: " + option, expected, text);
      of.changes.push_back([set, meaning](core::training::TrainingSetup& setup) { set(setup, *meaning); });
    });
  }
};

void add_options(Options options, Learn& command) {
  using core::training::TrainingSetup;
  const std::string names = core::text::joined(core::training::tasks(), ", ", &core::training::Task::name);
  options.required(
      "TASK", "",
      names + ", a text file, whose characters are then predicted, or the session of a run to go on with",
      command.task);
  const SetupOptions setup{options, command};
  setup.count("--layers", "L",
              "Layers, 1 to 3; this and the other options are by default as the task needs them",
              &TrainingSetup::n_layers);
  setup.count("--heads", "H", "Heads of each layer, 1 to 4", &TrainingSetup::n_heads);
  setup.count("--width", "D", "Width of the residual stream, 16 to 64", &TrainingSetup::d_model);
  setup.word("--positions", "P", "Positions: none, learned, rotary or alibi", core::training::position_words,
             &TrainingSetup::positions);
  setup.count("--kv-heads", "G", "KV heads, a divisor of the heads; 0: one for each head",
              &TrainingSetup::n_kv_heads);
  setup.count("--mlp", "N", "Hidden units of the MLP in each layer, up to 256; 0: no MLP",
              &TrainingSetup::d_mlp);
  setup.word("--norm", "NORM", "Norms: none, layer or rms", core::training::norm_words, &TrainingSetup::norm);
  setup.word("--mask", "M", "Causal mask: on or off", core::training::mask_words, &TrainingSetup::causal);
  setup.number("--dropout", "P", "Dropout of attention weights while it learns, 0 to 0.9",
               &TrainingSetup::dropout);
  setup.word("--optimizer", "O", "Optimizer: adam, or sgd with momentum 0.9", core::training::optimizer_words,
             &TrainingSetup::optimizer);
  setup.number("--rate", "R", "Learning rate", &TrainingSetup::rate);
  setup.count("--batch", "B", "Sequences of a step, up to 256", &TrainingSetup::batch);
  options.text("--mistake", "NAME", "Train with this bug in the attention of every layer",
               [&command](StringRef, StringRef name) {
                 command.changes.push_back([name](TrainingSetup& of) { of.mistake = name; });
               });
  setup.count("--steps", "N", "Steps, up to 100,000", &TrainingSetup::n_steps);
  setup.count("--seed", "S", "Seed of the initial numbers, the sequences and dropout", &TrainingSetup::seed);
  options.value(
      "--out", "FOLDER",
      "New folder for the trained model, which transformers and attnscope open, its snapshots and its curves",
      command.out);
  options.value("--save", "FILE", "Session of the run, JSON, which the window and this command go on with",
                command.session);
  options.flag("--json", "Print the curves as JSON: lists of step, loss, accuracy and heads", command.json);
}

void add_options(Options, ListPresets&) {}
void add_options(Options, ListMistakes&) {}

CLI::Option* add_preset_option(Options options, const char* about, ModelSource& source) {
  return options.text("--preset", "NAME", about, [&source](StringRef option, StringRef name) {
    const auto* preset = core::editing::find_preset(name);
    if (!preset)
      throw core::Error(option + ": there is no preset \"" + name + "\"; attnscope presets lists them");
    source = preset;
  });
}

/// Adds the options of attention itself that a file may leave open.
void add_attention_options(Options options, core::importing::AttentionSettings& settings, const char* scale) {
  std::vector<CLI::Option*> all;
  all.push_back(
      options.flag("--causal", "Each query attends to keys up to its own position", settings.causal));
  all.push_back(options.flag("--no-causal", "Each query attends to every key", settings.causal, false)
                    ->excludes(all[0]));
  all.push_back(options.value(scale, "S", "What scores are multiplied by", settings.scale)
                    ->check(number_from(-1e9, 1e9, "a number")));
  all.push_back(options.text(
      "--rope", "BASE[,PAIRS][,COLUMNS]",
      "Rotary positions: their base, halves or neighbors, and how many columns of a head they rotate",
      [&settings](StringRef option, StringRef text) { settings.rotary = read_rope(option, text); }));
  all.push_back(options.count("--window", "N",
                              "Sliding window: number of keys that a query attends to, its own included",
                              settings.window, 1));
  all.push_back(options.count("--kv-heads", "N", "Number of KV heads", settings.n_kv_heads, 1));
  for (CLI::Option* option : all)
    for (const char* other : {"--preset", "--text"}) option->excludes(options.app.get_option(other));
}

std::string known_type(StringRef option, StringRef type) {
  if (!core::formats::checkpoints::family_of_type(type))
    refuse(option, "a model_type that is known, as llama or bert", type);
  return type;
}

void add_model_options(Options options, ModelOptions& command,
                       const char* layers = "Layer of a checkpoint or of given tensors",
                       const char* scale = "--scale") {
  auto& choices = command.choices;
  CLI::Option* file = options.text(
      "FILE", "", "Session, checkpoint (.safetensors, .pt, .index.json) or tensors (.npz, .npy, .csv, text)",
      [&command](StringRef, StringRef path) { command.source = std::filesystem::path(path); });
  CLI::Option* preset =
      add_preset_option(options, "Preset instead of a file", command.source)->excludes(file);
  options.texts(
      "--given", "STAGE=FILE[:TENSOR]",
      "A stage from a file of tensors, instead of computing it; as often as needed",
      [&choices](StringRef option, StringRef text) { choices.given.push_back(read_given(option, text)); });
  options.value("--layer", "N", std::string(layers) + ", from 0, or the beginning of its names",
                choices.layer);
  CLI::Option* text =
      options
          .value("--text", "TEXT", "What a whole model reads, of which FILE is the folder or the .gguf file",
                 command.text)
          ->needs(file);
  options
      .count("--heads", "N", "Number of heads; needed where there is no config.json next to the file",
             choices.n_heads, 1)
      ->excludes(preset)
      ->excludes(text);
  add_attention_options(options, choices.settings, scale);
  options
      .text("--assume", "MODEL_TYPE",
            "Type of models whose attention the checkpoint's is, whatever its config.json says",
            [&choices](StringRef option, StringRef type) {
              choices.settings.type_override = known_type(option, type);
            })
      ->excludes(preset)
      ->excludes(text);
  options.value("--embeddings", "FILE", "Tensors of which one is the checkpoint's input", choices.embeddings)
      ->needs(file)
      ->excludes(text);
  options.value("--tensor", "NAME", "Which tensor is the embeddings", choices.embeddings_tensor)
      ->needs(file)
      ->excludes(text);
  options
      .text("--first-line", "WHAT",
            "What a table's first line is where that is 0, 1, 2 …: names, of the columns, or numbers",
            [&choices](StringRef, StringRef what) { choices.index.line = what == "names"; })
      ->check(CLI::IsMember({"names", "numbers"}));
  options
      .text("--first-column", "WHAT", "The same of its first column: names, of the rows, or numbers",
            [&choices](StringRef, StringRef what) { choices.index.column = what == "names"; })
      ->check(CLI::IsMember({"names", "numbers"}));
  options.flag("--decimal-comma", "Numbers in tables and texts have a decimal comma: 0,5 is a half",
               choices.mark, core::formats::DecimalMark::comma);
  options
      .texts("--ignore", "NAMES",
             "Ignore what is not supported yet: all, or a list with commas of " +
                 core::importing::ignorable_names(),
             [&choices](StringRef option, StringRef name) {
               if (!core::importing::can_be_ignored(name))
                 refuse(option, "all, or names among " + core::importing::ignorable_names(), name);
               if (!choices.ignored) choices.ignored.emplace();
               choices.ignored->push_back(name);
             })
      ->delimiter(',')
      ->needs(file)
      ->excludes(text);
  options.flag("--allow-outside", "Also open files that a session names outside its own folder",
               choices.untrusted_paths, core::UntrustedPaths::allowed);
}

void add_mistake_option(Options options, ModelOptions& command) {
  options.texts(
      "--mistake", "NAME", "Inject this bug into the model first; may be given again",
      [&command](StringRef option, StringRef name) {
        command.mistakes.push_back(core::bugs::find_offered_bug(name));
        if (!command.mistakes.back())
          throw core::Error(option + ": there is no mistake \"" + name + "\"; attnscope mistakes lists them");
      });
}

void add_options(Options options, Export& command) {
  add_model_options(options, command);
  options
      .text("--out", "PATH", "Directory, made when there is none; a file for npz, html or a single matrix",
            [&command](StringRef, StringRef path) {
              command.out = path;
              const std::string ending = command.out.extension().string();
              choose_format(ending.substr(ending.starts_with('.')), command);
            })
      ->required();
  options
      .texts("--stages", "A,B", "Only these stages",
             [&command](StringRef option, StringRef name) {
               command.options.stages.emplace_back(named_stage(option, "names among", name).name);
             })
      ->delimiter(',');
  options.text("--format", "NAME", names_of_formats(), [&command](StringRef option, StringRef name) {
    if (!choose_format(name, command)) refuse(option, names_of_formats(), name);
  });
  options.flag("--no-labels", "Numbers alone, without tokens and column names", command.options.labels,
               false);
  add_mistake_option(options, command);
}

void add_target_option(Options options, GradientOptions& gradient, const char* of) {
  options.text(of, "STAGE[ROW,COLUMN]",
               "The number, as weights[3,1]; weights[3,:] is the sum of a row, weights that of all cells",
               [&gradient](StringRef option, StringRef text) {
                 named_stage(option, "a cell of a stage among", text.substr(0, text.find('[')));
                 const auto target = core::graph::parse_target(text);
                 if (!target) refuse(option, "STAGE[ROW,COLUMN], as weights[3,1] or weights[3,:]", text);
                 gradient.target.stage = target->stage;
                 gradient.target.row = target->row, gradient.target.column = target->column;
               });
}

/// Adds the option that names the number, and those of its head and sequence.
void add_gradient_options(Options options, GradientOptions& gradient, const char* of) {
  add_target_option(options, gradient, of);
  options.count("--head", "H", "Its head, 0 unless given", gradient.target.head);
  options.count("--sequence", "S", "Its sequence of a batch, 0 unless given", gradient.sequence);
}

void add_options(Options options, WriteGradients& command) {
  add_options(options, static_cast<Export&>(command));
  add_gradient_options(options, command.of, "--of");
  CLI::Option* of = options.app.get_option("--of");
  CLI::Option* row =
      options.value("--row", "I", "Row of the output that --target is for", command.of.target.row);
  options
      .value("--target", "FILE[:TENSOR]",
             "Numbers that a row of the output should be: gradients of their mean squared error",
             command.of.expected)
      ->needs(row)
      ->excludes(of);
  row->check(whole_number())->excludes(of);
}

void add_options(Options options, WriteSession& command) {
  add_model_options(options, command);
  options.required("--out", "FILE", "Session file to write", command.file);
  add_mistake_option(options, command);
}

void add_options(Options options, CheckModel& command) {
  add_model_options(
      options, command,
      "Layer of a checkpoint, of given tensors and of those to be checked (of a whole model all, unless given)");
  options
      .text(
          "--reference", "FILE",
          "Right tensors instead of a model: what follows from their queries, keys, values, mask and scale is compared",
          [&command](StringRef, StringRef path) {
            command.source = std::filesystem::path(path), command.computes_source = true;
          })
      ->excludes(options.app.get_option("FILE"))
      ->excludes(options.app.get_option("--preset"))
      ->excludes(options.app.get_option("--text"));
  options.required("--against,--observed,DUMP", "PATH",
                   "The tensors: .npz, .safetensors, .pt, or a folder of these, .npy or .csv",
                   command.against);
  const auto tolerance = number_from(0, std::numeric_limits<double>::max(), "a number from 0");
  options.value("--rtol", "R", "Relative tolerance, 1e-5 unless given", command.tolerance.relative)
      ->check(tolerance);
  options.value("--atol", "A", "Absolute tolerance, 1e-6 unless given", command.tolerance.absolute)
      ->check(tolerance);
  options.texts(
      "--map", "NAME=STAGE", "Which stage a tensor is; without a stage it is ignored; may be given again",
      [&command](StringRef option, StringRef text) { read_stage_of_tensor(option, text, command.by_hand); });
  const std::string layouts =
      core::text::joined(core::check::layouts(), ", ", &core::check::TensorLayout::name);
  options.choice(
      "--layout", "NAME",
      "Memory layout of queries, keys, values and context vectors, where the shape alone does not tell: " +
          layouts + " (batch, heads, tokens, features; td: heads concatenated)",
      "one of " + layouts, core::check::find_layout,
      [&command](const core::check::TensorLayout& layout) { command.layout = &layout; });
  options.flag("--json", "The report as JSON", command.json);
  options.value(
      "--apply-fix", "FILE",
      "Session file to write: the model changed as the first cause says, so that it gives the same tensors",
      command.fixed);
}

void add_options(Options options, WriteProgram& command) {
  add_model_options(options, command);
  options.value("--out", "FILE", "Python file; without it, standard output", command.file);
  add_gradient_options(options, command.gradient, "--gradient-of");
  add_ablation_option(options, command.heads_off, "Heads of a whole model to ablate, as 5.1,3.0");
  options
      .text(
          "--library", "NAME",
          "Whose hooks the program of a whole model uses: transformers, as without this, or transformer-lens",
          [&command](StringRef, StringRef name) {
            if (name == "transformer-lens") command.library = core::formats::HookLibrary::transformer_lens;
          })
      ->check(CLI::IsMember({"transformers", "transformer-lens"}));
  add_token_option(options, command.token);
}

void add_options(Options options, DrawFigure& command) {
  add_model_options(options, command, "Layer of a checkpoint or of given tensors", "--score-scale");
  auto& figure = command.options;
  CLI::Option* stage =
      options.text("--stage", "NAME", "The stage", [&figure](StringRef option, StringRef name) {
        figure.stage = named_stage(option, "one of", name).stage;
      });
  CLI::Option* head = options.count("--head", "N", "The head, 0 when it is not given", figure.head);
  options.count("--sequence", "N", "The sequence of a batch, 0 when it is not given", figure.sequence);
  options.flag("--all-heads", "All heads of the stage in one figure", figure.head, std::nullopt)
      ->needs(stage)
      ->excludes(head);
  options.flag("--strip", "All stages of the head instead of one", figure.stage, std::nullopt)
      ->excludes(stage);
  add_target_option(options, command.gradient, "--gradient-of");
  options
      .text("--out", "FILE", "F.svg, F.pdf or F.png",
            [&command](StringRef option, StringRef path) {
              command.file = path;
              const auto kind = std::ranges::find_if(export_formats(), [&](const ExportFormatInfo& each) {
                return is_figure(each.form) && command.file.extension() == each.ending;
              });
              if (kind == export_formats().end())
                refuse(option, "a name that ends in .svg, .pdf or .png", path);
              command.form = kind->form;
            })
      ->required();
  options.value("--scale", "S", "How much larger a PNG is, 0.1 to 16", command.scale)
      ->check(number_from(0.1, 16, "a number from 0.1 to 16"));
  options.text("--colours", "NAME",
               "viridis, magma, cividis or greys, blue-orange or red-blue; or one of each, as magma,red-blue",
               [&command](StringRef option, StringRef names) {
                 read_maps(option, core::text::split(names, ','), command.colors);
               });
  options.text("--range", "RANGE", "Whose numbers set the colors: matrix, stage or all; or LOW:HIGH",
               [&command](StringRef option, StringRef range) { read_range(option, range, command.colors); });
  options.flag("--logarithmic", "Colors by the logarithm of the absolute value", command.colors.logarithmic);
  options.flag("--dark", "Light on dark", figure.dark);
  options.flag("--no-numbers", "Colors alone, even where numbers fit", figure.numbers, false);
}

void add_options(Options options, DrawRandom& command) {
  options.count("--seed", "N", "As given to manual_seed", command.seed)->required();
  options
      .texts("OPS", "",
             "Such as rand(6,3), Linear(3,2,bias), Linear(3,2) which has no bias, Dropout(0.5,6,6)",
             [&command](StringRef, StringRef op) {
               core::random::parse_random_op(op);
               command.ops.push_back(op);
             })
      ->required();
}

void add_full_model_options(Options options, FullModelOptions& command) {
  options.required("MODEL", "", any_full_model, command.model);
  options.required("--text", "TEXT", "What the model reads", command.text);
  add_token_option(options, command.token);
}

void add_options(Options options, ListTokens& command) {
  add_full_model_options(options, command);
  options.flag("--json", "As JSON", command.json);
}

void add_options(Options options, Predict& command) {
  add_full_model_options(options, command);
  options.count("--top", "N", "How many tokens, the most probable first; 10 unless given", command.top, 1);
  add_ablation_option(options, command.heads_off);
  options.flag("--json", "As JSON", command.json);
}

void add_options(Options options, ReadLens& command) {
  add_full_model_options(options, command);
  const std::string names =
      core::text::joined(core::transformer::lens_names, ", ", &core::transformer::LensName::name, " or ");
  options.choice("--lens", "LENS", names + "; the last two read a file of the folder lens next to the model",
                 names, core::transformer::find_lens_kind, [&command](auto kind) { command.lens = kind; });
  options.count("--top", "N", "How many tokens at each point; 1 unless given", command.top, 1);
  add_ablation_option(options, command.heads_off);
  options.flag("--json", "As JSON", command.json);
}

void add_options(Options options, ScanTexts& command) {
  options.value("MODEL", "", any_full_model, command.model);
  options.value("--texts", "FILE", "Texts, one a line; in a .jsonl file the \"text\" of each line",
                command.texts);
  options.count("--sequences", "N", "How many texts, the first of the file; all of them unless given",
                command.options.n_sequences, 1);
  options.count("--length", "T",
                "Tokens that are read of a text; unless given 512, or as many as the model takes",
                command.options.length, 1);
  options.value("--out", "FOLDER", "For the measures and examples, as HeadVis and the window open them",
                command.options.folder);
  options.flag("--resume", "Go on with the scan in that folder", command.options.resumes);
  options.value("--merge", "FOLDER...", "Join the scans of different texts in these folders", command.merged);
  options.flag("--json", "As JSON, with examples and the lines that could not be read", command.json);
  add_token_option(options, command.token);
}

void add_options(Options options, ListHeadRoles& command) {
  add_full_model_options(options, command);
  add_ablation_option(options, command.heads_off);
}

void add_options(Options options, Generate& command) {
  add_full_model_options(options, command);
  options.count("--tokens", "N", "How many tokens to generate, 20 unless given", command.n_tokens, 1);
  options
      .value("--temperature", "T", "0, unless given, is greedy; above 0 tokens are sampled",
             command.sampling.temperature)
      ->check(number_from(0, 100, "a number from 0 to 100"));
  options.count("--top", "K", "Sample from the K most probable tokens", command.sampling.top, 1);
  options.count("--seed", "N", "Seed of the samples, 123 unless given", command.seed);
  add_ablation_option(options, command.heads_off);
}

void add_options(Options options, ExplainScore& command) {
  options.required("MODEL", "", full_model, command.model);
  options.required("--text", "TEXT", "What the model reads", command.text);
  const auto add = [&](const char* name, const char* type, const char* about, std::size_t& target) {
    options.count(name, type, about, target);
  };
  add("--layer", "L", "Layer, from 0", command.cell.layer);
  add("--head", "H", "Head, from 0; without it the residual stream before the layer is split",
      command.cell.head);
  add("--query", "I", "Position of the query, from 0", command.cell.query);
  add("--key", "J", "Position of the key, from 0; without it the context vector of the query is split",
      command.cell.key);
  options.value("--token", "TOKEN", "Split the logit of this token after the text instead, as \" Mary\"",
                command.token);
  options.flag("--json", "As JSON", command.json);
}

void add_options(Options options, PatchPrompts& command) {
  options.required("MODEL", "", any_full_model, command.model);
  options.required("--clean", "TEXT", "Prompt that parts are taken from", command.clean);
  options.required("--corrupt", "TEXT", "Prompt whose parts are replaced", command.corrupt);
  options.required("--answer", "TOKEN", "Token after the clean prompt, as \" Mary\"", command.answer);
  options.required("--against", "TOKEN", "Token whose logit is subtracted from that of the answer",
                   command.against);
  const std::string names =
      core::text::joined(core::transformer::patched_parts(), ", ", &core::transformer::NamedPart::name);
  options.choice("--what", "PART",
                 "Which part is replaced, head unless given: " + names +
                     "; residual is the stream before a layer, at each position",
                 "one of " + names, core::transformer::find_part,
                 [&command](const auto& named) { command.plan.part = named.part; });
  options.flag("--positions", "Replace one position at a time", command.plan.by_position);
  options
      .texts("--align", "CLEAN:CORRUPT,...",
             "Which positions of the prompts are aligned, from 0, as 0:0,1:2; without it prompts of other "
             "lengths are aligned where they begin and end alike",
             [&command](StringRef option, StringRef pair) {
               command.aligned.push_back(
                   read_pair(option, pair, ':', "CLEAN:CORRUPT, with commas between several"));
             })
      ->delimiter(',');
  add_token_option(options, command.token);
  options.text("--through", "INPUT:LAYER.HEAD",
               "Path patching: let the patch change only the queries, keys or values of a later head, as "
               "queries:2.0",
               [&command](StringRef option, StringRef words) {
                 const std::size_t colon = words.find(':');
                 const auto* part = core::transformer::find_part(words.substr(0, colon));
                 if (colon == words.npos || !part) refuse(option, "INPUT:LAYER.HEAD, as queries:2.0", words);
                 const auto [layer, head] = read_head(option, words.substr(colon + 1));
                 command.plan.receiver = core::transformer::Patch{layer, part->part, head};
               });
  options.value("--out", "FILE", "Write the map to a .csv, .npy, .npz, .svg, .pdf or .png file instead",
                command.out);
  options.flag("--json", "As JSON", command.json);
}

void add_options(Options options, ListComposition& command) {
  options.required("MODEL", "", full_model, command.model);
  options.text(
      "--head", "LAYER.HEAD",
      "List the pairs of tokens with the largest cells of the OV and QK circuits of this head instead",
      [&command](StringRef option, StringRef head) { command.head = read_head(option, head); });
  options.count("--top", "N", "How many pairs of each, 20 unless given", command.top, 1);
  options.flag("--json", "As JSON", command.json);
}

void add_help(CLI::App& app) {
  app.set_help_flag();  // the library's own works only when every other option is valid
  app.add_flag_callback(
         "-h,--help", [] { throw CLI::CallForHelp(); }, "Print this help")
      ->trigger_on_parse();  // whatever else is missing or wrong
}

/// Help without the library's lists of exclusions, which are ordered by address, and with unbroken examples,
/// which later releases would wrap.
struct HelpFormatter : CLI::Formatter {
  HelpFormatter() {
    label("SUBCOMMAND", "COMMAND");
    keep_examples_whole(*this);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return (type.empty() ? "" : " " + type) + (option->get_required() ? " " + get_label("REQUIRED") : "");
  }

 private:
  static void keep_examples_whole(auto& formatter) {
    if constexpr (requires { formatter.enable_footer_formatting(false); })
      formatter.enable_footer_formatting(false);
  }
};

/// Throws core::Error when an option of the window precedes a command.
void require_no_window_options(const CLI::App& program) {
  for (const CLI::Option* option : program.get_options())
    if (option->count() > 0)
      throw core::Error("expected " + std::string(option->get_positional() ? "a " : "") + option->get_name() +
                        " or a command, got both");
}

/// Adds a command, which becomes `chosen` when it is on the command line.
template <class Command>
void add(CLI::App& program, CommandLine& chosen, const char* name, const char* about, const char* example) {
  CLI::App* app = program.add_subcommand(name, about);
  app->footer(std::string("Example: ") + example);
  const auto command = std::make_shared<Command>();
  add_help(*app);
  add_options({*app}, *command);
  app->callback([&program, &chosen, app, command] {
    require_no_window_options(program);
    const GivenOptions given{app->get_name(), [app](const char* option) { return app->count(option) > 0; }};
    if constexpr (std::is_base_of_v<ModelOptions, Command>) validate_model(given, *command);
    if constexpr (requires { validate(given, *command); }) validate(given, *command);
    chosen = std::move(*command);
  });
}

/// Describes the error that the library found; an unknown argument says more than a missing one.
std::string parse_error_text(const CLI::App& program, const std::vector<std::string>& arguments,
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

CommandHelp described(const CLI::App& app) {
  CommandHelp help{app.get_name(), app.get_description(), app.get_footer(), {}};
  help.example.erase(0, std::string("Example: ").size());
  for (const CLI::Option* option : app.get_options()) {
    OptionHelp& row = help.options.emplace_back();
    for (const std::string& name : option->get_snames()) row.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) row.names.push_back("--" + name);
    row.argument = option->get_name();
    row.type = option->get_type_name();
    row.about = option->get_description();
    row.required = option->get_required();
  }
  return help;
}

/// Adds the hidden command that prints files for packages, which users rarely need.
void add_manual(CLI::App& program, CommandLine& chosen) {
  CLI::App* app = program.add_subcommand(
      "manual", "Print the manual page, the same as Markdown, or completions for a shell");
  app->group("");
  const auto print = [&program, &chosen](const std::string& kind) {
    require_no_window_options(program);
    Manual manual{described(program), {}};
    for (const CLI::App* command :
         program.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
      manual.commands.push_back(described(*command));
    chosen = ShowText{manual_text(manual, kind)};
  };
  app->add_option_function<std::string>("KIND", print, "man, markdown, bash, zsh or fish")->required();
}

/// Replaces earlier names of options of `check` and returns a note for each.
std::vector<std::string> rename_options(std::vector<std::string>& arguments) {
  constexpr std::pair<const char*, const char*> names[] = {{"--ours", "--reference"},
                                                           {"--theirs", "--observed"}};
  std::vector<std::string> notes;
  if (arguments.empty() || arguments.front() != "check") return notes;
  for (std::string& argument : arguments)
    for (const auto& [before, now] : names)
      if (const std::string name = argument.substr(0, argument.find('=')); name == before) {
        argument.replace(0, name.size(), now);
        notes.push_back(name + " is called " + now + " now");
      }
  return notes;
}

}  // namespace

CommandLine parse_arguments(std::vector<std::string> arguments) {
  const std::vector<std::string> renamed = rename_options(arguments);
  CLI::App program("Take attention apart: edit it, watch it, explain it.", "attnscope");
  OpenWindow window;
  ModelSource preset;
  CommandLine chosen;
  program.formatter(std::make_shared<HelpFormatter>());
  program.require_subcommand(0, 1);
  add_help(program);
  program.set_version_flag("--version", std::string("attnscope ") + core::version(), "Print the version");
  const std::string openable = "Session, checkpoint or tensors to open in the window (.json " +
                               core::formats::tensor_endings() + ", or a folder)";
  const std::string with_whole =
      openable + "; a folder with its tokenizer, or a .gguf file, as a whole model; or a link";
  const Options options{program};
  CLI::Option* file = options.value("FILE", "", with_whole, window.file);
  CLI::Option* preset_option =
      add_preset_option(options, "Preset to begin with, instead of a FILE", preset)->excludes(file);
  options.value("--text", "TEXT", "What the whole model reads at first", window.text)->needs(file);
  options.count("--layer", "L", "Its layer that is selected at first, from 0", window.layer)->needs(file);
  CLI::Option* record = options.value(
      "--record", "RECORDING",
      "Write every command to a new file, for a bug report; it holds what is typed and the paths of files",
      window.record);
  CLI::Option* replay =
      options
          .value("--replay", "RECORDING",
                 "Do first what this version has recorded, instead of opening a FILE", window.replay)
          ->excludes(file, preset_option, record);
  options.count("--until", "N", "Line after which the replay ends", window.until, 1)->needs(replay);
  add<ListPresets>(program, chosen, "presets", "List the presets: a name, a tab, what it shows",
                   "attnscope presets | cut -f1");
  add<ListMistakes>(program, chosen, "mistakes",
                    "List the bugs that can be injected and found: a name, a tab, what it is",
                    "attnscope mistakes | cut -f1");
  add<Export>(program, chosen, "export", "Write every stage of a session or a preset, a file for each matrix",
              "attnscope export --preset 004-causal --stages weights --out causal");
  add<WriteGradients>(program, chosen, "gradient",
                      "Write the gradients of one number with respect to every stage and learned matrix",
                      "attnscope gradient --preset 004-causal --of \"weights[3,1]\" --out gradients");
  add<WriteSession>(program, chosen, "session",
                    "Write a preset, or a model made of any file, as a session file",
                    "attnscope session model.safetensors --layer 3 --heads 12 --out layer3.json");
  add<CheckModel>(program, chosen, "check",
                  "Compare tensors with a session or a preset, and say what went wrong",
                  "attnscope check --preset 004-causal --against mine.npz");
  add<WriteProgram>(program, chosen, "program",
                    "Write a session, a preset or an experiment as a Python program",
                    "attnscope program lesson.json --out lesson.py");
  add<DrawFigure>(program, chosen, "figure", "Draw a stage, or all of them, as a figure for a page",
                  "attnscope figure --preset 004-causal --stage weights --out weights.svg");
  add<DrawRandom>(program, chosen, "draw", "Print what PyTorch draws, op after op, after one seed",
                  "attnscope draw --seed 123 \"rand(6,3)\" \"Linear(3,2)\"");
  add<ListTokens>(program, chosen, "tokens", "Tokenize a text as a model does",
                  "attnscope tokens MODEL --text \"Once upon a time\"");
  add<Predict>(program, chosen, "predict", "Run a model on a text and print the most probable next tokens",
               "attnscope predict MODEL --text \"Once upon a time\" --off 5.1");
  add<ListHeadRoles>(program, chosen, "heads", "Write the roles of a model's heads on a text as CSV",
                     "attnscope heads MODEL --text \"Once upon a time\"");
  add<ReadLens>(program, chosen, "lens", "Predict the next token from the residual stream of each layer",
                "attnscope lens MODEL --text \"Once upon a time\" --lens between");
  add<Generate>(program, chosen, "generate", "Generate tokens after a text",
                "attnscope generate MODEL --text \"Once upon a time\" --temperature 0.8 --top 40");
  add<ExplainScore>(
      program, chosen, "why", "Split an attention score of a model by what has written its operands",
      "attnscope why MODEL --text \"egg jam fig and egg jam f\" --layer 2 --head 0 --query 13 --key 6");
  add<PatchPrompts>(
      program, chosen, "patch",
      "Patch parts of a model's pass over one prompt into another, and print what each recovers",
      "attnscope patch MODEL --clean \"egg jam fig and egg jam f\" --corrupt \"egg jam food and "
      "egg jam f\" --answer ig --against ood");
  add<ListComposition>(program, chosen, "composition",
                       "Measure how much of what each head reads is written by earlier heads",
                       "attnscope composition MODEL");
  add<ScanTexts>(program, chosen, "scan", "Measure the heads of a model over many texts",
                 "attnscope scan MODEL --texts texts.txt --out heads");
  add<Learn>(program, chosen, "learn", "Train a small transformer on a task, and watch its heads form",
             "attnscope learn induction --seed 1 --out induction");
  add<Attach>(program, chosen, "attach",
              "Open the window on a model that attnscope.attach() serves in Python",
              "attnscope attach 127.0.0.1:5005 --token TOKEN");
  add_manual(program, chosen);
  program.footer("attnscope COMMAND --help describes one command.");
  if (const auto empty = std::ranges::find(arguments, ""); empty != arguments.end())
    return UsageError{(empty != arguments.begin() && empty[-1].starts_with("--") ? empty[-1] + ": " : "") +
                      "expected no empty argument, got one"};
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    program.parse(std::move(reversed));  // the library pops them from the back
  } catch (const CLI::CallForHelp&) {
    return ShowText{program.help()};
  } catch (const CLI::CallForVersion& version) {
    return ShowText{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return UsageError{parse_error_text(program, arguments, error)};
  } catch (const core::Error& error) {
    return UsageError{error.what()};
  }
  if (auto* check = std::get_if<CheckModel>(&chosen)) check->renamed = renamed;
  if (!program.get_subcommands().empty()) return chosen;
  if (const auto* named = std::get_if<const core::editing::Preset*>(&preset)) window.preset = *named;
  return window;
}

}  // namespace app
