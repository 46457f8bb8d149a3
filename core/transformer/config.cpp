#include "core/transformer/config.hpp"

#include <array>
#include <initializer_list>

#include "core/error.hpp"
#include "core/text/number.hpp"
#include "core/transformer/families.hpp"

namespace core::transformer {
namespace {

using formats::Json;
using formats::Word;
using KeyNames = std::initializer_list<const char*>;

std::optional<Json> one_of(const Json& top, KeyNames keys) {
  for (const char* key : keys)
    if (auto place = top.member(key); place && !place->is_null()) return place;
  return std::nullopt;
}

std::size_t size_at(const Json& top, KeyNames keys) {
  if (const auto place = one_of(top, keys)) return place->whole(1);
  return top.required(*keys.begin()).whole(1);
}

std::size_t size_or(const Json& top, KeyNames keys, std::size_t otherwise) {
  const auto place = one_of(top, keys);
  return place ? place->whole(1) : otherwise;
}

bool says_yes(const Json& top, KeyNames keys, bool otherwise) {
  const auto place = one_of(top, keys);
  return place ? place->boolean() : otherwise;
}

double number_or(const Json& top, KeyNames keys, double otherwise) {
  const auto place = one_of(top, keys);
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
  const auto place = one_of(top, {"hidden_act", "activation_function", "activation"});
  return place ? place->word(words) : otherwise;
}

void read_scaling(const Json& place, positions::Scaling& scaling) {
  const auto type = one_of(place, {"rope_type", "type"});
  if (!type || type->text() == "default") return;
  if (type->text() == "linear") {
    scaling = {positions::ScalingRule::linear, place.required("factor").number()};
  } else if (type->text() == "llama3") {
    scaling = {positions::ScalingRule::llama3, place.required("factor").number(),
               place.required("low_freq_factor").number(), place.required("high_freq_factor").number(),
               place.required("original_max_position_embeddings").number()};
  } else {
    type->fail("rotary positions of type default, linear or llama3, as others cannot be computed yet");
  }
}

positions::Rotary rotary_in(const Json& top, const Sizes& sizes) {
  positions::Rotary rotary;
  const auto parameters = one_of(top, {"rope_parameters"});
  const Json& place = parameters ? *parameters : top;
  rotary.base = number_or(place, {"rope_theta", "rotary_emb_base"}, 10000);
  const double otherwise = number_or(top, {"partial_rotary_factor", "rotary_pct"}, 1);
  const double part = number_or(place, {"partial_rotary_factor"}, otherwise);
  if (part != 1) rotary.dimensions = static_cast<std::size_t>(part * static_cast<double>(sizes.d_head));
  if (parameters)
    read_scaling(*parameters, rotary.scaling);
  else if (const auto scaling = one_of(top, {"rope_scaling"}))
    read_scaling(*scaling, rotary.scaling);
  return rotary;
}

/// Windows of Mistral, and of Qwen where they are used.
std::vector<std::size_t> windows_in(const Json& top, const std::string& type, std::size_t n_layers) {
  const auto window = one_of(top, {"sliding_window"});
  if (!window || !says_yes(top, {"use_sliding_window"}, type == "mistral")) return {};
  std::vector<std::size_t> windows(n_layers, window->whole(1));
  if (const auto types = one_of(top, {"layer_types"})) {
    const auto each = types->items("a list of kinds of layers");
    for (std::size_t l = 0; l < std::min(n_layers, each.size()); ++l)
      if (each[l].text() != "sliding_attention") windows[l] = 0;
  } else if (type != "mistral") {
    const std::size_t first = size_or(top, {"max_window_layers"}, n_layers);
    for (std::size_t l = 0; l < std::min(first, n_layers); ++l) windows[l] = 0;
  }
  return windows;
}

/// What changes the numbers and is not computed here.
void refuse_what_is_unknown(const Json& top) {
  if (const auto place = one_of(top, {"position_embedding_type"}); place && place->text() != "absolute")
    place->fail("absolute positions, as others of this family cannot be computed yet");
  if (const auto place = one_of(top, {"scale_attn_weights"}); place && !place->boolean())
    place->fail("true, as scores without a scale cannot be computed yet");
  if (const auto place = one_of(top, {"quantization_config"}))
    place->fail("none, as quantised checkpoints are read from GGUF alone",
                place->member("quant_method") ? place->required("quant_method").text() : "one");
  if (const auto place = one_of(top, {"add_cross_attention", "is_encoder_decoder"});
      place && place->boolean())
    place->fail("false, as attention to another text cannot be computed yet");
}

/// Rows of positions up to that of the padding stand for none of the text.
void begin_behind_padding(const Json& top, Architecture& architecture) {
  const auto said = one_of(top, {"pad_token_id"});
  const std::size_t padding = said ? said->whole(0) : 1;
  std::size_t& n_context = architecture.sizes.n_context;
  if (padding >= n_context - 1)
    throw Error(top.place() + "max_position_embeddings: expected more than pad_token_id + 1 = " +
                text::number_text(static_cast<double>(padding) + 1) + ", got " + std::to_string(n_context));
  architecture.first_position = padding + 1;
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
  const std::size_t turned = turned_columns(*architecture.rotary, s.d_head);
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
  architecture.causal = family->causal || says_yes(top, {"is_decoder"}, false);
  if (family->is_rotary) architecture.rotary = rotary_in(top, architecture.sizes);
  architecture.scales_by_layer = says_yes(top, {"scale_attn_by_inverse_layer_idx"}, false);
  architecture.tied = says_yes(top, {"tie_word_embeddings"}, false);
  architecture.windows = windows_in(top, type.text(), architecture.sizes.n_layers);
  require_sizes(architecture, top.place());
  if (family == &family_named("RoBERTa")) begin_behind_padding(top, architecture);
  return architecture;
}

}  // namespace core::transformer
