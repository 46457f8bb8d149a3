#include "core/out/experiment_program.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/version.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/python.hpp"
#include "core/graph/validation.hpp"
#include "core/out/program.hpp"

namespace core::formats {
namespace {

using attention::Linear;
using attention::Model;
using attention::Stage;
using experiment::Experiment;
using experiment::IndexPair;
using experiment::LayerEdit;
using transformer::FullModel;
using transformer::Patch;
using transformer::PatchedPart;
using transformer::TorchLayer;
using transformer::TorchNames;
using transformer::TorchProjection;

constexpr std::array names{"W_query", "W_key", "W_value", "out_proj"};
constexpr std::array lens_names{"Q", "K", "V", "O"};

std::string numbers_text(const std::vector<std::size_t>& numbers) {
  return "[" + text::joined(numbers, ", ", [](std::size_t n) { return std::to_string(n); }) + "]";
}

/// Returns numbers in equal steps as a range.
std::string range_text(const std::vector<std::size_t>& numbers) {
  const std::size_t step = numbers.size() < 2 || numbers[1] <= numbers[0] ? 1 : numbers[1] - numbers[0];
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (numbers.size() < 2 || numbers[k] != numbers[0] + k * step) return numbers_text(numbers);
  return fmt::format("range({}, {}, {})", numbers.front(), numbers.back() + step, step);
}

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    if (end > at) text += "    " + lines.substr(at, end - at);
    text += '\n';
    at = end + 1;
  }
  return text;
}

/// Returns a line that assigns changed numbers of a tensor; rows of the matrix are its last axis.
std::string assignment(const std::string& tensor, const std::map<IndexPair, double>& numbers, bool is_bias) {
  if (numbers.empty()) return "";
  std::vector<std::size_t> rows, columns;
  arma::mat values(1, numbers.size());
  for (const auto& [at, number] : numbers) {
    values(0, rows.size()) = number;
    rows.push_back(at.first), columns.push_back(at.second);
  }
  return tensor + "[" + numbers_text(columns) + (is_bias ? "" : ", " + numbers_text(rows)) +
         "] = torch.tensor(" + python::row(values) + ", dtype=torch.float64)" +
         (is_bias ? "" : "  # output features, input features") + "\n";
}

/// Returns the definition of a projection: the model's, with changed numbers, or all of them as literals.
std::string projection_text(const std::string& name, const std::string& of_model, const Linear* before,
                            const Linear& now) {
  const auto fits = [](const attention::SharedMatrix& a, const attention::SharedMatrix& b) {
    return a.n_rows() == b.n_rows() && a.n_cols() == b.n_cols();
  };
  if (!before || !fits(before->weight, now.weight) || before->bias.has_value() != now.bias.has_value())
    return layer_text(name, now);
  const auto weight = experiment::changed_numbers(before->weight, now.weight);
  if (weight.size() * 4 > now.weight->n_elem) return layer_text(name, now);
  return name + " = " + of_model + "\n" + assignment(name + ".weight", weight, false) +
         (now.bias ? assignment(name + ".bias", experiment::changed_numbers(*before->bias, *now.bias), true)
                   : "");
}

/// Returns a line that overrides numbers of a stage, by their place in its tensor.
std::string override_line(const std::string& stage, const std::vector<std::string>& places) {
  return stage + " = override(" + stage + ", {" + text::joined(places, ", ", std::identity()) + "})";
}

/// Returns the lines of forward() with overridden numbers and ablated heads.
std::vector<std::string> forward_with_overrides(const Model& model, const LayerEdit& edit,
                                                const std::vector<std::size_t>& heads_off) {
  std::map<std::string, std::vector<std::string>> places;  // by stage
  for (const auto& cell : model.given.cells) {
    const auto& at = cell.place;
    const std::string head = attention::n_matrices(model, at.stage) > 1 ? std::to_string(at.head) + ", " : "";
    places[attention::info(at.stage).name].push_back(
        fmt::format("({}{}, {}): {}", head, at.row, at.column, python::number(cell.value)));
  }
  for (const std::size_t head : heads_off)
    places[attention::info(Stage::contexts).name].push_back(
        (model.n_heads > 1 ? std::to_string(head) : std::string("...")) + ": 0.");

  std::vector<std::string> lines, inputs;
  for (const auto& [at, number] : edit.inputs)
    inputs.push_back(fmt::format("({}, {}): {}", at.first, at.second, python::number(number)));
  if (!inputs.empty()) lines.push_back(override_line("x", inputs));
  for (const std::string& line : graph::forward_lines(graph::attention(model), model)) {
    lines.push_back(line);
    const auto stage = places.find(line.substr(0, line.find(" = ")));
    if (stage != places.end()) lines.push_back(override_line(stage->first, stage->second));
  }
  return lines;
}

