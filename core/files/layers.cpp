#include "core/files/layers.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"

namespace core::formats::checkpoints {
namespace {

/// Parts of tensors' names, in small letters and with blanks around each, that tell what attention does.
struct TensorSign {
  const char* feature;
  const char* words;
};
constexpr std::array tensor_signs{
    TensorSign{"rotary", " rotary inv_freq rope_freqs "},
    TensorSign{"relative",
               " relative_attention_bias relative_position rel_pos rel_embeddings distance_embedding "
               "pos_bias_u "},
    TensorSign{"alibi", " alibi "},
    TensorSign{"window", " query_global "},
    TensorSign{"norm",
               " q_norm k_norm norm_q norm_k q_layernorm k_layernorm query_norm key_norm query_layernorm "
               "key_layernorm .q_ln. .k_ln. "},
    TensorSign{"sinks", ".sinks "},
    TensorSign{"extra_keys", ".bias_k .bias_v "},
};
constexpr const char* cross_signs =
    " encoder_attn. crossattention. cross_attn cross_attention encdecattention. enc_attn. encoder_attention. "
    ".attn2. ";
constexpr const char* norm_signs = " ln_1. ln1. norm1. norm_1. input_layernorm. attn_norm. ";
constexpr std::array mask_names{"mask", "bias", "tril", "causal_mask", "attn_mask"};

bool has_any(const std::string& name, std::string_view words) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (end > at && name.find(words.substr(at, end - at)) != name.npos) return true;
    at = end + 1;
  }
  return false;
}

bool has(const std::string& name, std::string_view word) {
  return name.find(word) != name.npos;
}

/// What stands before the first number of a name: "encoder.block." of "encoder.block.3.layer.0.".
std::string stack_of(const std::string& name) {
  for (std::size_t k = 0; k < name.size(); ++k)
    if (text::is_digit(name[k]) && (k == 0 || name[k - 1] == '.')) return name.substr(0, k);
  return name;
}

/// The name without so many of its last parts: "model." of "model.rotary_emb.inv_freq" without two.
std::string without_parts(std::string name, int n) {
  if (name.ends_with('.')) name.pop_back();
  for (; n > 0 && !name.empty(); --n) {
    const std::size_t point = name.rfind('.');
    name.resize(point == name.npos ? 0 : point);
  }
  return name.empty() ? name : name + ".";
}

/// Whether a tensor is of that layer, or of all that are stacked with it.
bool tells_of(const std::string& tensor, const Layer& layer, bool shared_by_a_stack) {
  if (tensor.starts_with(layer.prefix) && !layer.prefix.empty()) return true;
  const std::string stack = stack_of(tensor);
  if (stack == tensor) return layer.prefix.starts_with(without_parts(tensor, 2));
  return shared_by_a_stack && stack == stack_of(layer.prefix);
}

using ByName = std::map<std::string, const TensorInfo*, std::less<>>;

const TensorInfo* find(const ByName& names, const std::string& name) {
  const auto it = names.find(name);
  return it == names.end() ? nullptr : it->second;
}

Source source_of(const ByName& names, const std::string& prefix, const Naming& naming, std::size_t which) {
  Source source;
  const std::string weight = prefix + naming.weights[which];
  source.weights = {weight};
  const Shape& shape = find(names, weight)->shape;
  source.out_by_in = naming.orientation == Orientation::out_by_in ||
                     (naming.orientation == Orientation::by_shape && shape[0] > shape[1]);
  source.head_first = shape.size() == 3;
  if (naming.is_fused()) source.part = which, source.n_parts = 3;
  if (!naming.biases[which].empty() && find(names, prefix + naming.biases[which])) {
    source.biases = {prefix + naming.biases[which]};
    if (naming.has_fused_bias) source.bias_part = which, source.n_bias_parts = 3;
  }
  return source;
}

