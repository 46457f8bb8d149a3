#include "core/files/layers.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/files/layouts.hpp"
#include "core/files/signs.hpp"

namespace core::formats::checkpoints {
namespace {

using Names = std::map<std::string, const TensorInfo*, std::less<>>;

const TensorInfo* find(const Names& names, const std::string& name) {
  const auto it = names.find(name);
  return it == names.end() ? nullptr : it->second;
}

Source source_of(const Names& names, const std::string& prefix, const LayoutRow& row, std::size_t which) {
  Source source;
  const std::string weight = prefix + row.weights[which];
  source.weights = {weight};
  const Shape& shape = find(names, weight)->shape;
  source.out_by_in = row.orientation == Orientation::out_by_in ||
                     (row.orientation == Orientation::by_shape && shape[0] > shape[1]);
  source.head_first = shape.size() == 3;
  if (row.is_fused()) source.part = which, source.n_parts = 3;
  if (!row.biases[which].empty() && find(names, prefix + row.biases[which])) {
    source.biases = {prefix + row.biases[which]};
    if (row.has_fused_bias) source.bias_part = which, source.n_bias_parts = 3;
  }
  return source;
}

std::optional<Source> output_of(const Names& names, const std::string& prefix, const LayoutRow& row,
                                bool out_by_in) {
  const TensorInfo* weight = find(names, prefix + row.output_weight);
  if (!weight) return std::nullopt;
  Source source;
  source.head_first = weight->shape.size() == 3;
  source.weights = {prefix + row.output_weight};
  source.out_by_in = out_by_in;
  if (find(names, prefix + row.output_bias)) source.biases = {prefix + row.output_bias};
  return source;
}

/// The layer whose query's weight that tensor is, or nothing.
std::optional<Layer> layer_at(const Names& names, const std::string& name, const LayoutRow& row) {
  if (!name.ends_with(row.weights[0])) return std::nullopt;
  const std::string prefix = name.substr(0, name.size() - row.weights[0].size());
  if (!prefix.empty() && prefix.back() != '.') return std::nullopt;
  if (row.is_fused() && find(names, prefix + "q_attn.weight"))
    return std::nullopt;  // GPT-2's cross-attention, whose c_attn holds keys and values alone
  for (const std::string& weight : row.weights) {
    const TensorInfo* info = find(names, prefix + weight);
    const bool has_heads = info && row.orientation == Orientation::head_first && info->shape.size() == 3;
    if (!info || (info->shape.size() != 2 && !has_heads)) return std::nullopt;
  }
  Layer layer{prefix, &row.layout, {}, 0};
  if (const Shape& shape = find(names, name)->shape; shape.size() == 3) layer.n_heads = shape[0];
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
    for (const LayoutRow& row : layout_rows())
      for (const TensorInfo& info : tensors) {
        auto layer = layer_at(names, info.name, row);
        if (layer && has_output(*layer) == with_output && found.insert(info.name).second)
          layers.push_back(std::move(*layer));
      }
  std::ranges::sort(layers, text::comes_before, &Layer::prefix);
  std::stable_partition(layers.begin(), layers.end(),
                        [&](const Layer& layer) { return !is_cross(tensors, layer); });
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