/// Writes the functions and hooks of one library.
class ProgramWriter {
 public:
  ProgramWriter(const FullModel& model, const Experiment& experiment, const ExperimentProgramOptions& options,
                const transformer::Pass* pass)
      : model_(model), experiment_(experiment), options_(options), pass_(pass), torch_(model.torch_names()) {
    if (is_lens() && model.description().is_attached)
      throw Error("TransformerLens: expected a model in a folder, got an attached one");
    const auto output = [&](std::size_t l) { return torch_.layers[l].projections[3].module; };
    if (!is_lens() && torch_.layers.size() > 1 && output(0) == output(1))
      throw Error(model.description().path.string() +
                  ": its layers share their modules, so a hook cannot change one layer alone");
    if (!experiment.first) return;
    rows_ = experiment::alignment_of(model, experiment);
    is_one_by_one_ =
        transformer::is_one_by_one(rows_, experiment::tokens_of(model, experiment.unedited()).size());
  }

  std::string text() const;

 private:
  bool is_lens() const { return options_.library == HookLibrary::transformer_lens; }
  bool has_tokenizer() const {
    return options_.has_own_model && !torch_.source.empty() && model_.description().reads_text;
  }
  std::string loading(const char* type) const;
  std::string functions() const;
  std::string layer_class(std::size_t layer, const LayerEdit& edit) const;
  bool has_pattern() const;
  /// Returns indices of the patched rows and of those in the first prompt.
  std::array<std::string, 2> positions(const Patch& patch) const;
  std::string patch_line(const Patch& patch) const;
  std::string lens_patch_line(const Patch& patch) const;
  std::string patches() const;
  std::string hooks() const;
  std::string differences(const std::string& token) const;
  std::string printing(const transformer::PredictedPositions& places) const;
  std::string tensor(std::size_t layer, const char* hook) const {
    return fmt::format("\"blocks.{}.attn.{}\"", layer, hook);
  }

  const FullModel& model_;
  const Experiment& experiment_;
  const ExperimentProgramOptions& options_;
  const transformer::Pass* pass_;
  TorchNames torch_;
  transformer::TokenAlignment rows_ = {};  ///< of the first of two prompts
  bool is_one_by_one_ = true;
};

std::string ProgramWriter::loading(const char* type) const {
  if (!options_.has_own_model) return "";
  if (torch_.source.empty())
    return "# model = the model that was attached; nothing tells its process where it came from\n";
  const std::string variant = torch_.variant.empty() ? "" : ", variant=" + python::string(torch_.variant);
  std::string text = "source = " + python::string(torch_.source) + "\n";
  if (has_tokenizer()) text += "tokenizer = AutoTokenizer.from_pretrained(source)\n";
  text += fmt::format("model = {}.from_pretrained(source{}, dtype=torch.{}{}).eval()\n", type, variant,
                      torch_.dtype, has_pattern() ? ", attn_implementation=\"eager\"" : "");
  if (is_lens())
    text +=
        "model = TransformerBridge.boot_transformers(source, hf_model=model, dtype=torch.float32).eval()\n";
  return text;
}

