#include "core/out/program_additions.hpp"

#include "core/graph/python.hpp"
#include "core/graph/stages.hpp"

namespace core::formats {
namespace {

using attention::Model;
using attention::SharedMatrix;
using attention::Stage;
using positions::Pairs;
using positions::Rotary;
using positions::ScalingRule;
using python::line;
using std::to_string;

std::string name_of_stage(Stage stage) {
  return attention::info(stage).name;
}

std::string stack(const std::string& before, const std::vector<SharedMatrix>& matrices) {
  if (matrices.size() == 1) return with_tensor(before, matrices.front()) + "\n";
  std::string text = before + "torch.stack([\n";
  for (const SharedMatrix& m : matrices) text += with_tensor("    ", m) + ",\n";
  return text + "])\n";
}

std::string memory_text(const Model& m) {
  std::vector<SharedMatrix> all;
  for (const attention::Sequence& s : m.sequences) all.push_back(s.key_embeddings);
  return "\n# what keys and values are made of\n" + stack("memory = ", all) + "memory = memory.double()\n";
}

arma::mat as_row(const std::vector<double>& numbers) {
  return arma::rowvec(numbers);
}

std::string frequencies_text(const Rotary& rotary, std::size_t d_head) {
  const std::string d = to_string(rotated_columns(rotary, d_head));
  if (rotary.inverse_frequencies || rotary.scaling.rule == ScalingRule::llama3)
    return with_tensor("frequencies = ", as_row(positions::frequencies(rotary, d_head)), true) +
           (rotary.inverse_frequencies ? "\n" : "  # stretched as in Llama 3.1\n");
  return "frequencies = " + python::number(rotary.base) + " ** (-torch.arange(0, " + d +
         ", 2, dtype=torch.float64) / " + d + ")\n";
}

std::string rotation_text(const Model& m) {
  const Rotary& rotary = *m.additions.positions.rotary;
  const std::size_t d = rotated_columns(rotary, m.d_head());
  const std::string all = to_string(d), half = to_string(d / 2);
  const bool halves = rotary.pairs == Pairs::halves;
  std::string text = "\n" + frequencies_text(rotary, m.d_head()) + "\n\ndef turned(x, positions):\n";
  text += halves
              ? "    \"\"\"Columns p and p + " + half + " of x, turned by position times frequency p.\"\"\"\n"
              : "    \"\"\"Columns 2p and 2p + 1 of x, turned by position times frequency p.\"\"\"\n";
  text += "    angles = positions[:, None] * frequencies\n    cosine, sine = angles.cos(), angles.sin()\n";
  text += halves ? "    first, second = x[..., :" + half + "], x[..., " + half + ":" + all + "]\n"
                 : "    first, second = x[..., 0:" + all + ":2], x[..., 1:" + all + ":2]\n";
  text += "    pairs = first * cosine - second * sine, first * sine + second * cosine\n";
  const std::string joined = halves ? "torch.cat(pairs, dim=-1)" : "torch.stack(pairs, dim=-1).flatten(-2)";
  return text + (d < m.d_head() ? "    return torch.cat([" + joined + ", x[..., " + all + ":]], dim=-1)\n"
                                : "    return " + joined + "\n");
}

std::string normed(const Model& m, const std::string& from, const std::string& factors) {
  const attention::HeadNorm& norm = *m.additions.normalise;
  const std::string rows =
      norm.rule == attention::NormRule::rms ? from : "(" + from + " - " + from + ".mean(-1, keepdim=True))";
  return rows + " / (" + rows + ".square().mean(-1, keepdim=True) + " + python::number(norm.epsilon) +
         ").sqrt() * " + factors;
}

/// T5's buckets of key − query.
std::string buckets_text(const positions::Relative& relative) {
  const std::size_t n = relative.table.n_cols() / (relative.bidirectional ? 2 : 1), near = n / 2;
  const std::string count = to_string(n), few = to_string(near);
  std::string text = line(relative.bidirectional ? "distance = (key - query).abs()"
                                                 : "distance = (query - key).clamp(min=0)");
  text += line("far = (distance.clamp(min=" + few + ").double() / " + few + ").log() / torch.tensor(" +
               python::number(double(relative.max_distance)) + " / " + few + ", dtype=torch.float64).log()");
  text += line("far = (" + few + " + (far * " + to_string(n - near) +
               ").long()).clamp(max=" + to_string(n - 1) + ")");
  text += line("bucket = torch.where(distance < " + few + ", distance, far)");
  if (relative.bidirectional) text += line("bucket = bucket + " + count + " * (key > query)");
  return text;
}

std::string position_bias_text(const Model& m) {
  const attention::Positions& p = m.additions.positions;
  std::string text = line("key = torch.arange(n_keys)") +
                     line("query = torch.arange(n_tokens)[:, None] + n_keys - n_tokens");
  if (p.relative)
    return text + buckets_text(*p.relative) +
           line(std::string("position_bias = bias_table") + (m.n_heads > 1 ? "[:, bucket]" : "[0, bucket]") +
                ".expand(scores.shape)");
  return text + line(std::string("position_bias = (-slopes") + (m.n_heads > 1 ? "[:, None, None]" : "") +
                     " * (key - query).abs()).expand(scores.shape)");
}

std::string biased_text(const Model& m, const std::string& from) {
  const bool by_position = m.additions.positions.has_bias(), given = !m.additions.score_bias.empty();
  const std::string sum = by_position && given ? "(position_bias + score_bias)"
                          : by_position        ? "position_bias"
                                               : "score_bias";
  return line("biased_scores = " + from + " + " + sum);
}

}  // namespace

bool has_groups(const Model& m) {
  return m.n_groups() < m.n_heads;
}

std::string of_every_head(const Model& m, const std::string& name) {
  if (!has_groups(m)) return name;
  if (m.n_groups() == 1) return name + ".unsqueeze(-3)";  // one for all
  return name + ".repeat_interleave(" + to_string(m.n_heads / m.n_groups()) + ", dim=-3)";
}

std::string with_tensor(const std::string& before, const arma::mat& m, bool row) {
  const std::string start = before + "torch.tensor(";
  const bool single = python::is_float32(m);
  return start + (row ? python::row(m, single) : python::rows(m, std::string(start.size(), ' '), single)) +
         (single ? ")" : ", dtype=torch.float64)");
}

std::string program_additions(const Model& m) {
  const auto& [normalise, positions, score_cap, score_bias, sink] = m.additions;
  std::string text = m.has_memory() ? memory_text(m) : "";
  const auto add = [&](const char* name, const arma::mat& row) {
    text += with_tensor(std::string("\n") + name + " = ", row, true) + "\n";
  };
  if (normalise) add("query_norm", normalise->query), add("key_norm", normalise->key);
  if (positions.rotary) text += rotation_text(m);
  if (positions.alibi) {
    std::vector<double> slopes;
    for (std::size_t h = 0; h < m.n_heads; ++h)
      slopes.push_back(positions::slope_of(*positions.alibi, h, m.n_heads));
    add("slopes", as_row(slopes));
  }
  if (positions.relative) text += with_tensor("\nbias_table = ", positions.relative->table) + "\n";
  if (!score_bias.empty()) text += "\n" + stack("score_bias = ", score_bias);
  if (sink) add("sink", *sink);
  return text;
}

std::string prepared_text(const Model& m) {
  std::string text;
  const auto& rotary = m.additions.positions.rotary;
  if (rotary) {
    text += line("positions = torch.arange(n_keys, dtype=torch.float64)" +
                 (rotary->first != 0 ? " + " + python::number(double(rotary->first)) : std::string()) +
                 (rotary->scaling.rule == ScalingRule::linear ? "  # of keys, before they are scaled" : ""));
    if (rotary->scaling.rule == ScalingRule::linear)
      text += line("positions = positions / " + python::number(rotary->scaling.factor));
    if (m.n_keys() > m.n_tokens())
      text += line("asking = positions[n_keys - n_tokens:]  # the last query stands at the last key");
    else if (m.n_keys() < m.n_tokens())
      text +=
          line("asking = positions[-1] + torch.arange(1 - n_tokens, 1, dtype=torch.float64)" +
               (rotary->scaling.rule == ScalingRule::linear ? " / " + python::number(rotary->scaling.factor)
                                                            : std::string()));
  }
  const std::string asking = m.n_keys() == m.n_tokens() ? "positions" : "asking";
  const auto add = [&](Stage normed_stage, Stage rotated_stage, const char* factors, const std::string& at) {
    if (m.additions.normalise)
      text += line(name_of_stage(normed_stage) + " = " +
                   normed(m, name_of_stage(stage_before(m, normed_stage)), factors));
    if (rotary)
      text += line(name_of_stage(rotated_stage) + " = turned(" +
                   name_of_stage(stage_before(m, rotated_stage)) + ", " + at + ")");
  };
  add(Stage::normed_queries, Stage::rotated_queries, "query_norm", asking);
  add(Stage::normed_keys, Stage::rotated_keys, "key_norm", "positions");
  return text;
}

std::string adjusted_text(const Model& m, const std::string& scaled) {
  std::string text = scaled;
  if (const auto cap = m.additions.score_cap) {
    const std::string c = python::number(*cap);
    text += line("capped_scores = " + c + " * torch.tanh(scaled_scores / " + c + ")");
  }
  if (m.additions.positions.has_bias()) text += position_bias_text(m);
  if (m.additions.has_bias()) text += biased_text(m, name_of_stage(stage_before(m, Stage::biased_scores)));
  return text;
}

std::string softmax_text(const Model& m) {
  if (!m.additions.sink) return "torch.softmax(masked_scores, dim=-1)";
  return std::string("torch.softmax(torch.cat([masked_scores, sink") +
         (m.n_heads > 1 ? "[:, None, None]" : "") +
         ".expand(*masked_scores.shape[:-1], 1)], dim=-1), dim=-1)[..., :-1]";
}

}  // namespace core::formats
