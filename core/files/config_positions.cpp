#include <algorithm>

#include "core/base/text.hpp"
#include "core/files/config_keys.hpp"

namespace core::formats::checkpoints {
namespace {

constexpr std::size_t usual_layers = 256, most_layers = 4096;
constexpr std::size_t usual_window = 4096;                    // of Mistral
constexpr std::size_t longest_window = std::size_t{1} << 31;  // all longer ones show all of any text alike
constexpr double usual_full_layers = 28;                      // of Qwen, before those with a window

bool is_named(std::string_view words, const std::string& word) {
  return !word.empty() && words.find(" " + word + " ") != words.npos;
}

/// By layer whether it is not every nth one, counted from 1; or, counted from 0, only those that are not.
std::vector<bool> but_every(const Json& top, std::size_t n, std::size_t first) {
  const std::size_t said = count(top, {"num_hidden_layers", "n_layers"}).value_or(usual_layers);
  std::vector<bool> result(std::min(said, most_layers), true);
  if (n > 0)
    for (std::size_t k = first; k < result.size(); k += n) result[k] = false;
  return result;
}

/// Which layers have the window: "layer_types", GPT-Neo's "attention_layers", or what older configurations
/// of a type left to its program.
std::vector<bool> windowed_layers(const Json& top, const std::string& type) {
  const auto types = any_member(top, {"layer_types", "attention_layers"});
  if (types && types->is_list()) {
    std::vector<bool> windowed;
    for (const Json& each : types->items_if_any("a list"))
      windowed.push_back(each.is_text() && (each.text().find("sliding") != std::string::npos ||
                                            each.text().find("local") != std::string::npos));
    return windowed;
  }
  if (is_named(" gemma2 gpt_oss ", type)) return but_every(top, 2, 1);
  if (is_named(" gemma3 gemma3_text cohere2 ", type)) {
    const auto every = number(top, {"sliding_window_pattern"});
    const std::size_t n = every && *every >= 1 ? count(top, {"sliding_window_pattern"}).value_or(1)
                                               : (type == "cohere2" ? 4 : 6);
    return but_every(top, n, n - 1);
  }
  if (type == "modernbert") return but_every(top, count(top, {"global_attn_every_n_layers"}).value_or(3), 0);
  const auto said = number(top, {"max_window_layers"});
  if (type.starts_with("qwen") && (said || is_named(" qwen2 qwen3 ", type))) {
    const double first = said.value_or(usual_full_layers);
    std::vector<bool> windowed = but_every(top, 0, 0);
    for (std::size_t k = 0; k < windowed.size() && double(k) < first; ++k) windowed[k] = false;
    return windowed;
  }
  return {};
}

/// Keys that a query sees at most, in layers with a window; as transformers takes what is not said.
std::optional<std::size_t> window_in(const Json& top, const std::string& type) {
  if (type == "mistral" && !top.member("sliding_window")) return usual_window;
  const auto window = any_member(top, {"sliding_window", "window_size", "local_attention"});
  if (!window || !window->is_whole()) return std::nullopt;
  const auto used = top.member("use_sliding_window");
  const bool is_said = used && used->is_boolean();
  const bool is_used =
      type == "mistral" || (is_said ? used->boolean() : !type.starts_with("qwen") && type != "smollm3");
  if (!is_used) return std::nullopt;
  return std::min<std::size_t>(window->whole(0), longest_window);
}

/// Which layers turn: those of a list of 0 and 1, or, of types whose other layers know no positions, those
/// with a window.
std::vector<bool> turning_layers(const Json& top, const std::string& type, const ConfigPositions& p) {
  if (const auto list = top.member("no_rope_layers"); list && list->is_list()) {
    std::vector<bool> turning;
    for (const Json& each : list->items_if_any("a list")) turning.push_back(each.number() != 0);
    if (!turning.empty()) return turning;
  }
  if (type == "smollm3") {
    const std::size_t n = count(top, {"no_rope_layer_interval"}).value_or(4);
    return but_every(top, n, n - 1);
  }
  if (type == "cohere2" || (type == "exaone4" && p.window)) return p.windowed;
  return {};
}

void read_scaling(const Json& place, ConfigRotary& rotary) {
  std::string rule = text_of(place, "rope_type");
  if (rule.empty()) rule = text_of(place, "type");
  const auto factor = number(place, {"factor"});
  if (rule.empty() || rule == "default") return;
  const auto low = number(place, {"low_freq_factor"}), high = number(place, {"high_freq_factor"}),
             original = number(place, {"original_max_position_embeddings"});
  if (rule == "linear" && factor)
    rotary.scaling = {positions::ScalingRule::linear, *factor};
  else if (rule == "llama3" && factor && low && high && original)
    rotary.scaling = {positions::ScalingRule::llama3, *factor, *low, *high, *original};
  else
    rotary.other_scaling = rule;
}

/// What one object says: a configuration, or its "rope_parameters".
void read_turns(const Json& place, ConfigRotary& rotary) {
  if (const auto base = number(place, {"rope_theta", "rotary_emb_base", "global_rope_theta"}))
    rotary.base = base;
  const Keys fractions{"partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"};
  if (const auto part = number(place, fractions)) {
    if (!(*part >= 0 && *part <= 1)) any_member(place, fractions)->fail("a part of the columns, 0 … 1");
    rotary.fraction = part;
  }
  if (const auto n = any_member(place, {"rotary_dim"}); n && n->is_whole()) rotary.dimensions = n->whole(0);
  if (const auto pairs = any_member(place, {"rotary_emb_interleaved", "rope_interleaved"});
      pairs && pairs->is_boolean())
    rotary.neighbours = pairs->boolean();
}

void read_rotary(const Json& top, ConfigPositions& p) {
  read_turns(top, p.turns);
  if (const auto attention = top.member("attn_config"); attention && attention->is_object())
    read_turns(*attention, p.turns);
  const ConfigRotary unscaled = p.turns;
  const auto more = any_member(top, {"rope_parameters", "rope_scaling"});
  if (more && more->is_object()) {
    const auto sliding = more->member("sliding_attention"), full = more->member("full_attention");
    const bool by_layer = (sliding && sliding->is_object()) || (full && full->is_object());
    const Json& place = by_layer && full && full->is_object() ? *full : *more;
    read_turns(place, p.turns);
    read_scaling(place, p.turns);
    if (by_layer && sliding && sliding->is_object()) {
      p.turns_in_window = unscaled;
      read_turns(*sliding, *p.turns_in_window);
      read_scaling(*sliding, *p.turns_in_window);
    }
  }
  if (const auto base = number(top, {"rope_local_base_freq", "local_rope_theta"});
      base && !p.turns_in_window) {
    p.turns_in_window = unscaled;
    p.turns_in_window->base = base;
  }
}

}  // namespace

double usual_fraction(const std::string& type) {
  if (is_named(" phi persimmon nemotron glm glm4 ", type)) return 0.5;
  return is_named(" gpt_neox stablelm ", type) ? 0.25 : 1;
}

ConfigPositions positions_in(const Json& top) {
  ConfigPositions positions;
  const std::string model_type = text_of(top, "model_type");
  const std::string type = text::lower(text_of(top, "position_embedding_type"));
  positions.rotary =
      type.starts_with("rot") || type.starts_with("rope") ||
      any_member(top, {"rope_theta", "rope_scaling", "rope_parameters", "rotary_pct", "rotary_dim",
                       "rotary_emb_base", "partial_rotary_factor", "global_rope_theta"});
  positions.relative = type.starts_with("relative") || is_on(top, {"relative_attention"}) ||
                       any_member(top, {"relative_attention_num_buckets"});
  positions.max_distance = count(top, {"relative_attention_max_distance"});
  if (type == "alibi") positions.alibi = true;
  if (const auto alibi = any_member(top, {"alibi", "use_alibi"}); alibi && alibi->is_boolean())
    positions.alibi = alibi->boolean();
  if (model_type == "baichuan") {  // one name for two: 7B, and 13B, whose positions have no end
    positions.rotary = any_member(top, {"max_position_embeddings"}).has_value();
    positions.alibi = !positions.rotary;
  }
  positions.cap = number(top, {"attn_logit_softcapping"});
  positions.normed = is_on(top, {"use_qk_norm", "qk_layernorm", "qk_norm"});
  positions.epsilon = number(top, {"rms_norm_eps"});
  positions.clipped = any_member(top, {"clip_qkv"}).has_value();
  positions.window = window_in(top, model_type);
  positions.windowed = windowed_layers(top, model_type);
  if (const auto attention = top.member("attn_config"); attention && attention->is_object()) {
    if (const auto alibi = attention->member("alibi"); alibi && alibi->is_boolean())
      positions.alibi = alibi->boolean();
    positions.alibi_max = number(*attention, {"alibi_bias_max"});
    positions.rotary = positions.rotary || is_on(*attention, {"rope"});
    positions.normed = positions.normed || is_on(*attention, {"qk_ln", "qk_gn"});
    positions.clipped = positions.clipped || any_member(*attention, {"clip_qkv"});
  }
  read_rotary(top, positions);
  positions.turning = turning_layers(top, model_type, positions);
  return positions;
}

}  // namespace core::formats::checkpoints