std::string ProgramWriter::functions() const {
  std::string text;
  const bool has_edits = !experiment_.layers.empty();
  const bool ablates = std::ranges::any_of(
      experiment_.heads_off, [&](const IndexPair& off) { return !experiment_.layers.contains(off.first); });
  if (!is_lens() && (has_edits || ablates || !experiment_.patches.empty()))
    text +=
        "\n\ndef module(name):\n"
        "    \"\"\"Returns the module whose name ends so: checkpoints omit how some names begin.\"\"\"\n"
        "    return next(m for n, m in model.named_modules() if f\".{n}\".endswith(f\".{name}\"))\n";
  if (ablates && is_lens())
    text +=
        "\n\ndef ablate(heads):\n"
        "    \"\"\"Sets the context vectors of heads to 0.\"\"\"\n"
        "    def change(z, hook):\n"
        "        z = z.clone()\n"
        "        z[:, :, heads] = 0\n"
        "        return z\n"
        "    return change\n";
  else if (ablates)
    text +=
        "\n\ndef ablate(output_projection, heads, width):\n"
        "    \"\"\"Sets the context vectors of heads, which begin at these features, to 0.\"\"\"\n"
        "    def change(projection, inputs):\n"
        "        contexts = inputs[0].clone()\n"
        "        for first in heads:\n"
        "            contexts[..., first:first + width] = 0\n"
        "        return (contexts, *inputs[1:])\n"
        "    return module(output_projection).register_forward_pre_hook(change)\n";
  if (!has_edits) return text;
  text += "\n\n" + layer_function() +
          "\n\ndef override(stage, numbers):\n"
          "    \"\"\"Returns a stage with other numbers at these places.\"\"\"\n"
          "    stage = stage.clone()\n"
          "    for place, number in numbers.items():\n"
          "        stage[place] = number\n"
          "    return stage\n";
  if (is_lens())
    return text +
           "\n\ndef projection(number, name):\n"
           "    \"\"\"Returns a projection of a layer as x @ weight + bias in float64, heads side by side.\"\"\"\n"
           "    attn = model.blocks[number].attn\n"
           "    weight, bias = getattr(attn, f\"W_{name}\"), getattr(attn, f\"b_{name}\", None)\n"
           "    weight = weight.flatten(0, 1) if name == \"O\" else weight.transpose(0, 1).flatten(1)\n"
           "    return layer(weight.cpu().double(), None if bias is None else bias.flatten())\n"
           "\n\ndef replace(inputs, output, attention):\n"
           "    \"\"\"Hooks that compute attention of a layer from its input, in place of its output.\"\"\"\n"
           "    seen = {}\n"
           "    return [(inputs, lambda x, hook: seen.update(x=x[0].cpu().double())),\n"
           "            (output, lambda out, hook: attention(seen[\"x\"])[\"output\"].to(out).view_as(out))]\n";
  return text +
         "\n\ndef projection(name, heads, width, is_output=False):\n"
         "    \"\"\"Returns a projection of the model as x @ weight + bias in float64, heads side by side.\"\"\"\n"
         "    of = module(name)\n"
         "    weight, bias = of.weight if type(of).__name__ == \"Conv1D\" else of.weight.T, of.bias\n"
         "    at = [first + k for first in heads for k in range(width)]\n"
         "    if is_output:\n"
         "        return layer(weight[at].cpu().double(), bias)\n"
         "    return layer(weight[:, at].cpu().double(), None if bias is None else bias[at])\n"
         "\n\ndef replace(inputs, output, attention):\n"
         "    \"\"\"Computes attention of a layer from the input of its projections, in place of its output.\"\"\"\n"
         "    seen = {}\n"
         "    def compute(projection, inputs, out):\n"
         "        return attention(seen[\"x\"])[\"output\"].to(out).view_as(out)\n"
         "    def see(projection, inputs):\n"
         "        seen[\"x\"] = inputs[0].flatten(0, -2).cpu().double()\n"
         "    return [module(inputs).register_forward_pre_hook(see), module(output).register_forward_hook(compute)]\n";
}

