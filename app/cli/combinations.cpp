#include "app/cli/combinations.hpp"

#include "app/cli/argument_values.hpp"
#include "core/base/error.hpp"
#include "core/graph/stages.hpp"

namespace app {

void settle_window(const Said& said) {
  for (const char* option : {"--text", "--layer"})
    if (said.has(option) && !said.has("FILE"))
      throw core::Error(std::string(option) + ": expected with a FILE, a whole model");
  if (said.has("FILE") && said.has("--preset"))
    throw core::Error("expected either a FILE or --preset NAME, got both");
}

void settle_model(const Said& said, OfModel& command) {
  const bool file = said.has("FILE"), preset = said.has("--preset");
  auto& given = command.choices.given;
  if (file ? preset : !preset && given.empty())
    throw core::Error(said.command + ": expected either a FILE or --preset NAME, got " +
                      (file ? "both" : "neither"));
  if (command.text && !file) throw core::Error(said.command + ": --text: expected with a FILE");
  for (const char* option : {"--heads", "--embeddings", "--tensor", "--ignore"})
    if (command.text && said.has(option))
      throw core::Error(said.command + ": " + option + ": expected without --text");
  for (const char* option : {"--heads", "--embeddings", "--tensor", "--ignore"})
    if (said.has(option) && !file && (preset || option != std::string_view("--heads")))
      throw core::Error(said.command + ": " + option + ": expected with a FILE");
  for (const char* option : {"--given", "--first-line"})
    if (command.text && said.command == "check" && !said.has("--layer") && said.has(option))
      throw core::Error(said.command + ": " + option + ": expected with --layer, where there is --text");
  if (!said.has("--layer")) return;
  if (!file && given.empty() && said.command != "check")  // which means that of its tensors
    throw core::Error(said.command + ": --layer: expected with a FILE, or with --given");
  for (auto& tensor : given) read_layer_of_given("--layer", command.choices.layer, tensor);
}

void settle_figure(const Said& said, const DrawFigure& figure) {
  const bool strip = said.has("--strip");
  if (strip == said.has("--stage")) throw core::Error("figure: expected either --stage NAME or --strip");
  if (said.has("--all-heads") && (strip || said.has("--head")))
    throw core::Error("figure: --all-heads: expected with a --stage, and without --head and --strip");
  const auto& stage = figure.options.stage;
  if (stage && !core::attention::info(*stage).per_head && said.has("--head"))
    throw core::Error(std::string("figure: --head: expected a stage of each head, got ") +
                      core::attention::info(*stage).name + ", which is of all heads");
  if (said.has("--scale") && figure.format != FigureFormat::png)
    throw core::Error("figure: --scale: expected with a .png, as lines can be enlarged without loss");
}

void settle_export(const Said& said, const Export& command) {
  const std::string ending = command.out.extension().string();
  const bool is_file =
      ending == ".npz" || core::formats::find_matrix_format(ending.substr(ending.empty() ? 0 : 1));
  const std::string format = command.options.archive ? "npz" : command.options.format->name;
  if (said.has("--format") && is_file && ending != "." + format)
    throw core::Error("export: --format: expected the one of " + command.out.filename().string() +
                      ", got \"" + format + "\"");
}

void settle_generate(const Said& said, const Generate& command) {
  for (const char* option : {"--top", "--seed"})
    if (said.has(option) && command.choice.temperature == 0)
      throw core::Error(std::string("generate: ") + option +
                        ": expected with a --temperature above 0, as nothing is drawn else");
}

}  // namespace app