std::optional<Source> output_of(const ByName& names, const std::string& prefix, const Naming& naming,
                                bool out_by_in) {
  const TensorInfo* weight = find(names, prefix + naming.output_weight);
  if (!weight) return std::nullopt;
  Source source;
  source.head_first = weight->shape.size() == 3;
  source.weights = {prefix + naming.output_weight};
  source.out_by_in = out_by_in;
  if (find(names, prefix + naming.output_bias)) source.biases = {prefix + naming.output_bias};
  return source;
}

/// The layer whose query's weight that tensor is, or nothing.
std::optional<Layer> layer_at(const ByName& names, const std::string& name, const Naming& naming) {
  if (!name.ends_with(naming.weights[0])) return std::nullopt;
  const std::string prefix = name.substr(0, name.size() - naming.weights[0].size());
  if (!prefix.empty() && prefix.back() != '.') return std::nullopt;
  if (naming.is_fused() && find(names, prefix + "q_attn.weight"))
    return std::nullopt;  // GPT-2's cross-attention, whose c_attn holds keys and values alone
  for (const std::string& weight : naming.weights) {
    const TensorInfo* info = find(names, prefix + weight);
    const bool has_heads = info && naming.orientation == Orientation::head_first && info->shape.size() == 3;
    if (!info || (info->shape.size() != 2 && !has_heads)) return std::nullopt;
  }
  Layer layer{prefix, &naming, {}, 0};
  if (const Shape& shape = find(names, name)->shape; shape.size() == 3) layer.n_heads = shape[0];
  layer.mapping.query = source_of(names, prefix, naming, 0);
  layer.mapping.key = source_of(names, prefix, naming, 1);
  layer.mapping.value = source_of(names, prefix, naming, 2);
  layer.mapping.output = output_of(names, prefix, naming, layer.mapping.query.out_by_in);
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
std::vector<Layer> joined_heads(std::vector<Layer> layers, const ByName& names) {
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

/// A tensor's name without its last part, and that part: "h.0.q_proj." and "weight".
struct NameParts {
  std::string base, last;
};

NameParts name_parts(const std::string& name) {
  const std::size_t point = name.rfind('.');
  const std::size_t end = point == name.npos ? 0 : point + 1;
  return {name.substr(0, end), name.substr(end)};
}

bool is_whole_number(Dtype dtype) {
  return dtype == Dtype::i64 || dtype == Dtype::i32 || dtype == Dtype::i16 || dtype == Dtype::i8 ||
         dtype == Dtype::u64 || dtype == Dtype::u32 || dtype == Dtype::u16 || dtype == Dtype::u8;
}

/// Both pack several weights into one number, GPTQ along the inputs, AWQ along the outputs.
std::string packed_scheme(const TensorFile& file, const TensorInfo& tensor, const std::string& base) {
  const TensorInfo* scales = file.find(base + "scales");
  if (file.find(base + "g_idx")) return "GPTQ";
  if (!scales || scales->shape.empty() || tensor.shape.size() != 2) return "GPTQ or AWQ";
  return scales->shape.back() == tensor.shape[1] ? "GPTQ" : "AWQ";
}

/// The scheme by which a tensor is quantised, or nothing.
std::optional<std::string> scheme_of(const TensorFile& file, const TensorInfo& tensor) {
  const NameParts name = name_parts(tensor.name);
  const auto has = [&](const char* beside) { return file.find(name.base + beside) != nullptr; };
  if (name.last == "qweight") return packed_scheme(file, tensor, name.base);
  if (name.last == "weight_packed") return "compressed-tensors";
  if (!is_whole_number(tensor.dtype) || tensor.shape.size() < 2) return std::nullopt;
  const auto follows = [&](const char* end) { return file.find(tensor.name + end) != nullptr; };
  if (follows(".absmax") || follows(".quant_map") || (name.last == "weight" && has("SCB")))
    return "bitsandbytes";
  if (name.last == "weight")
    for (const char* scale : {"scale", "scales"})
      if (has(scale)) return "a scheme with " + name.base + scale;
  for (const char* scale : {"_scale", ".scale", "_scales", ".scales"})
    if (follows(scale)) return "a scheme with " + tensor.name + scale;
  return std::nullopt;
}

}  // namespace

Side side_of(const std::string& name) {
  if (has(name, "decoder")) return Side::decoder;
  return has(name, "encoder") || has(name, "vision") || has(name, "visual") ? Side::encoder : Side::none;
}

bool is_cross(std::span<const TensorInfo> tensors, const Layer& layer) {
  const std::string weight = text::lower(layer.mapping.query.weights.front());
  if (has_any("." + weight, cross_signs)) return true;
  // That of torch.nn.TransformerDecoder stands beside a self_attn.
  if (!layer.prefix.ends_with("multihead_attn.")) return false;
  const std::string beside = without_parts(layer.prefix, 1) + "self_attn.";
  return std::ranges::any_of(tensors, [&](const TensorInfo& t) { return t.name.starts_with(beside); });
}

bool has_norm_before(std::span<const TensorInfo> tensors, const Layer& layer) {
  const std::string block = without_parts(layer.prefix, 1);
  return std::ranges::any_of(tensors, [&](const TensorInfo& tensor) {
    if (block.empty() || !tensor.name.starts_with(block)) return false;
    return has_any("." + tensor.name.substr(block.size()), norm_signs);
  });
}

const TensorInfo* mask_beside(std::span<const TensorInfo> tensors, const Layer& layer) {
  for (const char* name : mask_names) {
    const auto mask = std::ranges::find(tensors, layer.prefix + name, &TensorInfo::name);
    if (mask == tensors.end() || mask->shape.size() < 2) continue;
    if (mask->shape.back() == mask->shape[mask->shape.size() - 2]) return &*mask;
  }
  return nullptr;
}

std::vector<const char*> features_by_tensors(std::span<const TensorInfo> tensors, const Layer& layer,
                                             bool is_cross) {
  std::vector<const char*> found;
  for (const TensorInfo& tensor : tensors)
    for (const TensorSign& sign : tensor_signs) {
      const std::string_view name = sign.feature;
      const bool shared = name == "relative", of_places = shared || name == "rotary" || name == "alibi";
      if (of_places && is_cross) continue;  // whose keys stand nowhere among the queries
      if (has_any("." + text::lower(tensor.name), sign.words) && tells_of(tensor.name, layer, shared))
        found.push_back(sign.feature);
    }
  return found;
}

bool shares_stack(const std::string& tensor, const Layer& layer) {
  return tells_of(tensor, layer, true);
}

std::size_t number_of(const Layer& layer) {
  std::string_view rest = std::string_view(layer.prefix).substr(stack_of(layer.prefix).size());
  return text::take_whole_number(rest).value_or(0);
}

std::vector<Layer> find_layers(std::span<const TensorInfo> tensors) {
  ByName names;
  for (const TensorInfo& info : tensors) names.emplace(info.name, &info);
  std::vector<Layer> layers;
  std::set<std::string> found;  // the tensors that are queries of a layer: the first row that fits has it
  const auto has_output = [](const Layer& l) { return l.mapping.output.has_value(); };
  for (const bool with_output : {true, false})  // q_proj is Llama's or OPT's, as its output is called
    for (const Naming& naming : namings())
      for (const TensorInfo& info : tensors) {
        auto layer = layer_at(names, info.name, naming);
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

void refuse_quantized(const TensorFile& file, const std::string& configured) {
  for (const TensorInfo& tensor : file.tensors()) {
    const auto scheme = scheme_of(file, tensor);
    if (!scheme) continue;
    std::string words = *scheme;
    if (!configured.empty() && text::lower(words) != text::lower(configured))
      words += " (config.json says " + configured + ")";
    throw Error(file.place() + tensor.name + ": expected weights as floating-point numbers, got " +
                dtype_name(tensor.dtype) + " quantised by " + words + ", which is not read");
  }
}

}  // namespace core::formats::checkpoints