std::string ProgramWriter::layer_class(std::size_t layer, const LayerEdit& edit) const {
  const Model unedited = model_.parameters(layer, pass_);
  Model plain = unedited;
  const std::size_t n_tokens = experiment::tokens_of(model_, experiment_).size();
  plain.sequences.front() = {attention::numbered_tokens(n_tokens),
                             arma::mat(n_tokens, model_.description().sizes.d_model, arma::fill::zeros)};
  const Model model = experiment::edited(plain, edit);
  const std::string place = fmt::format("layer {}: ", layer);
  if (bugs::has_bugs(model) || !model.dropout.rescale)
    throw Error(place + "a program is written of attention without injected bugs; fix them first");
  if (!model.given.stages.empty())
    throw Error(place + "a program has overridden numbers, but no whole stage that is overridden");

  const AttentionSource source = attention_source(
      model, forward_with_overrides(model, edit, experiment_.heads_off_in(layer, model.n_heads)));
  std::string body = "\"\"\"" +
                     text::joined(edit.words, "; ",
                                  [](const std::string& words) {
                                    const std::string literal = python::string(words);
                                    return literal.substr(1, literal.size() - 2);
                                  }) +
                     "\"\"\"\n";
  if (model.projections) {
    const auto& now = *model.projections;
    const attention::Projections* before = unedited.projections ? &*unedited.projections : nullptr;
    const std::array<const Linear*, 4> linear{&now.query, &now.key, &now.value,
                                              now.output ? &*now.output : nullptr};
    const std::array<const Linear*, 4> old{before ? &before->query : nullptr, before ? &before->key : nullptr,
                                           before ? &before->value : nullptr,
                                           before && before->output ? &*before->output : nullptr};
    for (std::size_t k = 0; k < linear.size(); ++k) {
      if (!linear[k]) continue;
      const TorchProjection& of = torch_.layers.at(layer).projections[k];
      const std::string of_model =
          is_lens() ? fmt::format("projection({}, \"{}\")", layer, lens_names[k])
                    : fmt::format("projection({}, {}, {}{})", python::string(of.module), range_text(of.heads),
                                  of.width, k == 3 ? ", is_output=True" : "");
      body += projection_text(names[k], of_model, old[k], *linear[k]);
    }
  }
  if (!source.definitions.empty())
    body += source.definitions.substr(source.definitions.find_first_not_of('\n'));
  body += "\n" + source.class_text + "\nreturn " + source.class_name + "(" + source.layers + ").double()\n";
  return fmt::format("\n\ndef attention_of_layer_{}():\n", layer) + indented(body);
}

bool ProgramWriter::has_pattern() const {
  return std::ranges::any_of(experiment_.patches,
                             [](const Patch& patch) { return patch.part == PatchedPart::pattern; });
}

std::array<std::string, 2> ProgramWriter::positions(const Patch& patch) const {
  if (patch.position)
    return {fmt::format("[{}]", *patch.position), fmt::format("[{}]", *rows_[*patch.position])};
  if (is_one_by_one_) return {"slice(None)", "slice(None)"};
  std::vector<std::size_t> to, from;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i]) to.push_back(i), from.push_back(*rows_[i]);
  return {numbers_text(to), numbers_text(from)};
}

/// Returns where a patch has its hook, its module, and the index of its rows and features there.
std::string ProgramWriter::patch_line(const Patch& patch) const {
  const TorchLayer& layer = torch_.layers.at(patch.layer);
  const auto features = [&](std::size_t k) {
    const TorchProjection& of = layer.projections[k];
    const std::size_t first =
        of.heads.at(patch.index / (k == 2 && patch.part == PatchedPart::pattern
                                       ? layer.projections[0].heads.size() / of.heads.size()
                                       : 1));
    return fmt::format("{}, slice({}, {})", python::string(of.module), first, first + of.width);
  };
  const auto line = [&](const char* hook, const std::string& name, const std::string& columns) {
    if (name.empty())
      throw Error(transformer::patch_name(patch) + ": no module of the model computes this alone");
    const auto [to, from] = positions(patch);
    return fmt::format("({}, {}, {}, {}, {})", hook, python::string(name), to, from, columns);
  };
  const auto of_features = [&](const char* hook, std::size_t k, const std::string& norm = "") {
    const TorchProjection& of = layer.projections[k];
    const std::size_t first = norm.empty() ? of.heads.at(patch.index) : patch.index * of.width;
    return line(hook, norm.empty() ? of.module : norm, fmt::format("slice({}, {})", first, first + of.width));
  };
  switch (patch.part) {
    case PatchedPart::head:
      return of_features("at_input", 3);
    case PatchedPart::pattern:
      return fmt::format("put_pattern({}, {}, {}, {}, {})", patch.layer, patch.index, positions(patch)[0],
                         features(2), features(3));
    case PatchedPart::queries:
      return of_features("at_output", 0, layer.query_norm);
    case PatchedPart::keys:
      return of_features("at_output", 1, layer.key_norm);
    case PatchedPart::values:
      return of_features("at_output", 2);
    case PatchedPart::attention:
      return line("at_output", layer.projections[3].module, "slice(None)");
    case PatchedPart::mlp:
      return line("at_output", layer.mlp, "slice(None)");
    case PatchedPart::residual:
      break;
  }
  return line("at_input", layer.block, "slice(None)");
}

