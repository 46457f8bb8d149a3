#include "core/out/program_forward.hpp"

#include "core/graph/python.hpp"
#include "core/graph/stages.hpp"
#include "core/out/program_additions.hpp"
#include "core/out/program_mask.hpp"

namespace core::formats {
namespace {

using attention::DropoutStream;
using attention::MergeRule;
using attention::Model;
using attention::ScaleRule;
using attention::ScoreRule;

using python::line;

std::string init_text(const Model& m) {
  if (!m.projections) return "";
  const bool output = m.projections->output.has_value();
  return "    def __init__(self, W_query, W_key, W_value" + std::string(output ? ", out_proj" : "") + "):\n" +
         line("super().__init__()") +
         line("self.W_query, self.W_key, self.W_value = W_query, W_key, W_value") +
         (output ? line("self.out_proj = out_proj") : "") + "\n";
}

/// How a matrix of all heads side by side becomes one a head: heads own bands of columns.
std::string split(const Model& m, const std::string& all, std::size_t n) {
  if (n == 1) return all;
  return all + ".unflatten(-1, (" + std::to_string(n) + ", " + std::to_string(m.d_head()) +
         ")).transpose(-3, -2)";
}

std::string projected(const Model& m, const char* layer, const std::string& from, std::size_t n) {
  return split(m, m.projections ? std::string("self.") + layer + "(" + from + ")" : from, n);
}

std::string scores_text(const Model& m) {
  const attention::LastStages last = last_stages(m);
  const std::string queries = attention::info(last.queries).name, keys = attention::info(last.keys).name;
  const std::string product = queries + " @ " + of_every_head(m, keys) + ".transpose(-2, -1)";
  switch (m.scores) {
    case ScoreRule::query_key:
      return line("scores = " + product);
    case ScoreRule::uniform:
      break;
  }
  return line("scores = torch.zeros_like(" + product + ")  # every key counts the same");
}

std::string scaled_text(const Model& m) {
  const auto& [rule, factor] = m.scale;
  switch (rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return line("scaled_scores = scores / keys.shape[-1] ** 0.5");
    case ScaleRule::inverse_sqrt_d_model:
      return line("scaled_scores = scores / x.shape[-1] ** 0.5");
    case ScaleRule::factor:
      return line("scaled_scores = scores * " + python::number(factor));
    case ScaleRule::none:
      break;
  }
  return line("scaled_scores = scores");
}

std::string dropout_text(const Model& m) {
  const auto& [rate, training, seed, stream, given, rescale] =
      m.dropout;  // rescale is true: see program_text()
  if (!m.dropout.active())
    return line(std::string("dropout_mask = torch.ones_like(weights)") + (training ? "" : "  # evaluation"));
  if (rate == 1) return line("dropout_mask = torch.zeros_like(weights)  # a rate of 1 drops everything");
  const std::string p = python::number(rate);
  if (writes_kept_weights(m)) return line("dropout_mask = kept.double() / (1 - " + p + ")");
  // nn.Dropout draws these very numbers, but not in builds with MKL before PyTorch 2.7.
  return line("torch.manual_seed(" + std::to_string(seed) + ")") +
         line("kept = torch.rand(weights.shape, dtype=torch.float64) < 1 - " + p +
              "  # as nn.Dropout draws") +
         line("dropout_mask = kept.double() / (1 - " + p + ")");
}

std::string merged_text(const Model& m) {
  switch (m.merge) {
    case MergeRule::concatenate:
      return line(m.n_heads == 1 ? "concatenated = contexts"
                                 : "concatenated = contexts.transpose(-3, -2).flatten(-2)");
    case MergeRule::reshape_without_transpose:
      break;
  }
  return line(
      "concatenated = contexts.reshape(*x.shape[:-1], -1)  # the mistake: no transpose(-3, -2) before it");
}

/// "queries": queries and so on.
std::string stages_text(const Model& m) {
  std::string text = line("return {");
  for (const attention::StageInfo& stage : attention::stages()) {
    if (!stage.present(m)) continue;
    const std::string name = stage.name;
    const std::string value = stage.stage == attention::Stage::embeddings       ? "x"
                              : stage.stage == attention::Stage::key_embeddings ? "memory"
                              : stage.stage == attention::Stage::mask && m.sequences.size() > 1
                                  ? "mask.expand(len(x), -1, -1)"
                                  : name;
    text += line("    \"" + name + "\": " + value + ",");
  }
  return text + line("}");
}

}  // namespace

bool names_keys(const Model& m) {
  return m.has_memory() || m.additions.positions.rotary || m.additions.positions.has_bias();
}

bool writes_kept_weights(const Model& model) {
  const attention::Dropout& d = model.dropout;
  return d.active() && d.rate < 1 && (!d.given.empty() || d.stream == DropoutStream::mkl);
}

std::string program_forward(const Model& model) {
  // Named one by one, so that a model that learns something new does not compile until its program knows it
  // too.
  [[maybe_unused]] const auto& [sequences, projections, n_heads, n_kv_heads, scores, scale, mask, dropout,
                                merge, context_length, additions, departures, given, heads_off] = model;
  // program_text() refuses models with given stages, typed cells or heads that are off.
  std::string text = init_text(model) + "    def forward(self, x):\n" + line("n_tokens = x.shape[-2]");
  if (context_length)
    text += line("assert n_tokens <= " + std::to_string(*context_length) +
                 ", \"more tokens than the context length\"");
  const std::string memory = model.has_memory() ? "memory" : "x";
  if (names_keys(model)) text += line("n_keys = " + memory + ".shape[-2]");
  const std::size_t n_groups = model.n_groups();
  text += line("queries = " + projected(model, "W_query", "x", n_heads)) +
          line("keys = " + projected(model, "W_key", memory, n_groups)) +
          line("values = " + projected(model, "W_value", memory, n_groups)) + prepared_text(model) + "\n";
  text += scores_text(model) + adjusted_text(model, scaled_text(model)) + program_mask(model) + "\n" +
          dropout_text(model) + line("dropped_weights = weights * dropout_mask") +
          line("contexts = dropped_weights @ " + of_every_head(model, "values")) + "\n";
  text += merged_text(model);
  text += line(projections && projections->output ? "output = self.out_proj(concatenated)"
                                                  : "output = concatenated");
  return text + stages_text(model);
}

}  // namespace core::formats
