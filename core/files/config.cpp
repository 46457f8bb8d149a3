#include "core/files/config.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/system/file.hpp"

namespace core::formats::checkpoints {
namespace {

constexpr std::size_t max_config_bytes = std::size_t{1} << 20;
constexpr std::size_t default_layer_count = 256, max_layers = 4096;
constexpr std::size_t default_context = 2048;             // of models without a length limit
constexpr std::size_t max_window = std::size_t{1} << 31;  // longer than any text

using Keys = std::initializer_list<const char*>;
constexpr Keys epsilon_keys{"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon",
                            "norm_eps"};
constexpr Keys kv_head_keys{"num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads",
                            "multi_query_group_num"};
constexpr Keys alibi_keys{"alibi", "use_alibi"};
constexpr Keys window_keys{"sliding_window", "window_size", "local_attention"};
constexpr Keys fraction_keys{"partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"};
constexpr Keys rotary_keys{"rope_theta", "rope_scaling",    "rope_parameters",       "rotary_pct",
                           "rotary_dim", "rotary_emb_base", "partial_rotary_factor", "global_rope_theta"};

/// Returns the first of these members that is present and not null.
std::optional<Json> first_member(const Json& top, Keys keys) {
  for (const char* key : keys)
    if (auto json = top.given(key)) return json;
  return std::nullopt;
}

std::optional<std::size_t> count(const Json& top, Keys keys) {
  const auto json = first_member(top, keys);
  if (!json || json->is_list()) return std::nullopt;  // image models list one number per stage
  const std::uint64_t number = json->whole(1);
  if (number > max_count)
    json->fail("a whole number from 1 to " + std::to_string(max_count), std::to_string(number));
  return number;
}

std::optional<double> number(const Json& top, Keys keys) {
  const auto json = first_member(top, keys);
  return json && json->is_number() ? std::optional(json->number()) : std::nullopt;
}

std::optional<bool> boolean(const Json& top, Keys keys) {
  const auto json = first_member(top, keys);
  return json && json->is_boolean() ? std::optional(json->boolean()) : std::nullopt;
}

bool is_true(const Json& top, Keys keys) {
  return boolean(top, keys).value_or(false);
}

std::string text_member(const Json& top, const char* key) {
  const auto json = top.member(key);
  return json && json->is_text() ? json->text() : "";
}

/// Returns the first of these members, if it is an object.
std::optional<Json> object(const Json& top, Keys keys) {
  const auto json = first_member(top, keys);
  return json && json->is_object() ? json : std::nullopt;
}

std::string parse_model_type(const Json& top) {
  if (const std::string type = text_member(top, "model_type"); !type.empty()) return type;
  const auto architectures = top.member("architectures");
  const auto first = architectures ? architectures->first() : std::nullopt;
  return first && first->is_text() ? text::lower(first->text()) : "";
}

ConfigHeads parse_heads(const Json& top) {
  ConfigHeads heads;
  heads.n = count(top, {"n_head", "num_attention_heads", "num_heads", "n_heads", "attention_heads"});
  heads.encoder_heads = count(top, {"encoder_attention_heads"});
  heads.decoder_heads = count(top, {"decoder_attention_heads"});
  heads.kv_heads = count(top, kv_head_keys);
  if (const auto many = boolean(top, {"multi_query"}); many && !is_true(top, {"new_decoder_architecture"}))
    heads.kv_heads = *many ? std::optional<std::size_t>(1) : heads.n;
  heads.width = count(top, {"head_dim", "d_kv", "d_head"});
  if (const auto attention = object(top, {"attn_config"}))
    if (const auto n = count(*attention, {"kv_n_heads"})) heads.kv_heads = n;
  return heads;
}

ConfigScale parse_scale(const Json& top) {
  ConfigScale scale;
  if (const auto json = first_member(top, {"scale_attn_weights"})) scale.scaled = json->boolean();
  if (const auto json = first_member(top, {"scale_attn_by_inverse_layer_idx"}))
    scale.by_layer = json->boolean();
  if (const auto json = first_member(top, {"query_pre_attn_scalar"})) scale.scalar = json->number();
  if (const auto json = first_member(top, {"attention_multiplier"})) scale.factor = json->number();
  if (const auto attention = object(top, {"attn_config"}))
    if (const auto json = first_member(*attention, {"softmax_scale"})) scale.factor = json->number();
  if (const auto terms = first_member(top, {"pos_att_type"}); terms && is_true(top, {"relative_attention"})) {
    const std::string words = terms->is_text() ? terms->text() : json_text(*terms);
    scale.relative_terms = (words.find("c2p") != words.npos) + (words.find("p2c") != words.npos);
  }
  return scale;
}

std::size_t layer_count(const Json& top) {
  return std::min(count(top, {"num_hidden_layers", "n_layers"}).value_or(default_layer_count), max_layers);
}

/// Returns for each layer whether it is not an exception.
std::vector<bool> layers_except(const Json& top, const LayerInterval& exceptions) {
  std::size_t n = exceptions.n;
  if (const auto specified = number(top, {exceptions.key}); specified && *specified >= 1)
    n = count(top, {exceptions.key}).value_or(n);
  std::vector<bool> result(layer_count(top), true);
  for (std::size_t k = exceptions.from_first ? 0 : n - 1; k < result.size(); k += n) result[k] = false;
  return result;
}

/// Returns which layers have the window: by "layer_types", GPT-Neo's "attention_layers" or the family.
std::vector<bool> windowed_layers(const Json& top, const WindowRule& rule) {
  const auto types = first_member(top, {"layer_types", "attention_layers"});
  if (types && types->is_list()) {
    std::vector<bool> windowed;
    for (const Json& each : types->items_or_empty("a list"))
      windowed.push_back(each.is_text() && (each.text().find("sliding") != std::string::npos ||
                                            each.text().find("local") != std::string::npos));
    return windowed;
  }
  if (rule.full.n > 0) return layers_except(top, rule.full);
  if (rule.use != WindowUse::if_on) return {};
  const double first =
      number(top, {"max_window_layers"}).value_or(static_cast<double>(rule.n_first_full_layers));
  if (first == 0) return {};
  std::vector<bool> windowed(layer_count(top));
  for (std::size_t k = 0; k < windowed.size(); ++k) windowed[k] = static_cast<double>(k) >= first;
  return windowed;
}

/// Returns the number of keys in the sliding window, in layers that have one.
std::optional<std::size_t> parse_window(const Json& top, const WindowRule& rule) {
  if (rule.width > 0 && !top.member("sliding_window")) return rule.width;
  const auto window = first_member(top, window_keys);
  const bool is_used = rule.use == WindowUse::always ||
                       boolean(top, {"use_sliding_window"}).value_or(rule.use == WindowUse::unless_off);
  if (!window || !window->is_whole() || !is_used) return std::nullopt;
  return std::min<std::size_t>(window->whole(0), max_window);
}

/// Returns which layers apply RoPE: by the 0s and 1s of "no_rope_layers", or by the family.
std::vector<bool> rotated_layers(const Json& top, const Family& family, const LayerPattern& layers) {
  if (const auto list = top.member("no_rope_layers"); list && list->is_list()) {
    std::vector<bool> rotated;
    for (const Json& each : list->items_or_empty("a list")) rotated.push_back(each.number() != 0);
    if (!rotated.empty()) return rotated;
  }
  if (family.no_rotary.n > 0) return layers_except(top, family.no_rotary);
  const bool are_windowed = family.rotary_layers == RotaryLayers::windowed ||
                            (family.rotary_layers == RotaryLayers::windowed_if_any && layers.window);
  return are_windowed ? layers.windowed : std::vector<bool>();
}

/// Returns LongRoPE's factors for short and long texts, [2, n], or nothing if either is missing.
std::optional<positions::SharedMatrix> long_factors(const Json& json) {
  const auto short_factors = json.given("short_factor"), long_factors = json.given("long_factor");
  if (!short_factors || !long_factors) return std::nullopt;
  const arma::mat of_short = short_factors->row(), of_long = long_factors->row();
  if (of_short.n_cols != of_long.n_cols) long_factors->fail("as many factors as short_factor has");
  return arma::mat(arma::join_cols(of_short, of_long));
}

/// Reads the scaling rule of an object, with transformers' defaults for missing values.
///
/// Source: transformers 5, modeling_rope_utils.py.
void read_scaling(const Json& top, const Json& all, const Json& json, ConfigRotary& rotary) {
  using enum positions::ScalingRule;
  std::string rule = text_member(json, "rope_type");
  if (rule.empty()) rule = text_member(json, "type");
  if (rule.empty() || rule == "default") return;
  // The first Phi-3 configurations call LongRoPE "su", or "yarn" with a short_factor.
  const bool is_long = rule == "longrope" || rule == "su" || (rule == "yarn" && json.member("short_factor"));
  const auto longest = number(top, {"max_position_embeddings"});
  auto original = number(top, {"original_max_position_embeddings"});
  if (!original) original = number(json, {"original_max_position_embeddings"});
  if (!original) original = longest;
  auto factor = number(json, {"factor"});
  if (!factor && longest && original && (is_long || (rule == "yarn" && json.member("factor"))))
    factor = *longest / *original;
  const auto attention = number(json, {"attention_factor"});
  const auto low = number(json, {"low_freq_factor"}), high = number(json, {"high_freq_factor"});
  positions::Scaling scaling;
  scaling.factor = factor.value_or(1);
  scaling.original = original.value_or(0);
  if (rule == "linear" && factor) {
    scaling = {linear, *factor};
  } else if (rule == "llama3" && factor && low && high && original) {
    scaling.rule = llama3, scaling.low = *low, scaling.high = *high;
  } else if (rule == "dynamic" && factor && longest) {
    scaling.rule = dynamic, scaling.original = *longest;
  } else if (is_long && factor && original) {
    scaling.rule = longrope, scaling.factor = 1;
    if (!json.member("short_mscale")) scaling.factors = long_factors(json);  // Phi-3.5-MoE's own rule
    const double usual = *factor <= 1 ? 1 : std::sqrt(1 + std::log(*factor) / std::log(*original));
    scaling.attention = attention.value_or(usual);
    if (!scaling.factors) scaling.rule = none;
  } else if (rule == "yarn" && factor && original) {
    scaling.rule = yarn;
    const double fast = number(json, {"beta_fast"}).value_or(0),
                 slow = number(json, {"beta_slow"}).value_or(0);
    scaling.high = fast != 0 ? fast : positions::yarn_beta_fast, scaling.low = slow != 0 ? slow : 1;
    const double scale = number(json, {"mscale"}).value_or(0),
                 scale_all = number(json, {"mscale_all_dim"}).value_or(0);
    const double usual = scale != 0 && scale_all != 0
                             ? positions::yarn_attention_factor(*factor, scale) /
                                   positions::yarn_attention_factor(*factor, scale_all)
                             : positions::yarn_attention_factor(*factor);
    scaling.attention = attention.value_or(usual);
    scaling.truncate = boolean(all, {"truncate"}).value_or(true);
  }
  if (scaling.rule == none)
    rotary.unsupported_scaling = rule;
  else
    rotary.scaling = scaling;
}

/// Reads base, rotated columns and pairs from one object: a configuration or its "rope_parameters".
void read_rotation(const Json& json, ConfigRotary& rotary) {
  if (const auto base = number(json, {"rope_theta", "rotary_emb_base", "global_rope_theta"}))
    rotary.base = base;
  if (const auto part = number(json, fraction_keys)) {
    if (!(*part >= 0 && *part <= 1)) first_member(json, fraction_keys)->fail("a part of the columns, 0 … 1");
    rotary.fraction = part;
  }
  if (const auto n = first_member(json, {"rotary_dim"}); n && n->is_whole()) rotary.dimensions = n->whole(0);
  if (const auto pairs = boolean(json, {"rotary_emb_interleaved", "rope_interleaved"}))
    rotary.interleaved = pairs;
}

void read_rotary(const Json& top, const Family& family, ConfigPositions& p) {
  read_rotation(top, p.default_rotary);
  if (const auto attention = object(top, {"attn_config"})) read_rotation(*attention, p.default_rotary);
  const ConfigRotary unscaled = p.default_rotary;
  if (const auto more = object(top, {"rope_parameters", "rope_scaling"})) {
    const auto sliding = object(*more, {"sliding_attention"}), full = object(*more, {"full_attention"});
    const Json& json = full ? *full : *more;
    read_rotation(json, p.default_rotary);
    read_scaling(top, *more, json, p.default_rotary);
    if (family.rotary.scales_only_full_attention && top.member("rope_scaling")) p.window_rotary = unscaled;
    if (sliding) {
      p.window_rotary = unscaled;
      read_rotation(*sliding, *p.window_rotary);
      read_scaling(top, *more, *sliding, *p.window_rotary);
    }
  }
  if (const auto base = number(top, {"rope_local_base_freq", "local_rope_theta"}); base && !p.window_rotary) {
    p.window_rotary = unscaled;
    p.window_rotary->base = base;
  }
}

ConfigPositions parse_positions(const Json& top, const Family& family) {
  ConfigPositions positions;
  const std::string type = text::lower(text_member(top, "position_embedding_type"));
  positions.rotary = type.starts_with("rot") || type.starts_with("rope") || first_member(top, rotary_keys);
  positions.relative = type.starts_with("relative") || is_true(top, {"relative_attention"}) ||
                       first_member(top, {"relative_attention_num_buckets"});
  positions.max_distance = count(top, {"relative_attention_max_distance"});
  if (type == "alibi") positions.alibi = true;
  if (const auto alibi = boolean(top, alibi_keys)) positions.alibi = alibi;
  if (family.positions == PositionKind::rotary_or_alibi) {
    positions.rotary = first_member(top, {"max_position_embeddings"}).has_value();
    positions.alibi = !positions.rotary;
  }
  positions.has_qk_norm = is_true(top, {"use_qk_norm", "qk_layernorm", "qk_norm"});
  positions.has_clipped_qkv = first_member(top, {"clip_qkv"}).has_value();
  positions.layers.window = parse_window(top, family.window);
  positions.layers.windowed = windowed_layers(top, family.window);
  if (const auto attention = object(top, {"attn_config"})) {
    if (const auto alibi = boolean(*attention, {"alibi"})) positions.alibi = alibi;
    positions.alibi_bias_max = number(*attention, {"alibi_bias_max"}).value_or(positions.alibi_bias_max);
    positions.rotary = positions.rotary || is_true(*attention, {"rope"});
    positions.has_qk_norm = positions.has_qk_norm || is_true(*attention, {"qk_ln", "qk_gn"});
    positions.has_clipped_qkv = positions.has_clipped_qkv || first_member(*attention, {"clip_qkv"});
  }
  read_rotary(top, family, positions);
  positions.layers.rotated = rotated_layers(top, family, positions.layers);
  return positions;
}

/// Returns the family that defines the meaning of keys; unlisted Qwen models also have Qwen's windows.
const Family& family_for_keys(const Config& config) {
  static constexpr Family unknown{.name = "", .types = ""};
  if (config.family) return *config.family;
  return config.model_type.starts_with("qwen") ? *family_of_type("qwen2_moe") : unknown;
}

/// Whether the implementation reads "do_layer_norm_before".
bool may_norm_after(const Family& family) {
  return *family.full_model && *family.names.of(TensorRole::output_projection);
}

/// Implementations that do not read the rotated fraction rotate all columns, and fail with scaling.
void drop_fraction(ConfigRotary& rotary) {
  if (rotary.scaling.rule != positions::ScalingRule::none)
    rotary.failing_fraction = rotary.fraction.value_or(1);
  rotary.fraction.reset(), rotary.dimensions.reset();
}

/// Drops what the implementation of the family does not read, and names the keys that say something else than
/// it does. Of families without whole models only the fraction is known to be unread.
void drop_unread(const Json& top, const Family& family, Config& config) {
  ConfigPositions& positions = config.positions;
  std::vector<Json> places{top};
  for (const char* key : {"attn_config", "rope_parameters", "rope_scaling"})
    if (const auto json = object(top, {key})) places.push_back(*json);
  const auto add_keys = [&](bool is_other, Keys keys) {
    for (const char* key : is_other ? keys : Keys())
      if (std::ranges::any_of(places, [&](const Json& json) { return json.given(key).has_value(); }))
        config.unread_keys.insert(key);
  };
  if (!family.reads_rotary_fraction) {
    ConfigRotary& rotary = positions.default_rotary;
    add_keys(rotary.fraction.value_or(1) != 1, fraction_keys);
    add_keys(rotary.dimensions.has_value(), {"rotary_dim"});
    drop_fraction(rotary);
    if (positions.window_rotary) drop_fraction(*positions.window_rotary);
  }
  if (!*family.full_model) return;
  if (!family.reads_kv_heads) {
    const auto dropped = std::exchange(config.heads.kv_heads, {});
    add_keys(dropped && dropped != config.heads.n, kv_head_keys);
  }
  if (!family.reads_alibi) {
    const bool has_alibi = family.positions == PositionKind::alibi;
    const auto dropped = std::exchange(positions.alibi, {});
    add_keys(dropped.value_or(has_alibi) != has_alibi, alibi_keys);
  }
  if (!family.window.in_full_models) {
    add_keys(positions.layers.window.value_or(0) > 0, window_keys);
    positions.layers.window.reset(), positions.layers.windowed.clear();
  }
  if (family.positions != PositionKind::rotary) add_keys(std::exchange(positions.rotary, false), rotary_keys);
}

Config parse_config_object(const Json& top, const char* part, const std::string& type_override,
                           const Family* enclosing) {
  Config config;
  config.part = part;
  config.model_type = parse_model_type(top);
  config.type_override = type_override;
  config.family = family_of_type(type_override.empty() ? config.model_type : type_override);
  config.is_decoder = boolean(top, {"is_decoder"});
  if (is_true(top, {"causal"})) config.is_decoder = true;
  config.heads = parse_heads(top);
  config.scale = parse_scale(top);
  config.softcap = number(top, {"attn_logit_softcapping"});
  config.epsilon = number(top, epsilon_keys);
  config.positions = parse_positions(top, family_for_keys(config));
  if (const Family* family = config.family ? config.family : enclosing) {
    config.is_post_norm = may_norm_after(*family) && !boolean(top, {"do_layer_norm_before"}).value_or(true);
    drop_unread(top, *family, config);
  }
  if (*part) return config;  // nested parts do not matter
  for (const char* key : {"text_config", "vision_config", "audio_config", "encoder", "decoder"})
    if (const auto json = object(top, {key}))
      config.parts.push_back(parse_config_object(*json, key, type_override, config.family));
  return config;
}

std::size_t size_at(const Json& top, Keys keys) {
  if (const auto json = first_member(top, keys)) return json->whole(1);
  return top.required(*keys.begin()).whole(1);
}

std::size_t size_or(const Json& top, Keys keys, std::size_t fallback) {
  const auto json = first_member(top, keys);
  return json ? json->whole(1) : fallback;
}

bool boolean_or(const Json& top, Keys keys, bool fallback) {
  const auto json = first_member(top, keys);
  return json ? json->boolean() : fallback;
}

Sizes parse_sizes(const Json& top, const Config& config) {
  const Family& family = *config.family;
  Sizes sizes;
  sizes.n_layers = size_at(top, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  sizes.d_model = size_at(top, {"hidden_size", "n_embd", "dim", "d_model", "emb_dim"});
  sizes.n_heads = size_at(top, {"num_attention_heads", "n_head", "n_heads", "num_heads"});
  sizes.kv_heads = config.heads.kv_heads.value_or(sizes.n_heads);
  sizes.d_head = size_or(top, {"head_dim"}, sizes.d_model / sizes.n_heads);
  const std::size_t four = size_or(top, {"expansion_ratio"}, 4) * sizes.d_model;
  sizes.d_hidden =
      size_or(top, {"ffn_hidden_size", "intermediate_size", "n_inner", "hidden_dim", "ffn_dim"}, four);
  sizes.n_vocabulary = size_at(top, {"vocab_size"});
  if (*family.names.of(TensorRole::embedding_projection))
    sizes.d_embedding = size_or(top, {"embedding_size", "word_embed_proj_dim"}, sizes.d_model);
  const Keys tokens{"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"};
  const bool has_limit = family.positions != PositionKind::alibi;
  sizes.n_context = has_limit ? size_at(top, tokens) : size_or(top, tokens, default_context);
  return sizes;
}

std::optional<Activation> parse_activation(const Json& top) {
  using enum Activation;
  static constexpr std::array words{Word{"gelu", gelu_erf},
                                    Word{"gelu_python", gelu_erf},
                                    Word{"gelu_new", gelu_tanh},
                                    Word{"gelu_fast", gelu_tanh},
                                    Word{"gelu_pytorch_tanh", gelu_tanh},
                                    Word{"quick_gelu", quick_gelu},
                                    Word{"relu", relu},
                                    Word{"relu2", relu_squared},
                                    Word{"silu", silu},
                                    Word{"swish", silu},
                                    Word{"xielu", xielu}};
  const auto json =
      first_member(top, {"hidden_act", "activation_function", "activation", "hidden_activation"});
  if (const auto is_gelu = boolean(top, {"gelu_activation"}); is_gelu && !json)
    return *is_gelu ? gelu_erf : relu;
  return json ? std::optional(json->word(words)) : std::nullopt;
}

/// Returns whether a quantization_config is that of FP8 weights with scales, which are read as they are.
bool is_fp8(const Json& quantization) {
  const std::string method = text_member(quantization, "quant_method");
  return method == "fp8" || method == "fbgemm_fp8" ||
         (method == "compressed-tensors" && text_member(quantization, "format") == "float-quantized");
}

/// Throws core::Error for unsupported settings that change the numbers of a whole model.
void refuse_in_full_model(const Json& top, const Family& family) {
  const bool has_own_norms = family.norm_over == NormScope::own_head,
             has_narrow_embeddings = *family.names.of(TensorRole::embedding_projection),
             has_rms_norms = family.has_head_norms && family.norm.kind == NormKind::rms;
  if (const auto json = first_member(top, {"position_embedding_type"}); json && json->text() != "absolute")
    json->fail("absolute positions, as others of this family cannot be computed yet");
  const std::pair<const char*, bool> usual[]{{"do_layer_norm_before", true},
                                             {"apply_residual_connection_post_layernorm", false},
                                             {"use_qk_norm", false},
                                             {"qk_layernorm", false},
                                             {"pre_norm", false},
                                             {"add_cross_attention", false},
                                             {"is_encoder_decoder", false}};
  for (const auto& [key, value] : usual) {
    const std::string_view word = key;
    if ((word == "do_layer_norm_before" && may_norm_after(family)) ||
        (word.starts_with("use_qk") && (has_own_norms || has_rms_norms)) ||
        (word.starts_with("qk_") && has_own_norms))
      continue;
    if (const auto json = first_member(top, {key}); json && json->boolean() != value)
      json->fail(value ? "true, as models without it cannot be computed yet"
                       : "false, as models with it cannot be computed yet");
  }
  for (const char* key : {"num_hidden_groups", "inner_group_num"})
    if (const auto json = first_member(top, {key}); json && json->whole(1) != 1)
      json->fail("1, as several groups of layers cannot be computed yet");
  const auto attention = object(top, {"attn_config"});
  for (const auto& json :
       {first_member(top, {"clip_qkv"}), attention ? first_member(*attention, {"clip_qkv"}) : std::nullopt})
    if (json) json->fail("none, as clipped queries, keys and values cannot be computed yet");
  if (attention && is_true(*attention, {"qk_ln"}))
    attention->required("qk_ln").fail("false, as models with it cannot be computed yet");
  for (const char* key : {"word_embed_proj_dim", "embedding_size"})
    if (const auto json = first_member(top, {key});
        json && !has_narrow_embeddings && json->whole(1) != top.required("hidden_size").whole(1))
      json->fail("hidden_size, as embeddings of another width cannot be computed yet");
  if (const auto json = first_member(top, {"quantization_config"}); json && !is_fp8(*json))
    json->fail("none or FP8 weights with scales, as other quantised checkpoints are read from GGUF alone",
               json->member("quant_method") ? json->required("quant_method").text() : "one");
}

/// Reads the mixture of experts; empty for a family without one.
Experts parse_experts(const Json& top, const Config& config) {
  if (!*config.family->names.of(TensorRole::router)) return {};
  if (const auto json = first_member(top, {"mlp_only_layers"});
      json && !json->items_or_empty("a list").empty())
    json->fail("none, as layers of two kinds cannot be computed yet");
  if (const auto json = first_member(top, {"decoder_sparse_step"}); json && json->whole(1) != 1)
    json->fail("1, as layers of two kinds cannot be computed yet");
  Experts experts;
  experts.n = size_at(top, {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"});
  experts.n_used = size_at(top, {"num_experts_per_tok", "moe_k"});
  experts.d_hidden = config.family->has_narrow_experts
                         ? size_or(top, {"moe_intermediate_size"}, config.sizes.d_hidden)
                         : config.sizes.d_hidden;
  if (config.family->has_shared_expert) {
    const Keys counts{"n_shared_experts", "moe_num_shared_experts"};
    const auto n_shared = first_member(top, counts);
    experts.d_shared =
        n_shared ? n_shared->whole(0) * experts.d_hidden : size_at(top, {"shared_expert_intermediate_size"});
  }
  experts.normalized = boolean(top, {"norm_topk_prob"}).value_or(false) || config.family->normalizes_experts;
  experts.routing = config.family->routing;
  experts.factor = number(top, {"routed_scaling_factor"}).value_or(1);
  if (const auto first = first_member(top, {"first_k_dense_replace", "moe_layer_start_index"});
      first && *config.family->names.of(TensorRole::gate))
    experts.first_layer = first->whole(0);
  for (const char* key : {"n_group", "topk_group", "moe_layer_interval"})
    if (const auto json = first_member(top, {key}); json && json->whole(0) > 1)
      json->fail("1, as others cannot be computed yet");
  if (const auto end = first_member(top, {"moe_layer_end_index"});
      end && end->is_whole() && end->whole(0) + 1 < config.sizes.n_layers)
    end->fail("the last layer, as an MLP behind experts cannot be computed yet");
  for (const std::size_t size : {experts.n, experts.d_hidden, experts.d_shared})
    if (size > max_count) top.fail(fmt::format("at most {} experts and hidden numbers", max_count));
  if (experts.n_used > experts.n)
    first_member(top, {"num_experts_per_tok", "moe_k"})
        ->fail(fmt::format("at most the {} experts", experts.n));
  return experts;
}

/// Reads the factors of embeddings, residual additions and logits, and the softcap of the logits.
void read_factors(const Json& top, Config& config) {
  if (const auto by = number(top, {"embedding_multiplier"})) config.embedding_factor = *by;
  const bool is_scaled = config.family->scales_embeddings && boolean(top, {"scale_embedding"}).value_or(true);
  if (is_scaled) config.embedding_factor = std::sqrt(static_cast<double>(config.sizes.d_model));
  if (const auto by = number(top, {"residual_multiplier"})) config.residual_factor = *by;
  if (const auto by = number(top, {"logit_scale"})) config.logit_factor = *by;
  if (const auto by = number(top, {"logits_scaling"})) config.logit_factor = 1 / *by;
  config.logit_softcap = number(top, {"final_logit_softcapping"});
}

/// Throws core::Error for a scaling rule that is not supported or lacks numbers.
[[noreturn]] void refuse_scaling(const Json& top, const std::string& rule) {
  const Json json = *first_member(top, {"rope_parameters", "rope_scaling"});
  const std::string all = " linear llama3 yarn dynamic ";
  if (text::has_word(all, rule)) json.required("factor").number();
  if (rule == "llama3")
    for (const char* key : {"low_freq_factor", "high_freq_factor"}) json.required(key).number();
  if (rule == "longrope" && json.member("short_mscale"))
    json.required("short_mscale").fail("none, as LongRoPE with it cannot be computed yet");
  if (rule == "longrope")
    for (const char* key : {"short_factor", "long_factor"}) json.required(key).row();
  first_member(json, {"rope_type", "type"})
      ->fail(
          "rotary positions of type default, linear, llama3, yarn, dynamic or longrope, as others cannot be "
          "computed yet");
}

/// Returns the params.json of Meta's and Mistral's own checkpoints as a config.json of transformers, or
/// nothing if it is another file. Source: github.com/meta-llama/llama-models, models/llama3/model.py.
std::optional<Json> config_of_params(const Json& params, const std::string& path) {
  if (!params.is_object() || !params.member("dim") || !params.member("n_heads")) return std::nullopt;
  std::string text =
      params.given("sliding_window") ? R"({"model_type": "mistral")" : R"({"model_type": "llama")";
  if (!params.given("rope_theta")) text += R"(, "rope_theta": 10000.0)";  // a constant of their first code
  if (is_true(params, {"use_scaled_rope"}))
    text +=
        R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";
  for (const auto& [key, value] : params.members())
    if (key != "model_type" && key != "rope_scaling")
      text += ", " + json_quoted(key) + ": " + json_text(value);
  return parse_json(text + "}", path);
}

bool matches_prefix(const Config& part, const std::string& prefix) {
  const auto has = [&](std::string_view word) { return prefix.find(word) != prefix.npos; };
  if (part.part == "vision_config") return has("vision") || has("visual");
  if (part.part == "text_config") return has("text_model") || has("language_model");
  if (part.part == "audio_config") return has("audio");
  return has(part.part);
}

}  // namespace

positions::Rotary LayerRotary::of_width(std::size_t d_head, const std::string& place) const {
  positions::Rotary result = rotary;
  if (!result.dimensions && fraction != 1)
    result.dimensions = static_cast<std::size_t>(static_cast<double>(d_head) * fraction);
  if (result.dimensions == d_head) result.dimensions.reset();
  const std::size_t n_rotated = result.dimensions.value_or(d_head);
  if (n_rotated < 2 || n_rotated > d_head || n_rotated % 2 != 0)
    throw Error(fmt::format("{}expected an even number of rotated columns, from 2 to {} of a head, got {}",
                            place, d_head, n_rotated));
  if (const auto& factors = result.scaling.factors; factors && factors->n_cols() != n_rotated / 2)
    throw Error(fmt::format("{}short_factor: expected a factor for each of {} pairs, got {}", place,
                            n_rotated / 2, factors->n_cols()));
  return result;
}

LayerRotary ConfigRotary::rotary(const RotaryRule& rule) const {
  LayerRotary result{{}, fraction.value_or(rule.fraction)};
  if (interleaved.value_or(rule.interleaved)) result.rotary.pairs = positions::Pairs::neighbors;
  result.rotary.base = base.value_or(result.rotary.base);
  result.rotary.dimensions = dimensions;
  result.rotary.scaling = scaling;
  return result;
}

Config parse_config(const Json& top, const std::string& type_override) {
  if (!top.is_object()) top.fail("an object");
  return parse_config_object(top, "", type_override, nullptr);
}

Config full_model_config(const Json& top) {
  const Json type = top.required("model_type");
  const Family* family = nullptr;
  for (const Family& each : families())
    if (*each.full_model && text::has_word(each.types, type.text())) family = &each;
  if (!family)
    type.fail("a model type whose whole models are supported, which docs/models-and-files.md lists");
  refuse_in_full_model(top, *family);
  Config config = parse_config_object(top, "", "", nullptr);
  config.sizes = parse_sizes(top, config);
  config.activation = parse_activation(top);
  // Here a value of the wrong type is an error; for a single layer it is ignored.
  config.is_decoder = boolean_or(top, {"is_decoder"}, false) || is_true(top, {"causal"});
  if (const auto json = first_member(top, epsilon_keys)) config.epsilon = json->number();
  config.is_post_norm = !boolean_or(top, {"do_layer_norm_before"}, true);
  if (family->reads_parallel_mlp) config.parallel = boolean(top, {"use_parallel_residual", "parallel_attn"});
  read_factors(top, config);
  config.experts = parse_experts(top, config);
  config.has_tied_embeddings = boolean_or(top, {"tie_word_embeddings"}, false);
  if (const auto row = first_member(top, {"pad_token_id"}); row && family->positions_follow_padding)
    config.padding_token = row->whole(0);
  if (family->positions == PositionKind::rotary &&
      !config.positions.default_rotary.unsupported_scaling.empty())
    refuse_scaling(top, config.positions.default_rotary.unsupported_scaling);
  return config;
}

std::filesystem::path folder_of(const std::filesystem::path& checkpoint) {
  return system::is_folder(checkpoint) ? checkpoint : checkpoint.parent_path();
}

std::optional<Json> sibling_json(const std::filesystem::path& checkpoint, const char* name) {
  const auto path = folder_of(checkpoint) / name;
  if (!system::is_file(path)) return std::nullopt;
  return parse_json(system::read_file(path, max_config_bytes), path.string());
}

std::optional<Json> sibling_config(const std::filesystem::path& checkpoint) {
  if (auto config = sibling_json(checkpoint, "config.json")) return config;
  constexpr const char* of_meta = "params.json";
  const auto params = sibling_json(checkpoint, of_meta);
  return params ? config_of_params(*params, (folder_of(checkpoint) / of_meta).string()) : std::nullopt;
}

const Config& config_for_layer(const Config& config, const std::string& prefix) {
  const auto part =
      std::ranges::find_if(config.parts, [&](const Config& each) { return matches_prefix(each, prefix); });
  if (part != config.parts.end()) return *part;
  const auto text = std::ranges::find(config.parts, std::string("text_config"), &Config::part);
  return !config.heads.n && text != config.parts.end() ? *text : config;
}

}  // namespace core::formats::checkpoints
