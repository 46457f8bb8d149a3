#include "core/files/signs.hpp"

#include <algorithm>
#include <array>

#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::formats::checkpoints {
namespace {

/// Parts of tensors' names, in small letters and with blanks around each, that tell what attention does.
struct TensorSign {
  const char* absence;
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

std::vector<const char*> absences_by_tensors(std::span<const TensorInfo> tensors, const Layer& layer,
                                             bool is_cross) {
  std::vector<const char*> found;
  for (const TensorInfo& tensor : tensors)
    for (const TensorSign& sign : tensor_signs) {
      const std::string_view name = sign.absence;
      const bool shared = name == "relative", of_places = shared || name == "rotary" || name == "alibi";
      if (of_places && is_cross) continue;  // whose keys stand nowhere among the queries
      if (has_any("." + text::lower(tensor.name), sign.words) && tells_of(tensor.name, layer, shared))
        found.push_back(sign.absence);
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

}  // namespace core::formats::checkpoints
