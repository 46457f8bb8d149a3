#include "app/cli/command_rules.hpp"

#include "app/cli/option_texts.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/stages.hpp"
#include "core/training/run_files.hpp"
#include "core/training/task.hpp"
#include "core/training/whole_model.hpp"

namespace app {

namespace {

using core::attention::StageInfo;

std::string expected_per_head(const StageInfo& stage) {
  return std::string("expected a stage of each head, got ") + stage.name + ", which is of all heads";
}

/// Throws core::Error where a head or a sequence means nothing; `of` is the option that names the number.
void validate_gradient(const GivenOptions& given, const GradientOptions& gradient, const char* of) {
  const StageInfo& stage = core::attention::info(gradient.target.stage);
  if (!given.has(of) && gradient.expected.empty())
    given.refuse({"--head", "--sequence"}, std::string("expected with ") + of);
  if (!stage.per_head) given.refuse({"--head"}, expected_per_head(stage));
}

}  // namespace

void GivenOptions::refuse(std::initializer_list<const char*> options, const std::string& expected) const {
  for (const char* option : options)
    if (has(option)) throw core::Error(command + ": " + option + ": " + expected);
}

void validate_model(const GivenOptions& given, ModelOptions& command) {
  const std::string& name = given.command;
  const bool has_file = given.has("FILE") || (name == "check" && given.has("--reference"));
  auto& tensors = command.choices.given;
  if (!has_file && !given.has("--preset") && tensors.empty())
    throw core::Error(name + ": expected either a FILE or --preset NAME, got neither");
  if (command.text && name == "check" && !given.has("--layer"))
    given.refuse({"--given", "--first-line", "--first-column"},
                 "expected with --layer, where there is --text");
  if (!given.has("--layer")) return;
  if (!has_file && tensors.empty() && name != "check")  // in a check it is that of its tensors
    given.refuse({"--layer"}, "expected with a FILE, or with --given");
  for (auto& tensor : tensors) {
    const auto layer = core::text::parse_unsigned(command.choices.layer);
    if (!layer) refuse("--layer", "a whole number for given tensors", command.choices.layer);
    tensor.layer = *layer;
  }
}

void validate(const GivenOptions& given, ExplainScore& command) {
  using enum ExplainScore::Explained;
  const bool has_layer = given.has("--layer"), has_head = given.has("--head"),
             has_query = given.has("--query"), has_key = given.has("--key");
  if (given.has("--token")) {
    if (has_layer || has_head || has_query || has_key)
      given.refuse({"--token"}, "expected without --layer, --head, --query and --key");
    command.what = logit;
    return;
  }
  if (!has_layer || !has_query || (has_key && !has_head))
    throw core::Error(
        "why: expected --layer, --head, --query and --key, or without --key, or without both --head and --key, "
        "or --token");
  command.what = has_key ? score : has_head ? contexts : residual;
}

void validate(const GivenOptions& given, ListComposition& command) {
  if (!command.head) given.refuse({"--top"}, "expected with --head");
}

void validate(const GivenOptions& given, DrawFigure& figure) {
  const auto& stage = figure.options.stage;
  if (!given.has("--stage") && !given.has("--strip"))
    throw core::Error("figure: expected either --stage NAME or --strip");
  if (stage && !core::attention::info(*stage).per_head)
    given.refuse({"--head"}, expected_per_head(core::attention::info(*stage)));
  figure.has_gradient = given.has("--gradient-of");
  if (figure.form != ExportFormat::png)
    given.refuse({"--scale"}, "expected with a .png, as lines can be enlarged without loss");
}

void validate(const GivenOptions& given, Export& command) {
  const std::string ending = command.out.extension().string();
  const bool is_file = ending == ".npz" || ending == ".html" ||
                       core::formats::find_matrix_format(ending.substr(ending.empty() ? 0 : 1));
  const std::string format = command.is_page           ? page_format
                             : command.options.archive ? archive_format
                                                       : command.options.format->name;
  if (given.has("--format") && is_file && ending != "." + format)
    throw core::Error("export: --format: expected the one of " + command.out.filename().string() +
                      ", got \"" + format + "\"");
  if (command.is_page && given.has("--stages"))
    throw core::Error("export: --stages: expected without a page, which has the stages that it needs");
}

void validate(const GivenOptions& given, WriteGradients& command) {
  if (!given.has("--of") && !given.has("--target"))
    throw core::Error("gradient: expected either --of STAGE[ROW,COLUMN] or --target FILE, got neither");
  if (command.is_page) throw core::Error("gradient: expected tables or an .npz, got a page");
  validate_gradient(given, command.of, "--of");
  validate(given, static_cast<Export&>(command));
}

void validate(const GivenOptions& given, WriteProgram& command) {
  validate_gradient(given, command.gradient, "--gradient-of");
  command.has_gradient = given.has("--gradient-of");
  const bool is_of_layer = given.has("--layer") || given.has("--preset") || command.has_gradient;
  if (is_of_layer)
    given.refuse({"--off", "--library", "--token"},
                 "expected with a whole model and --text or a session of it, without --layer");
}

void validate(const GivenOptions&, Learn& command) {
  const core::training::Task* task = core::training::find_task(command.task);
  if (!task && core::training::is_run_session_file(command.task)) return;  // it has its own setup
  command.setup = task ? task->setup : core::training::text_task().setup;
  for (const auto& change : command.changes) change(command.setup);
  if (const auto problem = core::training::check(command.setup))
    throw core::Error(std::string("learn: ") + problem->option + ": " + problem->message);
  if (const std::string reason = core::training::no_export_reason(command.setup);
      !command.out.empty() && !reason.empty())
    throw core::Error("learn: --out: " + reason + "; without --out it can be trained");
}

void validate(const GivenOptions& given, ScanTexts& command) {
  const bool merges = !command.merged.empty();
  for (const char* option : {"MODEL", "--texts"})
    if (!merges && !given.has(option))
      throw core::Error(std::string("scan: ") + option + ": expected, or --merge FOLDER...");
  if (merges)
    given.refuse({"MODEL", "--texts", "--sequences", "--length", "--resume"}, "expected without --merge");
  if (command.options.folder.empty()) given.refuse({"--resume"}, "expected with --out FOLDER");
}

void validate(const GivenOptions& given, Generate& command) {
  if (command.sampling.temperature == 0)
    given.refuse({"--top", "--seed"},
                 "expected with a --temperature above 0, as nothing is sampled otherwise");
}

}  // namespace app
