#include "core/model/architecture.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/read_layer.hpp"

namespace core::transformer {
namespace {

using formats::GgufMetadata;
using formats::checkpoints::Config;
using formats::checkpoints::ConfigRotary;

positions::Rotary rotary_from_config(const ConfigRotary& configured, const Config& config,
                                     const std::string& place) {
  if (configured.failing_fraction != 1)
    throw Error(place +
                "partial_rotary_factor: expected 1, as scaled positions of fewer columns cannot be computed "
                "for models of type " +
                config.model_type + ", got " + text::number_text(configured.failing_fraction));
  return configured.rotary(config.family->rotary).of_width(config.sizes.d_head, place);
}

/// Throws core::Error, "PLACEexpected …", when sizes do not fit one another or are out of range.
void require_sizes(const Sizes& s, const std::string& place) {
  constexpr std::size_t most = formats::checkpoints::max_count;
  const std::pair<const char*, std::size_t> all[]{{"layers", s.n_layers},
                                                  {"numbers a token", s.d_model},
                                                  {"heads", s.n_heads},
                                                  {"heads of keys", s.kv_heads},
                                                  {"numbers a head", s.d_head},
                                                  {"hidden numbers", s.d_hidden},
                                                  {"tokens of the vocabulary", s.n_vocabulary},
                                                  {"tokens at once", s.n_context}};
  for (const auto& [name, size] : all)
    if (size == 0 || size > most)
      throw Error(fmt::format("{}expected from 1 to {} {}, got {}", place, most, name, size));
  if (s.n_heads % s.kv_heads != 0)
    throw Error(fmt::format("{}expected a number of heads that heads of keys divide, got {} and {}", place,
                            s.n_heads, s.kv_heads));
}

/// Starts positions after the row of the padding token; rows up to it belong to no token.
void start_positions_after_padding(std::size_t padding, Architecture& architecture,
                                   const std::string& place) {
  std::size_t& n_context = architecture.sizes.n_context;
  if (padding >= n_context - 1)
    throw Error(fmt::format("{}max_position_embeddings: expected more than pad_token_id + 1 = {}, got {}",
                            place, text::number_text(static_cast<double>(padding) + 1), n_context));
  architecture.first_position = padding + 1;
  architecture.padding_token = padding;
  n_context -= architecture.first_position;
}

Architecture architecture_of(const Config& config, const std::string& place) {
  const Family& family = *config.family;
  Architecture architecture;
  static_cast<formats::checkpoints::ConfigNumbers&>(architecture) = config;
  architecture.family = family.full_model;
  require_sizes(config.sizes, place);
  architecture.sizes = config.sizes;
  architecture.norm = family.norm;
  if (config.is_post_norm) architecture.norm.place = NormPlace::after;
  architecture.norm.epsilon = config.epsilon.value_or(family.norm.epsilon);
  architecture.mlp = family.mlp;
  architecture.mlp.activation = config.activation.value_or(family.mlp.activation);
  architecture.mlp.parallel = config.parallel.value_or(family.mlp.parallel);
  architecture.causal =
      family.mask_kind == formats::checkpoints::MaskKind::past || config.is_decoder.value_or(false);
  using formats::checkpoints::PositionKind;
  if (config.positions.alibi.value_or(family.positions == PositionKind::alibi))
    architecture.alibi = formats::checkpoints::make_alibi({family.slopes, config.positions.alibi_bias_max},
                                                          config.sizes.n_heads, config.sizes.d_head);
  else if (family.positions == PositionKind::rotary) {
    architecture.rotary = rotary_from_config(config.positions.default_rotary, config, place);
    if (const auto& in_window = config.positions.window_rotary)
      architecture.windowed_rotary = rotary_from_config(*in_window, config, place);
  }
  architecture.is_scaled = family.is_scaled && config.scale.scaled;
  architecture.first_position = family.first_position;
  architecture.layers = config.positions.layers;
  if (family.positions_follow_padding)
    start_positions_after_padding(config.padding_token, architecture, place);
  return architecture;
}

/// Metadata of a GGUF file under keys that begin with its architecture.
struct ArchitectureKeys {
  const GgufMetadata& metadata;
  std::string prefix;