/// Returns the hook point of a patch and the index of its numbers there.
std::string ProgramWriter::lens_patch_line(const Patch& patch) const {
  static constexpr const char* points[]{"attn.hook_z", "attn.hook_pattern", "attn.hook_q",  "attn.hook_k",
                                        "attn.hook_v", "attn.o.hook_out",   "hook_mlp_out", "hook_resid_pre"};
  const std::string head = std::to_string(patch.index);
  const auto index = [&](const std::string& rows) {
    return "(slice(None), " +
           (patch.part == PatchedPart::pattern    ? head + ", " + rows
            : patch.part < PatchedPart::attention ? rows + ", " + head
                                                  : rows) +
           ")";
  };
  const auto [to, from] = positions(patch);
  return fmt::format("(\"blocks.{}.{}\", {}, {})", patch.layer, points[static_cast<std::size_t>(patch.part)],
                     index(to), index(from));
}

/// Returns the pass of the first prompt, and functions that put parts of it into the second.
std::string ProgramWriter::patches() const {
  if (!experiment_.first) return "";
  const auto ids = tokenizers::ids_of(experiment::tokens_of(model_, experiment_.unedited()));
  std::string text = "\n\nfirst = torch.tensor([" + numbers_text(ids) +
                     "], device=ids.device)  # tokens of " + python::string(experiment_.first->text) + "\n";
  const bool predicts = model_.description().no_prediction_reason.empty();
  const std::string output = predicts ? "logits" : "last_hidden_state";
  if (experiment_.patches.empty())
    return text + (is_lens() ? "original = model(first)[0]\n"
                             : "original = model(first)." + output + "[0].float()\n");
  std::string lines;
  for (const Patch& patch : experiment_.patches)
    if (is_lens() || patch.part != PatchedPart::pattern)
      lines += "    " + (is_lens() ? lens_patch_line(patch) : patch_line(patch)) + ",\n";
  if (is_lens())
    return text +
           "kept = {}  # of the first prompt\n"
           "\n\ndef keep(name):\n"
           "    return lambda x, hook: kept.update({name: x.clone()})\n"
           "\n\ndef put(name, index, source):\n"
           "    \"\"\"Puts kept numbers in place of those of the second prompt.\"\"\"\n"
           "    def change(x, hook):\n"
           "        x = x.clone()\n"
           "        x[index] = kept[name][source]\n"
           "        return x\n"
           "    return change\n"
           "\n\npatches = [  # hook point, index, index in the first prompt\n" +
           lines +
           "]\noriginal = model.run_with_hooks(first, fwd_hooks=[(name, keep(name)) for name, *_ in patches])[0]\n";
  text +=
      "kept = {}  # rows of the first prompt\n"
      "\n\ndef at_input(name, change):\n"
      "    \"\"\"Registers a hook that changes the rows that a module reads.\"\"\"\n"
      "    def hook(of, inputs, options):\n"
      "        if inputs:\n"
      "            return (change(inputs[0]), *inputs[1:]), options\n"
      "        return inputs, {**options, \"hidden_states\": change(options[\"hidden_states\"])}\n"
      "    return module(name).register_forward_pre_hook(hook, with_kwargs=True)\n"
      "\n\ndef at_output(name, change):\n"
      "    \"\"\"Registers a hook that changes the rows that a module returns.\"\"\"\n"
      "    def hook(of, inputs, output):\n"
      "        return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)\n"
      "    return module(name).register_forward_hook(hook)\n"
      "\n\ndef keep(place):\n"
      "    def change(rows):\n"
      "        kept[place] = rows.clone()\n"
      "        return rows\n"
      "    return change\n"
      "\n\ndef put(place, positions, source, features):\n"
      "    \"\"\"Puts kept rows in place of those of the second prompt.\"\"\"\n"
      "    def change(rows):\n"
      "        rows = rows.clone()\n"
      "        rows[..., positions, features] = kept[place][..., source, features]\n"
      "        return rows\n"
      "    return change\n";
  if (has_pattern())
    text +=
        "\n\ndef put_pattern(layer, head, positions, values, of_values, output, features):\n"
        "    \"\"\"Computes context vectors of a head with its attention weights after the first prompt.\"\"\"\n"
        "    seen = {}\n"
        "    def see(rows):\n"
        "        seen[\"values\"] = rows.flatten(0, -2)[:, of_values]\n"
        "        return rows\n"
        "    def change(contexts):\n"
        "        contexts = contexts.clone()\n"
        "        contexts[..., positions, features] = (attentions[layer][0, head].to(contexts) @ seen[\"values\"])[positions]\n"
        "        return contexts\n"
        "    return [at_output(values, see), at_input(output, change)]\n";
  text += "\n\npatches = [  # hook, module, positions, those in the first prompt, features\n" + lines +
          "]\nkeeping = [hook(name, keep((hook, name))) for hook, name, *_ in patches]\n";
  if (has_pattern() && !options_.has_own_model)
    text += "implementation = model.config._attn_implementation\nmodel.set_attn_implementation(\"eager\")\n";
  text += std::string("outputs = model(first") + (has_pattern() ? ", output_attentions=True" : "") +
          ")\noriginal = outputs." + output + "[0].float()\n" +
          (has_pattern() ? "attentions = outputs.attentions\n" : "");
  if (has_pattern() && !options_.has_own_model) text += "model.set_attn_implementation(implementation)\n";
  return text + "for hook in keeping:\n    hook.remove()\n";
}

