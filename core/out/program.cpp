#include "core/out/program.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/version.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/python.hpp"
#include "core/graph/validation.hpp"

namespace core::formats {
namespace {

using attention::Linear;
using attention::MatrixName;
using attention::Model;
using attention::Sequence;
using attention::SharedMatrix;
using editing::InitializedPart;
using editing::RecipeDraw;
using editing::SeededDraws;
using positions::Pairs;
using positions::Rotary;
using positions::ScalingRule;
using random::RandomOpKind;
using std::to_string;

/// Returns `before` and torch.tensor(…) of a matrix, or of its first row; float32 numbers are written at that
/// precision, all others as float64.
std::string tensor_text(const std::string& before, const arma::mat& m, bool row = false) {
  const std::string start = before + "torch.tensor(";
  const bool single = python::is_float32(m);
  return start + (row ? python::row(m, single) : python::rows(m, std::string(start.size(), ' '), single)) +
         (single ? ")" : ", dtype=torch.float64)");
}

// The model's numbers: sampled from a seed, or written out.

const char* name_of(InitializedPart part) {
  switch (part) {
    case InitializedPart::embeddings:
      return "x";
    case InitializedPart::query:
      return "W_query";
    case InitializedPart::key:
      return "W_key";
    case InitializedPart::value:
      return "W_value";
    case InitializedPart::output:
      return "out_proj";
    case InitializedPart::nothing:
      break;
  }
  return "";
}

std::string stacked(const std::string& before, const std::vector<std::string>& tensors) {
  std::string text = before + "torch.stack([\n";
  for (const std::string& t : tensors) text += t + ",\n";
  return text + "])";
}

bool have_equal_embeddings(const std::vector<Sequence>& sequences) {
  return std::ranges::all_of(sequences,
                             [&](const Sequence& s) { return s.embeddings == sequences.front().embeddings; });
}

std::string repeated(std::size_t times) {
  return fmt::format("x = torch.stack([x] * {})\n", times);
}

std::string embeddings_text(const std::vector<Sequence>& sequences) {
  if (sequences.size() == 1 || have_equal_embeddings(sequences))
    return tensor_text("x = ", sequences.front().embeddings) + "\n" +
           (sequences.size() > 1 ? repeated(sequences.size()) : "");
  std::vector<std::string> tensors;
  for (const Sequence& s : sequences) tensors.push_back(tensor_text("    ", s.embeddings));
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

/// Returns a draw as a line of Python, with its own name if it is the layer of one head.
std::string sampling_line(const RecipeDraw& draw) {
  const std::string words = random::torch_line(draw.op);
  if (draw.part == InitializedPart::nothing) return words + "  # sampled, but not used\n";
  const std::string head = draw.head ? "_" + to_string(*draw.head) : "";
  return std::string(name_of(draw.part)) + head + " = " + words + "\n";
}

std::string seeded_draws_text(const Model& model, const SeededDraws& seeded_draws) {
  std::string text = fmt::format("\ntorch.manual_seed({})\n", seeded_draws.seed), after;
  for (const RecipeDraw& draw : seeded_draws.draws) {
    text += sampling_line(draw);
    const std::string name = name_of(draw.part);
    if (draw.repeated && draw.part == InitializedPart::embeddings) after += repeated(model.sequences.size());
    const bool is_layer = draw.part > InitializedPart::embeddings;
    if (is_layer && draw.op.kind != RandomOpKind::linear && !draw.head)
      after += name + " = layer(" + name + ")\n";
    if (draw.head != std::size_t{0}) continue;
    std::string heads;  // layers of single heads are concatenated
    for (std::size_t h = 0; h < model.n_heads; ++h)
      heads += fmt::format("{}{}_{}{}", h ? ", " : "", name, h,
                           draw.op.kind == RandomOpKind::linear ? ".weight.T" : "");
    std::string biases;
    for (std::size_t h = 0; h < model.n_heads; ++h)
      biases += fmt::format("{}{}_{}.bias", h ? ", " : "", name, h);
    after += name + " = layer(torch.cat([" + heads + "], dim=1)" +
             (draw.op.bias ? ", torch.cat([" + biases + "]))\n" : ")\n");
  }
  return text + after;
}

/// Returns whether the program cannot sample the dropout mask and has it as a tensor named kept.
bool writes_kept_weights(const attention::Dropout& d) {
  return d.active() && d.rate < 1 && (!d.given.empty() || d.stream == attention::DropoutStream::mkl);
}

std::string kept_text(const Model& model) {
  std::vector<std::string> sequences;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    std::vector<std::string> heads;
    for (const arma::mat& mask : attention::sampled_dropout_masks(model, s))
      heads.push_back(tensor_text("    ", arma::conv_to<arma::mat>::from(mask != 0)));
    sequences.push_back(model.n_heads == 1 ? heads.front() : stacked("    ", heads));
  }
  const std::string about = "\n# 1 for every weight that dropout keeps\n";
  if (sequences.size() > 1) return about + stacked("kept = ", sequences) + "\n";
  return about + "kept = " + sequences.front().substr(4) + "\n";
}

// Additions since the original paper.

std::string stack(const std::string& before, const std::vector<SharedMatrix>& matrices) {
  if (matrices.size() == 1) return tensor_text(before, matrices.front()) + "\n";
  std::string text = before + "torch.stack([\n";
  for (const SharedMatrix& m : matrices) text += tensor_text("    ", m) + ",\n";
  return text + "])\n";
}

std::string source_text(const Model& m) {
  std::vector<SharedMatrix> all;
  for (const attention::Sequence& s : m.sequences) all.push_back(s.key_embeddings);
  return "\n# what keys and values are made of\n" + stack("memory = ", all) + "memory = memory.double()\n";
}

arma::mat as_row(const std::vector<double>& numbers) {
  return arma::rowvec(numbers);
}

std::string frequencies_text(const Rotary& rotary, std::size_t d_head) {
  const std::string d = to_string(rotated_columns(rotary, d_head));
  const ScalingRule rule = rotary.scaling.rule;
  if (rotary.inverse_frequencies || (rule != ScalingRule::none && rule != ScalingRule::linear))
    return tensor_text("frequencies = ", as_row(positions::frequencies(rotary, d_head)), true) +
           (rotary.inverse_frequencies    ? "\n"
            : rule == ScalingRule::llama3 ? "  # stretched as in Llama 3.1\n"
            : rule == ScalingRule::yarn   ? "  # scaled as in YaRN\n"
                                          : "  # scaled as in LongRoPE\n");
  return "frequencies = " + python::number(rotary.base) + " ** (-torch.arange(0, " + d +
         ", 2, dtype=torch.float64) / " + d + ")\n";
}

std::string rotation_text(const Model& m) {
  const Rotary rotary = *rotary_of(m);
  const std::size_t d = rotated_columns(rotary, m.d_head());
  const std::string all = to_string(d), half = to_string(d / 2);
  const bool halves = rotary.pairs == Pairs::halves;
  std::string text = "\n" + frequencies_text(rotary, m.d_head()) + "\n\ndef apply_rope(x, positions):\n";
  text +=
      halves ? "    \"\"\"Columns p and p + " + half + " of x, rotated by position times frequency p.\"\"\"\n"
             : "    \"\"\"Columns 2p and 2p + 1 of x, rotated by position times frequency p.\"\"\"\n";
  text += "    angles = positions[:, None] * frequencies\n    cosine, sine = angles.cos(), angles.sin()\n";
  if (const double by = positions::attention_factor(rotary); by != 1)
    text += "    cosine, sine = cosine * " + python::number(by) + ", sine * " + python::number(by) +
            "  # the attention factor\n";
  text += halves ? "    first, second = x[..., :" + half + "], x[..., " + half + ":" + all + "]\n"
                 : "    first, second = x[..., 0:" + all + ":2], x[..., 1:" + all + ":2]\n";
  text += "    pairs = first * cosine - second * sine, first * sine + second * cosine\n";
  const std::string joined = halves ? "torch.cat(pairs, dim=-1)" : "torch.stack(pairs, dim=-1).flatten(-2)";
  return text + (d < m.d_head() ? "    return torch.cat([" + joined + ", x[..., " + all + ":]], dim=-1)\n"
                                : "    return " + joined + "\n");
}

std::string additions_text(const Model& m) {
  const auto& [normalize, positions, softcap, score_bias, sink] = m.additions;
  std::string text = m.has_key_embeddings() ? source_text(m) : "";
  const auto add = [&](const char* name, const arma::mat& row) {
    text += tensor_text(std::string("\n") + name + " = ", row, true) + "\n";
  };
  if (normalize) add("query_norm", normalize->query), add("key_norm", normalize->key);
  if (positions.rotary) text += rotation_text(m);
  if (positions.alibi) {
    std::vector<double> slopes;
    for (std::size_t h = 0; h < m.n_heads; ++h)
      slopes.push_back(positions::alibi_slope(*positions.alibi, h, m.n_heads));
    add("slopes", as_row(slopes));
  }
  if (positions.relative) text += tensor_text("\nbias_table = ", positions.relative->table) + "\n";
  if (!score_bias.empty()) text += "\n" + stack("score_bias = ", score_bias);
  if (sink) add("sink", *sink);
  return text;
}

/// Returns lines that define x, the layers and other inputs of forward().
///
/// Samples numbers that PyTorch gives for one of the seeds, to the last bit, and writes out all others.
std::string definitions_text(const Model& model, const std::vector<std::uint64_t>& seeds) {
  const std::vector<SeededDraws> recipe = editing::find_recipe(model, seeds);
  const auto is_initialized = [&](InitializedPart part) {
    return std::ranges::any_of(recipe, [part](const SeededDraws& p) { return p.initializes(part); });
  };
  std::string text = tokens_text(model.sequences), sampled;
  if (!is_initialized(InitializedPart::embeddings)) text += embeddings_text(model.sequences);
  for (const SeededDraws& seeded_draws : recipe) sampled += seeded_draws_text(model, seeded_draws);
  if (model.projections) {
    const auto& [query, key, value, output] = *model.projections;
    std::string literals;
    const auto add = [&](InitializedPart part, const Linear& linear) {
      if (!is_initialized(part)) literals += layer_text(name_of(part), linear);
    };
    add(InitializedPart::query, query);
    add(InitializedPart::key, key);
    add(InitializedPart::value, value);
    if (output) add(InitializedPart::output, *output);
    if (!literals.empty()) sampled += "\n" + literals;
  }
  // The function is defined before its first use, and only if it is used.
  if (sampled.find("layer(") != sampled.npos)
    text += std::string(text.empty() ? "" : "\n\n") + layer_function() + "\n";
  return text + sampled + additions_text(model) +
         (writes_kept_weights(model.dropout) ? kept_text(model) : "");
}

// The class.

std::string class_name(const Model& m) {
  return std::string(m.mask.causal ? "Causal" : "Self") + (m.n_heads > 1 ? "MultiHead" : "") + "Attention";
}

std::string init_text(const Model& m) {
  if (!m.projections) return "";
  const bool output = m.projections->output.has_value();
  return "    def __init__(self, W_query, W_key, W_value" + std::string(output ? ", out_proj" : "") + "):\n" +
         python::line("super().__init__()") +
         python::line("self.W_query, self.W_key, self.W_value = W_query, W_key, W_value") +
         (output ? python::line("self.out_proj = out_proj") : "") + "\n";
}

// Gradients.

/// Returns the tensor of a learned matrix in the program, and the name of its gradient.
struct LearnedTensor {
  std::string name, tensor;
  bool is_weight = false;
};
std::vector<LearnedTensor> learned_tensors(const Model& m) {
  constexpr std::array layers{"attention.W_query", "attention.W_key", "attention.W_value",
                              "attention.out_proj"};
  constexpr std::array others{
      std::pair{MatrixName::query_norm, "query_norm"}, std::pair{MatrixName::key_norm, "key_norm"},
      std::pair{MatrixName::slopes, "slopes"},         std::pair{MatrixName::relative_bias, "bias_table"},
      std::pair{MatrixName::score_bias, "score_bias"}, std::pair{MatrixName::sink, "sink"}};
  std::vector<LearnedTensor> tensors;
  for (std::size_t k = 0; k < attention::n_matrix_names; ++k) {
    const auto name = static_cast<MatrixName>(k);
    if (!find_matrix(m, {name, 0})) continue;
    if (is_weight(name) || is_bias(name))
      tensors.push_back({graph::gradient_name(name),
                         std::string(layers[static_cast<std::size_t>(part_of(name))]) +
                             (is_bias(name) ? ".bias" : ".weight"),
                         is_weight(name)});
    for (const auto& [other, tensor] : others)
      if (name == other) tensors.push_back({graph::gradient_name(name), tensor});
  }
  return tensors;
}

/// Returns the number of which the gradients are computed, as PyTorch code.
std::string target_text(const Model& m, const GradientRequest& of) {
  const graph::Target& target = of.target;
  require_stage(graph::attention(m), m, target);
  cells_of(target, shape_of(m, target.stage));
  std::vector<std::string> indices;
  if (m.sequences.size() > 1) indices.push_back(to_string(of.sequence));
  if (n_matrices(m, target.stage) > 1)
    indices.push_back(to_string(matrix_of_head(m, target.stage, target.head)));
  for (const auto& index : {target.row, target.column}) indices.push_back(index ? to_string(*index) : ":");
  const std::string cells =
      fmt::format("stages[\"{}\"][{}]", attention::info(target.stage).name, text::joined(indices, ", "));
  if (target.expected.empty()) return cells + (target.is_cell() ? "" : ".sum()");
  const arma::mat expected = as_row(target.expected);
  return "nn.functional.mse_loss(" + cells + ", torch.tensor(" + python::row(expected, false) +
         ", dtype=torch.float64))";
}

bool is_name_character(char c) {
  return c == '_' || (c >= 'a' && c <= 'z');
}

std::string backward_text(const Model& m, const GradientRequest& of) {
  const std::vector<LearnedTensor> learned = learned_tensors(m);
  std::string text = "x = x.double().requires_grad_()\n";
  if (m.has_key_embeddings()) text += "memory.requires_grad_()\n";
  for (const LearnedTensor& each : learned)
    if (!each.tensor.starts_with("attention."))
      text += each.tensor + " = " + each.tensor + ".double().requires_grad_()\n";
  text += "stages = attention(x)\ntarget = " + target_text(m, of) +
          "\nstages = {name: numbers for name, numbers in stages.items() if numbers.requires_grad}\n"
          "for numbers in stages.values():\n    numbers.retain_grad()\n"
          "if target.requires_grad:  # else it is a constant\n    target.backward()\n\n"
          "gradients = {f\"d_{name}\": numbers.grad for name, numbers in stages.items()}\n";
  for (const auto& [name, tensor, is_weight] : learned)
    text += fmt::format("gradients[\"d_{}\"] = {}.grad{}\n", name, tensor,
                        is_weight ? ".T if " + tensor + ".grad is not None else None" : "");
  return text +
         "torch.set_printoptions(precision=8, threshold=10**9, linewidth=120)\n"
         "print(f\"{target.item()}\\n\")\n"
         "for name, numbers in gradients.items():  # None: the number does not depend on it\n"
         "    print(f\"{name}\\n{numbers}\\n\")\n";
}

}  // namespace

std::string layer_text(const std::string& name, const Linear& linear) {
  const auto& [weight, bias] = linear;
  std::string text = tensor_text(name + " = layer(", weight);
  if (bias) text += tensor_text(",\n" + std::string(name.size() + 9, ' ') + "bias=", *bias, true);
  return text + ")\n";
}

std::string layer_function() {
  return "def layer(weight, bias=None):\n"
         "    \"\"\"x @ weight + bias as a layer; PyTorch keeps the weight of a layer transposed.\"\"\"\n"
         "    made = nn.Linear(*weight.shape, bias=bias is not None, dtype=torch.float64)\n"
         "    with torch.no_grad():\n"
         "        made.weight.copy_(weight.T)\n"
         "        if bias is not None:\n"
         "            made.bias.copy_(bias)\n"
         "    return made\n";
}

AttentionSource attention_source(const Model& model, const std::vector<std::string>& forward) {
  AttentionSource source;
  source.definitions = additions_text(model) + (writes_kept_weights(model.dropout) ? kept_text(model) : "");
  source.class_name = class_name(model);
  source.class_text =
      "class " + source.class_name + "(nn.Module):\n" + init_text(model) + "    def forward(self, x):\n";
  for (const std::string& line : forward) source.class_text += line.empty() ? "\n" : python::line(line);
  if (model.projections)
    source.layers = std::string("W_query, W_key, W_value") + (model.projections->output ? ", out_proj" : "");
  return source;
}

std::string program_text(const Model& model, const std::string& title,
                         const std::vector<std::uint64_t>& seeds, const GradientRequest* gradient) {
  attention::require(model);
  if (bugs::has_bugs(model) || !model.dropout.rescale)
    throw Error("bugs: a program is written of attention without injected bugs; fix them first");
  if (!model.given.empty() || !model.heads_off.empty())
    throw Error(
        "program: expected a model that computes every stage, got one with given stages, overridden values or ablated heads");
  const std::string definitions = definitions_text(model, seeds);
  std::string text =
      // Python looks for an encoding declaration in the first two lines.
      "# -*- coding: utf-8 -*-\n# Written by attnscope " + std::string(version()) +
      "; needs PyTorch. Prints " +
      (gradient ? "the gradients of " + text_of(gradient->target) : std::string("every stage")) +
      ", computed in float64.\n" + python::string(title) + "\nimport torch\nfrom torch import nn\n\n";
  text += definitions.substr(definitions.find_first_not_of('\n'));
  std::vector<std::string> forward = graph::forward_lines(graph::attention(model), model);
  if (gradient)  // a stage that is another's tensor would get the gradient of that one
    for (std::string& line : forward)
      if (const std::size_t at = line.find(" = ");
          at != line.npos && std::ranges::all_of(line.substr(at + 3), is_name_character))
        line += ".clone()";
  const AttentionSource source = attention_source(model, forward);
  text += "\n\n" + source.class_text;
  text += "\n\nattention = " + source.class_name + "(" + source.layers + ").double()\n";
  if (gradient) return text + backward_text(model, *gradient);
  text += "with torch.no_grad():\n";
  text += "    stages = attention(x.double())\n\n";
  text += "torch.set_printoptions(precision=8, threshold=10**9, linewidth=120)\n";
  text +=
      "for name, numbers in stages.items():\n    print(f\"{name} {tuple(numbers.shape)}\\n{numbers}\\n\")\n";
  return text;
}

}  // namespace core::formats
