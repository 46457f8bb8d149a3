#include "core/model/config.hpp"

#include <array>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/config_keys.hpp"
#include "core/model/families.hpp"

namespace core::transformer {
namespace {

using formats::Json;
using formats::Word;
using formats::checkpoints::any_member;
using formats::checkpoints::ConfigPositions;
using formats::checkpoints::ConfigRotary;
using formats::checkpoints::Keys;

std::size_t size_at(const Json& top, Keys keys) {
  if (const auto place = any_member(top, keys)) return place->whole(1);
  return top.required(*keys.begin()).whole(1);
}

std::size_t size_or(const Json& top, Keys keys, std::size_t otherwise) {
  const auto place = any_member(top, keys);
  return place ? place->whole(1) : otherwise;
}

bool says_yes(const Json& top, Keys keys, bool otherwise) {
  const auto place = any_member(top, keys);
  return place ? place->boolean() : otherwise;
}

double number_or(const Json& top, Keys keys, double otherwise) {
  const auto place = any_member(top, keys);
  return place ? place->number() : otherwise;
}

Sizes sizes_in(const Json& top, const Family& family) {
  Sizes sizes;
  sizes.n_layers = size_at(top, {"num_hidden_layers", "n_layer", "n_layers"});
  sizes.d_model = size_at(top, {"hidden_size", "n_embd", "dim"});
  sizes.n_heads = size_at(top, {"num_attention_heads", "n_head", "n_heads"});
  sizes.n_groups = family.has_groups ? size_or(top, {"num_key_value_heads"}, sizes.n_heads) : sizes.n_heads;
  sizes.d_head = size_or(top, {"head_dim"}, sizes.d_model / sizes.n_heads);
  sizes.d_hidden = size_or(top, {"intermediate_size", "n_inner", "hidden_dim"}, 4 * sizes.d_model);
  sizes.n_vocabulary = size_at(top, {"vocab_size"});
  sizes.n_context = size_at(top, {"max_position_embeddings", "n_positions", "n_ctx"});
  return sizes;
}

Activation activation_in(const Json& top, Activation otherwise) {
  using enum Activation;
  static constexpr std::array words{Word{"gelu", gelu_erf},
                                    Word{"gelu_python", gelu_erf},
                                    Word{"gelu_new", gelu_tanh},
                                    Word{"gelu_fast", gelu_tanh},
                                    Word{"gelu_pytorch_tanh", gelu_tanh},
                                    Word{"quick_gelu", quick_gelu},
                                    Word{"relu", relu},
                                    Word{"silu", silu},
                                    Word{"swish", silu}};
  const auto place = any_member(top, {"hidden_act", "activation_function", "activation"});
  return place ? place->word(words) : otherwise;
}

/// A rule of scaling that is not computed, or one that lacks some of its numbers.
[[noreturn]] void refuse_scaling(const Json& top, const std::string& rule) {
  const Json place = *any_member(top, {"rope_parameters", "rope_scaling"});
  if (rule == "linear" || rule == "llama3") place.required("factor").number();
  if (rule == "llama3")
    for (const char* key : {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
      place.required(key).number();
  any_member(place, {"rope_type", "type"})
      ->fail("rotary positions of type default, linear or llama3, as others cannot be computed yet");
}

/// The part of a head's columns that turn; where transformers' code of a type does not read it, all of them.
double fraction_in(const Json& top, const ConfigRotary& said, const std::string& type) {
  const double part = said.fraction.value_or(formats::checkpoints::usual_fraction(type));
  if (type == "gpt_neox" || part == 1) return part;
  if (said.scaling.rule != positions::ScalingRule::none)
    throw Error(top.place() +
                "partial_rotary_factor: expected 1, as scaled positions of fewer columns cannot " +
                "be computed for models of type " + type + ", got " + text::number_text(part));
  return 1;
}

positions::Rotary rotary_in(const Json& top, const ConfigRotary& said, const std::string& type,
                            std::size_t d_head) {
  if (!said.other_scaling.empty()) refuse_scaling(top, said.other_scaling);
  positions::Rotary rotary;
  rotary.base = said.base.value_or(rotary.base);
  rotary.scaling = said.scaling;
  const double part = fraction_in(top, said, type);
  if (part != 1) rotary.dimensions = static_cast<std::size_t>(part * static_cast<double>(d_head));
  return rotary;
}

/// Windows of Mistral and Qwen; others have none, whatever is said.
std::vector<std::size_t> windows_in(const ConfigPositions& said, const std::string& type,
                                    std::size_t n_layers) {
  const bool has_windows = type == "mistral" || type.starts_with("qwen");
  if (!has_windows || !said.window || *said.window == 0) return {};
  std::vector<std::size_t> windows(n_layers, *said.window);
  for (std::size_t l = 0; l < std::min(n_layers, said.windowed.size()); ++l)
    if (!said.windowed[l]) windows[l] = 0;
  return windows;
}

/// What changes the numbers and is not computed here.
void refuse_what_is_unknown(const Json& top) {
  if (const auto place = any_member(top, {"position_embedding_type"}); place && place->text() != "absolute")
    place->fail("absolute positions, as others of this family cannot be computed yet");
  if (const auto place = any_member(top, {"scale_attn_weights"}); place && !place->boolean())
    place->fail("true, as scores without a scale cannot be computed yet");
  if (const auto place = any_member(top, {"quantization_config"}))
    place->fail("none, as quantised checkpoints are read from GGUF alone",
                place->member("quant_method") ? place->required("quant_method").text() : "one");
  if (const auto place = any_member(top, {"add_cross_attention", "is_encoder_decoder"});
      place && place->boolean())
    place->fail("false, as attention to another text cannot be computed yet");
}

/// Rows of positions up to that of the padding stand for none of the text.
void begin_behind_padding(const Json& top, Architecture& architecture) {
  const auto row = any_member(top, {"pad_token_id"});
  const std::size_t padding = row ? row->whole(0) : 1;
  std::size_t& n_context = architecture.sizes.n_context;
  if (padding >= n_context - 1)
    throw Error(top.place() + "max_position_embeddings: expected more than pad_token_id + 1 = " +
                text::number_text(static_cast<double>(padding) + 1) + ", got " + std::to_string(n_context));
  architecture.first_position = padding + 1;
  architecture.padding_token = padding;
  n_context -= architecture.first_position;
}

}  // namespace

void require_sizes(const Architecture& architecture, const std::string& place) {
  const Sizes& s = architecture.sizes;
  constexpr std::size_t most = std::size_t{1} << 24;
  const std::pair<const char*, std::size_t> all[]{{"layers", s.n_layers},
                                                  {"numbers a token", s.d_model},
                                                  {"heads", s.n_heads},
                                                  {"heads of keys", s.n_groups},
                                                  {"numbers a head", s.d_head},
                                                  {"hidden numbers", s.d_hidden},
                                                  {"tokens of the vocabulary", s.n_vocabulary},
                                                  {"tokens at once", s.n_context}};
  for (const auto& [name, size] : all)
    if (size == 0 || size > most)
      throw Error(place + "expected from 1 to " + std::to_string(most) + " " + name + ", got " +
                  std::to_string(size));
  if (s.n_heads % s.n_groups != 0)
    throw Error(place + "expected a number of heads that heads of keys divide, got " +
                std::to_string(s.n_heads) + " and " + std::to_string(s.n_groups));
  if (!architecture.rotary) return;
  const std::size_t turned = rotated_columns(*architecture.rotary, s.d_head);
  if (turned > s.d_head || turned % 2 != 0)
    throw Error(place + "expected an even number of rotated numbers, at most the " +
                std::to_string(s.d_head) + " of a head, got " + std::to_string(turned));
}

Architecture architecture_of(const Json& top) {
  const Json type = top.required("model_type");
  const Family* family = family_of_type(type.text());
  if (!family) type.fail("a model of the families " + names_of_families());
  refuse_what_is_unknown(top);
  Architecture architecture;
  architecture.family = family->name;
  architecture.sizes = sizes_in(top, *family);
  architecture.norm = family->norm;
  architecture.norm.epsilon =
      number_or(top, {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"}, family->norm.epsilon);
  architecture.mlp = family->mlp;
  architecture.mlp.activation = activation_in(top, family->mlp.activation);
  if (family->mlp.parallel) architecture.mlp.parallel = says_yes(top, {"use_parallel_residual"}, true);
  const ConfigPositions said = formats::checkpoints::positions_in(top);
  architecture.causal = family->causal || says_yes(top, {"is_decoder"}, false);
  if (family->is_rotary)
    architecture.rotary = rotary_in(top, said.turns, type.text(), architecture.sizes.d_head);
  architecture.scales_by_layer = says_yes(top, {"scale_attn_by_inverse_layer_idx"}, false);
  architecture.tied = says_yes(top, {"tie_word_embeddings"}, false);
  require_sizes(architecture, top.place());
  architecture.windows = windows_in(said, type.text(), architecture.sizes.n_layers);
  if (family == &family_named("RoBERTa")) begin_behind_padding(top, architecture);
  return architecture;
}

}  // namespace core::transformer