std::string ProgramWriter::hooks() const {
  std::string text = is_lens() ? "\n\nhooks = [\n" : "\n\nhooks = [  # hook.remove() ends one\n";
  if (!experiment_.patches.empty())
    text += is_lens() ? "    *((name, put(name, index, source)) for name, index, source in patches),\n"
                      : "    *(hook(name, put((hook, name), *places)) for hook, name, *places in patches),\n";
  for (const Patch& patch : experiment_.patches)
    if (patch.part == PatchedPart::pattern && !is_lens()) text += "    *" + patch_line(patch) + ",\n";
  for (std::size_t l = 0; l < model_.description().sizes.n_layers; ++l) {
    const auto off =
        experiment_.heads_off_in(l, experiment::n_heads_in(experiment_, l, model_.description().sizes));
    const auto& torch = torch_.layers.at(l).projections;
    if (experiment_.layers.contains(l)) {
      text += is_lens() ? fmt::format("    *replace({}, {}, attention_of_layer_{}()),\n",
                                      tensor(l, "hook_in"), tensor(l, "o.hook_out"), l)
                        : fmt::format("    *replace({}, {}, attention_of_layer_{}()),\n",
                                      python::string(torch[0].module), python::string(torch[3].module), l);
    } else if (!off.empty() && is_lens()) {
      text += fmt::format("    ({}, ablate({})),\n", tensor(l, "hook_z"), numbers_text(off));
    } else if (!off.empty()) {
      std::vector<std::size_t> first;
      for (const std::size_t head : off) first.push_back(torch[3].heads.at(head));
      text += fmt::format("    ablate({}, {}, {}),\n", python::string(torch[3].module), numbers_text(first),
                          torch[3].width);
    }
  }
  return text + "]\n";
}

/// Returns lines that print the watched logit difference after both prompts; token: how one is printed.
std::string ProgramWriter::differences(const std::string& token) const {
  if (!experiment_.first) return "";
  const auto places = [&](const Experiment& of) {
    const auto ids = tokenizers::ids_of(experiment::tokens_of(model_, of));
    return transformer::find_predicted_positions(model_, ids).all;
  };
  const auto in_first = places(experiment_.unedited()), in_second = places(experiment_);
  if (in_first.empty() || in_second.empty()) return "";
  const std::size_t first = in_first[0].row, second = in_second[0].row;
  const auto watched = [&](const std::string& name, const std::string& text, const std::string& logits) {
    return name + " = " +
           (text.empty() ? fmt::format("int({}[:{}].argmax())", logits, model_.description().n_tokens)
                         : std::to_string(transformer::answer_token(model_, text, name))) +
           "\n";
  };
  return watched("answer", experiment_.first->answer, fmt::format("original[{}]", first)) +
         watched("against", experiment_.first->against, fmt::format("plain[{}]", second)) +
         fmt::format("rows = original[{0}], plain[{1}], edited[{1}]\n", first, second) +
         "before, after, now = ((row[answer] - row[against]).double() for row in rows)\n"
         "print(\"logit difference\\tfirst prompt\\tsecond prompt\\twith edits\\trecovered\")\n"
         "print(" +
         token + "(answer) + \" - \" + " + token +
         "(against), *(f\"{x:.5f}\" for x in (before, after, now, (now - after) / (before - after))), sep=\"\\t\")\n";
}

