#include "core/formats/checkpoints/layers.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/formats/files/json.hpp"
#include "core/text/ascii.hpp"
#include "core/text/number.hpp"

namespace core::formats::checkpoints {
namespace {

constexpr const char* rotary = "its rotary positions are not applied: scores differ from the model's own";

enum class Orientation { in_by_out, out_by_in, by_shape };

/// The ends of the names of a layout's tensors. One weight for all three is fused: queries, keys, values in
/// bands.
struct Row {
  Layout layout;
  Orientation orientation;
  std::array<std::string, 3> weights, biases;
  std::string output_weight, output_bias;
  bool fused_bias = false;
};

/// A layout of three nn.Linear and one for the output.
Row linear(Layout layout, std::array<std::string, 3> names, const std::string& output) {
  Row row{layout, Orientation::out_by_in, names, names, output + ".weight", output + ".bias"};
  for (std::string& name : row.weights) name += ".weight";
  for (std::string& name : row.biases) name += ".bias";
  return row;
}

Row fused(Layout layout, Orientation orientation, const std::string& weight, const std::string& bias,
          const std::string& output) {
  return {layout,           orientation, {weight, weight, weight}, {bias, bias, bias}, output + ".weight",
          output + ".bias", true};
}

const std::array table{
    fused({"gpt2", "GPT-2: c_attn holds queries, keys and values side by side", true, ""},
          Orientation::by_shape, "c_attn.weight", "c_attn.bias", "c_proj"),
    linear({"llama", "Llama and Mistral: q_proj, k_proj, v_proj, o_proj", true, rotary},
           {"q_proj", "k_proj", "v_proj"}, "o_proj"),
    linear({"opt", "OPT, BART, CLIP: q_proj, k_proj, v_proj, out_proj", true, ""},
           {"q_proj", "k_proj", "v_proj"}, "out_proj"),
    linear({"bert", "BERT: self.query, self.key, self.value, output.dense", false, ""},
           {"self.query", "self.key", "self.value"}, "output.dense"),
    linear({"vit", "ViT: attention.query, attention.key, attention.value, output.dense", false, ""},
           {"attention.query", "attention.key", "attention.value"}, "output.dense"),
    linear({"distilbert", "DistilBERT: q_lin, k_lin, v_lin, out_lin", false, ""}, {"q_lin", "k_lin", "v_lin"},
           "out_lin"),
    fused({"multihead_attention", "torch.nn.MultiheadAttention: in_proj_weight", false, ""},
          Orientation::out_by_in, "in_proj_weight", "in_proj_bias", "out_proj"),
    Row{{"multihead_attention_apart", "torch.nn.MultiheadAttention with other widths: q_proj_weight", false,
         ""},
        Orientation::out_by_in,
        {"q_proj_weight", "k_proj_weight", "v_proj_weight"},
        {"in_proj_bias", "in_proj_bias", "in_proj_bias"},
        "out_proj.weight",
        "out_proj.bias",
        true},
    linear({"notebook", "teaching code with nn.Linear: W_query, W_key, W_value, out_proj", true, ""},
           {"W_query", "W_key", "W_value"}, "out_proj"),
    Row{{"notebook_parameters", "teaching code with x @ W: W_query, W_key, W_value", true, ""},
        Orientation::in_by_out,
        {"W_query", "W_key", "W_value"},
        {"b_query", "b_key", "b_value"},
        "W_out",
        "b_out"},
    linear({"w_q", "teaching code with nn.Linear: W_q, W_k, W_v, W_o", true, ""}, {"W_q", "W_k", "W_v"},
           "W_o"),
    Row{{"w_q_parameters", "teaching code with x @ W: W_q, W_k, W_v, W_o", true, ""},
        Orientation::in_by_out,
        {"W_q", "W_k", "W_v"},
        {"b_q", "b_k", "b_v"},
        "W_o",
        "b_o"},
    linear({"query_key_value", "teaching code with nn.Linear: query, key, value, proj", true, ""},
           {"query", "key", "value"}, "proj"),
    linear({"wq", "Meta's Llama: wq, wk, wv, wo", true, rotary}, {"wq", "wk", "wv"}, "wo"),
    linear({"to_q", "diffusers: to_q, to_k, to_v, to_out.0", false, ""}, {"to_q", "to_k", "to_v"},
           "to_out.0"),
};

using Names = std::map<std::string, const TensorInfo*, std::less<>>;

const TensorInfo* find(const Names& names, const std::string& name) {
  const auto it = names.find(name);
  return it == names.end() ? nullptr : it->second;
}

Source source_of(const Names& names, const std::string& prefix, const Row& row, std::size_t which) {
  Source source;
  const std::string weight = prefix + row.weights[which];
  source.weights = {weight};
  const Shape& shape = find(names, weight)->shape;
  source.out_by_in = row.orientation == Orientation::out_by_in ||
                     (row.orientation == Orientation::by_shape && shape.size() == 2 && shape[0] > shape[1]);
  if (row.weights[0] == row.weights[1]) source.part = which, source.n_parts = 3;
  if (find(names, prefix + row.biases[which])) {
    source.biases = {prefix + row.biases[which]};
    if (row.fused_bias) source.bias_part = which, source.n_bias_parts = 3;
  }
  return source;
}

std::optional<Source> output_of(const Names& names, const std::string& prefix, const Row& row,
                                bool out_by_in) {
  if (!find(names, prefix + row.output_weight)) return std::nullopt;
  Source source;
  source.weights = {prefix + row.output_weight};
  source.out_by_in = out_by_in;
  if (find(names, prefix + row.output_bias)) source.biases = {prefix + row.output_bias};
  return source;
}

/// The layer whose query's weight that tensor is, or nothing.
std::optional<Layer> layer_at(const Names& names, const std::string& name, const Row& row) {
  if (!name.ends_with(row.weights[0])) return std::nullopt;
  const std::string prefix = name.substr(0, name.size() - row.weights[0].size());
  if (!prefix.empty() && prefix.back() != '.') return std::nullopt;
  for (const std::string& weight : row.weights) {
    const TensorInfo* info = find(names, prefix + weight);
    if (!info || info->shape.size() != 2) return std::nullopt;
  }
  Layer layer{prefix, &row.layout, {}, 0};
  layer.mapping.query = source_of(names, prefix, row, 0);
  layer.mapping.key = source_of(names, prefix, row, 1);
  layer.mapping.value = source_of(names, prefix, row, 2);
  layer.mapping.output = output_of(names, prefix, row, layer.mapping.query.out_by_in);
  return layer;
}

/// "x.heads.3." as "x." and 3: one class for each head.
std::optional<std::pair<std::string, std::size_t>> head_in(const std::string& prefix) {
  constexpr std::string_view word = "heads.";
  const std::size_t at = prefix.rfind(word);
  if (at == prefix.npos || (at > 0 && prefix[at - 1] != '.')) return std::nullopt;
  std::string_view rest = std::string_view(prefix).substr(at + word.size());
  const auto head = text::take_whole_number(rest);
  if (!head || rest.size() != 1) return std::nullopt;  // the point at the end
  return std::pair(prefix.substr(0, at), *head);
}

void append(Source& source, const Source& head) {
  source.weights.insert(source.weights.end(), head.weights.begin(), head.weights.end());
  source.biases.insert(source.biases.end(), head.biases.begin(), head.biases.end());
}

/// Makes one layer of those that are heads of one, and leaves the others as they are.
std::vector<Layer> joined_heads(std::vector<Layer> layers, const Names& names) {
  std::vector<Layer> joined;
  for (Layer& layer : layers) {
    const auto head = head_in(layer.prefix);
    if (!head) {
      joined.push_back(std::move(layer));
    } else if (head->second == 0) {
      layer.prefix = head->first;
      layer.n_heads = 1;
      for (const char* output : {"out_proj", "proj"}) {
        const std::string name = head->first + output;
        if (!find(names, name + ".weight")) continue;
        layer.mapping.output = Source{{name + ".weight"}, {}, true};
        if (find(names, name + ".bias")) layer.mapping.output->biases = {name + ".bias"};
      }
      joined.push_back(std::move(layer));
    } else if (!joined.empty() && joined.back().prefix == head->first &&
               joined.back().n_heads == head->second) {
      append(joined.back().mapping.query, layer.mapping.query);
      append(joined.back().mapping.key, layer.mapping.key);
      append(joined.back().mapping.value, layer.mapping.value);
      ++joined.back().n_heads;
    }
  }
  return joined;
}

}  // namespace

std::vector<Layer> find_layers(std::span<const TensorInfo> tensors) {
  Names names;
  for (const TensorInfo& info : tensors) names.emplace(info.name, &info);
  std::vector<Layer> layers;
  std::set<std::string> found;  // the tensors that are queries of a layer: the first row that fits has it
  const auto has_output = [](const Layer& l) { return l.mapping.output.has_value(); };
  for (const bool with_output : {true, false})  // q_proj is Llama's or OPT's, as its output is called
    for (const Row& row : table)
      for (const TensorInfo& info : tensors) {
        auto layer = layer_at(names, info.name, row);
        if (layer && has_output(*layer) == with_output && found.insert(info.name).second)
          layers.push_back(std::move(*layer));
      }
  std::ranges::sort(layers, text::comes_before, &Layer::prefix);
  return joined_heads(std::move(layers), names);
}

const Layer& choose_layer(std::span<const Layer> layers, const std::string& chosen,
                          const std::string& place) {
  if (layers.empty())
    throw Error(place + "expected a checkpoint of a known layout, found no attention in it");
  for (const Layer& layer : layers)
    if (layer.prefix == chosen || layer.prefix == chosen + ".") return layer;
  const auto index = text::parse_whole_number(chosen);
  if (!index || *index >= layers.size())
    throw Error(place + "expected a layer from 0 (" + layers.front().prefix + ") to " +
                std::to_string(layers.size() - 1) + " (" + layers.back().prefix + "), got " +
                quoted_briefly(chosen));
  return layers[*index];
}

}  // namespace core::formats::checkpoints
