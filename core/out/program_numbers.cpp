#include "core/out/program_numbers.hpp"

#include <algorithm>

#include "core/editing/draw.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/python.hpp"
#include "core/out/program_additions.hpp"
#include "core/out/program_forward.hpp"

namespace core::formats {
namespace {

using attention::Linear;
using attention::Model;
using attention::Sequence;
using editing::DrawnPart;
using editing::RecipeDraw;
using editing::RecipePassage;
using random::DrawKind;

const char* name_of(DrawnPart part) {
  switch (part) {
    case DrawnPart::embeddings:
      return "x";
    case DrawnPart::query:
      return "W_query";
    case DrawnPart::key:
      return "W_key";
    case DrawnPart::value:
      return "W_value";
    case DrawnPart::output:
      return "out_proj";
    case DrawnPart::nothing:
      break;
  }
  return "";
}

std::string stacked(const std::string& before, const std::vector<std::string>& tensors) {
  std::string text = before + "torch.stack([\n";
  for (const std::string& t : tensors) text += t + ",\n";
  return text + "])";
}

bool all_alike(const std::vector<Sequence>& sequences) {
  return std::ranges::all_of(sequences,
                             [&](const Sequence& s) { return s.embeddings == sequences.front().embeddings; });
}

std::string repeated(std::size_t times) {
  return "x = torch.stack([x] * " + std::to_string(times) + ")\n";
}

std::string embeddings_text(const std::vector<Sequence>& sequences) {
  if (sequences.size() == 1 || all_alike(sequences))
    return with_tensor("x = ", sequences.front().embeddings) + "\n" +
           (sequences.size() > 1 ? repeated(sequences.size()) : "");
  std::vector<std::string> tensors;
  for (const Sequence& s : sequences) tensors.push_back(with_tensor("    ", s.embeddings));
  return stacked("x = ", tensors) + "\n";
}

std::string tokens_text(const std::vector<Sequence>& sequences) {
  const auto& tokens = sequences.front().tokens;
  if (tokens == attention::numbered_tokens(tokens.size())) return "";
  const bool alike = std::ranges::all_of(sequences, [&](const Sequence& s) { return s.tokens == tokens; });
  if (alike) return "tokens = " + python::strings(tokens, "          ") + "\n";
  std::string text = "tokens = [\n";
  for (const Sequence& s : sequences) text += "    " + python::strings(s.tokens, "    ") + ",\n";
  return text + "]\n";
}

/// A draw as a line of Python, under a name of its own when it is one head's layer.
std::string draw_text(const RecipeDraw& draw) {
  const std::string words = random::torch_words(draw.op);
  if (draw.part == DrawnPart::nothing) return words + "  # drawn, but not used\n";
  const std::string head = draw.head ? "_" + std::to_string(*draw.head) : "";
  return std::string(name_of(draw.part)) + head + " = " + words + "\n";
}

std::string passage_text(const Model& model, const RecipePassage& passage) {
  std::string text = "\ntorch.manual_seed(" + std::to_string(passage.seed) + ")\n", after;
  for (const RecipeDraw& draw : passage.draws) {
    text += draw_text(draw);
    const std::string name = name_of(draw.part);
    if (draw.repeated && draw.part == DrawnPart::embeddings) after += repeated(model.sequences.size());
    const bool is_layer = draw.part > DrawnPart::embeddings;
    if (is_layer && draw.op.kind != DrawKind::linear && !draw.head)
      after += name + " = layer(" + name + ")\n";
    if (draw.head != std::size_t{0}) continue;
    std::string heads;  // one head's layers stand side by side
    for (std::size_t h = 0; h < model.n_heads; ++h)
      heads += (h ? ", " : "") + name + "_" + std::to_string(h) +
               (draw.op.kind == DrawKind::linear ? ".weight.T" : "");
    std::string biases;
    for (std::size_t h = 0; h < model.n_heads; ++h)
      biases += (h ? ", " : "") + name + "_" + std::to_string(h) + ".bias";
    after += name + " = layer(torch.cat([" + heads + "], dim=1)" +
             (draw.op.bias ? ", torch.cat([" + biases + "]))\n" : ")\n");
  }
  return text + after;
}

std::string layer_text(const std::string& name, const Linear& linear) {
  const auto& [weight, bias] = linear;
  std::string text = with_tensor(name + " = layer(", weight);
  if (bias) text += with_tensor(",\n" + std::string(name.size() + 9, ' ') + "bias=", *bias, true);
  return text + ")\n";
}

constexpr const char* layer_function =
    "def layer(weight, bias=None):\n"
    "    \"\"\"x @ weight + bias as a layer; PyTorch keeps the weight of a layer transposed.\"\"\"\n"
    "    made = nn.Linear(*weight.shape, bias=bias is not None, dtype=torch.float64)\n"
    "    with torch.no_grad():\n"
    "        made.weight.copy_(weight.T)\n"
    "        if bias is not None:\n"
    "            made.bias.copy_(bias)\n"
    "    return made\n";

std::string kept_text(const Model& model) {
  std::vector<std::string> sequences;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    std::vector<std::string> heads;
    for (const arma::mat& mask : attention::drawn_dropout_masks(model, s))
      heads.push_back(with_tensor("    ", arma::conv_to<arma::mat>::from(mask != 0)));
    sequences.push_back(model.n_heads == 1 ? heads.front() : stacked("    ", heads));
  }
  const std::string about = "\n# 1 for every weight that dropout keeps\n";
  if (sequences.size() > 1) return about + stacked("kept = ", sequences) + "\n";
  return about + "kept = " + sequences.front().substr(4) + "\n";
}

}  // namespace

ProgramNumbers program_numbers(const Model& model, const std::vector<std::uint64_t>& seeds) {
  const std::vector<RecipePassage> recipe = editing::find_recipe(model, seeds);
  const auto is_drawn = [&](DrawnPart part) {
    return std::ranges::any_of(recipe, [part](const RecipePassage& p) { return p.gives(part); });
  };
  ProgramNumbers numbers;
  std::string text = tokens_text(model.sequences), drawn;
  if (!is_drawn(DrawnPart::embeddings)) text += embeddings_text(model.sequences);
  for (const RecipePassage& passage : recipe) drawn += passage_text(model, passage);
  if (model.projections) {
    const auto& [query, key, value, output] = *model.projections;
    std::string written;
    const auto add = [&](DrawnPart part, const Linear& linear) {
      numbers.layers += (numbers.layers.empty() ? "" : ", ") + std::string(name_of(part));
      if (!is_drawn(part)) written += layer_text(name_of(part), linear);
    };
    add(DrawnPart::query, query);
    add(DrawnPart::key, key);
    add(DrawnPart::value, value);
    if (output) add(DrawnPart::output, *output);
    if (!written.empty()) drawn += "\n" + written;
  }
  // The function stands before its first use, and only where it has one.
  if (drawn.find("layer(") != drawn.npos)
    text += std::string(text.empty() ? "" : "\n\n") + layer_function + "\n";
  numbers.definitions =
      text + drawn + program_additions(model) + (writes_kept_weights(model) ? kept_text(model) : "");
  return numbers;
}

}  // namespace core::formats