  std::size_t required(const char* key) const { return metadata.required_whole(prefix + key); }
  std::size_t whole_or(const char* key, std::size_t otherwise) const {
    return metadata.whole(prefix + key).value_or(otherwise);
  }
  std::optional<double> number(const char* key) const { return metadata.number(prefix + key); }
  [[noreturn]] void fail(const std::string& key, const std::string& expected, const std::string& got) const {
    throw Error(metadata.place() + prefix + key + ": expected " + expected + ", got " + got);
  }
};

/// Reads the scaling as llama.cpp does: linear without a type, an older key as fallback, and 0 means 1.
positions::Scaling scaling_of(const ArchitectureKeys& keys) {
  const std::string type = keys.metadata.text(keys.prefix + "rope.scaling.type").value_or("linear");
  const auto older = keys.number("rope.scale_linear");
  const double factor = keys.number("rope.scaling.factor").value_or(older.value_or(1));
  if (!(factor >= 0)) keys.fail("rope.scaling.factor", "a number from 0 on", text::number_text(factor));
  if (type == "linear" && factor != 0 && factor != 1) return {positions::ScalingRule::linear, factor};
  if (type != "linear" && type != "none")
    keys.fail("rope.scaling.type", "none or linear, as others cannot be computed yet", "\"" + type + "\"");
  return {};
}

/// Returns the metadata in the form of the same model's config.json.
Config config_of(const ArchitectureKeys& keys, const Family& family, const formats::TensorFile& file) {
  Config config;
  config.family = &family;
  Sizes& sizes = config.sizes;
  sizes.n_layers = keys.required("block_count");
  sizes.d_model = keys.required("embedding_length");
  sizes.n_heads = keys.required("attention.head_count");
  sizes.kv_heads = keys.whole_or("attention.head_count_kv", sizes.n_heads);
  sizes.d_head =
      keys.whole_or("attention.key_length", sizes.n_heads == 0 ? 0 : sizes.d_model / sizes.n_heads);
  sizes.d_hidden = keys.required("feed_forward_length");
  sizes.n_context = keys.required("context_length");
  if (const auto* tokens = file.find("token_embd.weight"); tokens && !tokens->shape.empty())
    sizes.n_vocabulary = tokens->shape.front();
  config.epsilon = keys.number(family.norm.kind == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                                                 : "attention.layer_norm_epsilon");
  if (const auto parallel = keys.number("use_parallel_residual"); parallel && family.reads_parallel_mlp)
    config.parallel = *parallel != 0;
  if (family.positions != formats::checkpoints::PositionKind::rotary) return config;
  ConfigRotary& default_rotary = config.positions.default_rotary;
  default_rotary.dimensions = keys.whole_or("rope.dimension_count", sizes.d_head);
  default_rotary.base = keys.number("rope.freq_base");
  default_rotary.scaling = scaling_of(keys);
  return config;
}

/// Divides the frequencies by the factors that llama.cpp stores in a tensor.
void divide_frequencies(positions::Rotary& rotary, std::size_t d_head, const formats::TensorFile& file) {
  const auto* factors = file.find("rope_freqs.weight");
  if (!factors) return;
  const std::size_t n = rotated_columns(rotary, d_head) / 2;
  if (factors->shape != formats::TensorShape{n})
    throw Error(fmt::format("{}rope_freqs.weight: expected [{}], got {}", file.place(), n,
                            formats::shape_text(factors->shape)));
  arma::rowvec slowed = positions::frequencies(rotary, d_head);
  slowed /= arma::rowvec(file.read(factors->name).numbers);
  rotary.inverse_frequencies = arma::mat(slowed);
}

/// Throws core::Error for keys that change the numbers and are not supported.
void reject_unsupported_keys(const ArchitectureKeys& keys, const Architecture& architecture) {
  const Sizes& sizes = architecture.sizes;
  const auto fail = [&keys](const char* key, const std::string& expected, double got) {
    keys.fail(key, expected + ", as others cannot be computed yet", text::number_text(got));
  };
  const auto d_head = static_cast<double>(sizes.d_head);
  const std::pair<const char*, double> neutral[]{{"attention.scale", 1 / std::sqrt(d_head)},
                                                 {"attention.value_length", d_head},
                                                 {"attention.output_scale", 1},
                                                 {"attention.max_alibi_bias", 0},
                                                 {"attention.clamp_kqv", 0},
                                                 {"attention.temperature_length", 0},
                                                 {"attention.temperature_scale", 0},
                                                 {"attention.shared_kv_layers", 0},
                                                 {"attn_logit_softcapping", 0},
                                                 {"final_logit_softcapping", 0},
                                                 {"logit_scale", 1},
                                                 {"residual_scale", 1},
                                                 {"embedding_scale", 1},
                                                 {"rope.scaling.attn_factor", 1},
                                                 {"swin_norm", 0},
                                                 {"nextn_predict_layers", 0},
                                                 {"expert_count", 0}};
  for (const auto& [key, number] : neutral) {
    const double got = keys.number(key).value_or(0);  // 0 counts as missing
    const bool is_neutral = got == 0 || std::abs(got - number) <= 1e-6 * number;
    if (!is_neutral) fail(key, number == 0 ? "none or 0" : "none or " + text::number_text(number), got);
  }
  if (const double causal = keys.number("attention.causal").value_or(architecture.causal);
      (causal != 0) != architecture.causal)
    fail("attention.causal", architecture.causal ? "true" : "false", causal);
  if (const std::size_t window = keys.whole_or("attention.sliding_window", 0);
      window != 0 && window < sizes.n_context)
    fail("attention.sliding_window", fmt::format("none, or all {} tokens at once", sizes.n_context),
         static_cast<double>(window));
}

}  // namespace

Architecture architecture_of(const formats::Json& config) {
  return architecture_of(formats::checkpoints::full_model_config(config), config.place());
}

Architecture architecture_of(const GgufMetadata& metadata, const formats::TensorFile& file) {
  const std::string name = metadata.required_text("general.architecture");
  const Family* family = formats::checkpoints::family_of_gguf(name);
  if (!family)
    throw Error(metadata.place() +
                "general.architecture: expected one of gpt2, llama, qwen2, qwen3, gptneox or "
                "bert, got \"" +
                name + "\"");
  const ArchitectureKeys keys{metadata, name + "."};
  const Config config = config_of(keys, *family, file);
  Architecture architecture = architecture_of(config, metadata.place());
  architecture.has_adjacent_pairs = name == "llama";
  if (architecture.rotary) {
    if (architecture.rotary->dimensions && architecture.has_adjacent_pairs)
      keys.fail(
          "rope.dimension_count",
          fmt::format(
              "the {} numbers of a head, as pairs of neighbors among fewer columns are not supported yet",
              config.sizes.d_head),
          std::to_string(*architecture.rotary->dimensions));
    divide_frequencies(*architecture.rotary, config.sizes.d_head, file);
  }
  reject_unsupported_keys(keys, architecture);
  return architecture;
}

}  // namespace core::transformer