std::string ProgramWriter::printing(const transformer::PredictedPositions& places) const {
  const bool predicts = places.no_prediction_reason.empty();
  const std::string output = predicts ? "logits" : "last_hidden_state";
  std::string text;
  if (is_lens())
    text += "edited, plain = model.run_with_hooks(ids, fwd_hooks=hooks)[0], model(ids)[0]\n";
  else
    text += "edited = model(ids)." + output +
            "[0].float()\nfor hook in hooks:\n    hook.remove()\nplain = model(ids)." + output +
            "[0].float()\n";
  if (!predicts)
    return text +
           "print(\"position\\tnorm of the last hidden state\\tnorm of its change by the edits\")\n"
           "for position, (now, before) in enumerate(zip(edited, plain)):\n"
           "    print(position, f\"{now.norm():.5f}\", f\"{(now - before).norm():.5f}\", sep=\"\\t\")\n";
  const std::string token = has_tokenizer() ? "name" : "str";
  if (has_tokenizer())
    text +=
        "\n\ndef name(token):\n    return json.dumps(tokenizer.decode([token]), ensure_ascii=False)\n\n\n";
  text += differences(token);
  std::string rows;
  for (const auto& [position, row] : places.all)
    rows += fmt::format("{}({}, {})", rows.empty() ? "" : ", ", position, row);
  return text + "print(\"position\\ttoken\\tprobability\\tlogit\\tprobability without edits\")\n" +
         "for position, row in [" + rows + "]:\n" +
         "    now, before = edited[row].double().softmax(-1), plain[row].double().softmax(-1)\n" +
         fmt::format("    for token in now[:{}].topk({}).indices.tolist():\n", model_.description().n_tokens,
                     std::min(options_.n_listed, model_.description().n_tokens)) +
         "        print(position, " + token +
         "(token), f\"{now[token]:.6f}\", f\"{edited[row, token]:.5f}\", f\"{before[token]:.6f}\", sep=\"\\t\")\n";
}

std::string ProgramWriter::text() const {
  const transformer::Description& of = model_.description();
  const auto tokens = experiment::tokens_of(model_, experiment_);
  const auto ids = tokenizers::ids_of(tokens);
  transformer::PredictedPositions places = transformer::find_predicted_positions(model_, ids);
  if (!of.no_prediction_reason.empty()) places.no_prediction_reason = of.no_prediction_reason;
  const bool predicts = places.no_prediction_reason.empty();
  if (is_lens() && !predicts)
    throw Error("TransformerLens: expected a model that predicts tokens: " + places.no_prediction_reason);
  const char* type = !predicts ? "AutoModel" : of.causal ? "AutoModelForCausalLM" : "AutoModelForMaskedLM";

  std::string text = std::string("# -*- coding: utf-8 -*-\n# Written by attnscope ") + version() +
                     "; needs PyTorch" +
                     (is_lens() ? ", transformers and TransformerLens 4" : " and transformers") +
                     ". Prints the " + (predicts ? "next tokens" : "last hidden state") +
                     " with and without the edits.\n" + python::string(options_.title) + "\n";
  if (has_tokenizer() && predicts) text += "import json\n\n";
  text += "import torch\n";
  if (!experiment_.layers.empty()) text += "from torch import nn\n";
  if (is_lens()) text += "from transformer_lens.model_bridge import TransformerBridge\n";
  if (options_.has_own_model && !torch_.source.empty())
    text += std::string("from transformers import ") + type + (has_tokenizer() ? ", AutoTokenizer\n" : "\n");
  text += "\ntorch.set_grad_enabled(False)\n" + loading(type);
  text += "text = " + python::string(experiment::whole_text(model_, experiment_)) + "\nids = torch.tensor([" +
          numbers_text(ids) + "]" +
          (of.is_attached ? ", device=next(model.parameters()).device)  # tokens of the text\n"
                          : ")  # tokens of the text\n");
  text += functions() + patches();
  for (const auto& [layer, edit] : experiment_.layers) text += layer_class(layer, edit);
  return text + hooks() + "\n" + printing(places);
}

}  // namespace

std::string experiment_program_text(const FullModel& model, const Experiment& experiment,
                                    const ExperimentProgramOptions& options, const transformer::Pass* pass) {
  experiment::require_patches(model, experiment);
  return ProgramWriter(model, experiment, options, pass).text();
}

}  // namespace core::formats
