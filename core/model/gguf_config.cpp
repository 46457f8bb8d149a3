#include "core/model/gguf_config.hpp"

#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/model/config.hpp"
#include "core/model/families.hpp"

namespace core::transformer {
namespace {

using formats::GgufMetadata;

/// Values of a file under the name of its architecture.
struct Keyed {
  const GgufMetadata& metadata;
  std::string prefix;

  std::size_t required(const char* key) const { return metadata.required_whole(prefix + key); }
  std::size_t whole_or(const char* key, std::size_t otherwise) const {
    return metadata.whole(prefix + key).value_or(otherwise);
  }
  std::optional<double> number(const char* key) const { return metadata.number(prefix + key); }
};

positions::Rotary rotary_of(const Keyed& keyed, const Sizes& sizes, bool has_neighbours,
                            const formats::TensorFile& file) {
  positions::Rotary rotary;
  const std::size_t turned = keyed.whole_or("rope.dimension_count", sizes.d_head);
  if (turned != sizes.d_head) rotary.dimensions = turned;
  if (rotary.dimensions && has_neighbours)
    throw Error(keyed.metadata.place() + keyed.prefix + "rope.dimension_count: expected the " +
                std::to_string(sizes.d_head) + " numbers of a head, as pairs of neighbours among fewer " +
                "cannot be computed yet, got " + std::to_string(turned));
  rotary.base = keyed.number("rope.freq_base").value_or(10000);
  // As llama.cpp reads them: linear without a type, an older key where the newer is not there, 0 for 1.
  const std::string type = keyed.metadata.text(keyed.prefix + "rope.scaling.type").value_or("linear");
  const auto older = keyed.number("rope.scale_linear");
  const double factor = keyed.number("rope.scaling.factor").value_or(older.value_or(1));
  if (!(factor >= 0))
    throw Error(keyed.metadata.place() + keyed.prefix +
                "rope.scaling.factor: expected a number from 0 on, got " + text::number_text(factor));
  if (type == "linear" && factor != 0 && factor != 1)
    rotary.scaling = {positions::ScalingRule::linear, factor};
  else if (type != "linear" && type != "none")
    throw Error(keyed.metadata.place() + keyed.prefix +
                "rope.scaling.type: expected none or linear, as others cannot be computed yet, got \"" +
                type + "\"");
  if (const auto* factors = file.find("rope_freqs.weight")) {
    if (factors->shape != formats::Shape{turned / 2})
      throw Error(file.place() + "rope_freqs.weight: expected [" + std::to_string(turned / 2) + "], got " +
                  formats::shape_text(factors->shape));
    // llama.cpp keeps what each frequency is divided by.
    arma::rowvec slowed = positions::frequencies(rotary, sizes.d_head);
    slowed /= arma::rowvec(file.read(factors->name).numbers);
    rotary.inverse_frequencies = arma::mat(slowed);
  }
  return rotary;
}

/// What changes the numbers and is not computed here.
void refuse_other_rules(const Keyed& keyed, const Architecture& architecture) {
  const Sizes& sizes = architecture.sizes;
  const auto fail = [&keyed](const std::string& key, const std::string& expected, double got) {
    throw Error(keyed.metadata.place() + keyed.prefix + key + ": expected " + expected +
                ", as others cannot be computed yet, got " + text::number_text(got));
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
    const double got = keyed.number(key).value_or(0);  // which counts as not said
    const bool is_neutral = got == 0 || std::abs(got - number) <= 1e-6 * number;
    if (!is_neutral) fail(key, number == 0 ? "none or 0" : "none or " + text::number_text(number), got);
  }
  if (const double causal = keyed.number("attention.causal").value_or(architecture.causal);
      (causal != 0) != architecture.causal)
    fail("attention.causal", architecture.causal ? "true" : "false", causal);
  if (const std::size_t window = keyed.whole_or("attention.sliding_window", 0);
      window != 0 && window < sizes.n_context)
    fail("attention.sliding_window", "none, or all " + std::to_string(sizes.n_context) + " tokens at once",
         static_cast<double>(window));
}

}  // namespace

Architecture architecture_of(const GgufMetadata& metadata, const formats::TensorFile& file) {
  const std::string name = metadata.required_text("general.architecture");
  const Family* family = family_of_gguf(name);
  if (!family)
    throw Error(metadata.place() +
                "general.architecture: expected one of gpt2, llama, qwen2, qwen3, gptneox or "
                "bert, got \"" +
                name + "\"");
  const Keyed keyed{metadata, name + "."};
  Architecture architecture;
  architecture.family = family->name;
  Sizes& sizes = architecture.sizes;
  sizes.n_layers = keyed.required("block_count");
  sizes.d_model = keyed.required("embedding_length");
  sizes.n_heads = keyed.required("attention.head_count");
  sizes.n_groups = keyed.whole_or("attention.head_count_kv", sizes.n_heads);
  sizes.d_head =
      keyed.whole_or("attention.key_length", sizes.n_heads == 0 ? 0 : sizes.d_model / sizes.n_heads);
  sizes.d_hidden = keyed.required("feed_forward_length");
  sizes.n_context = keyed.required("context_length");
  if (const auto* tokens = file.find("token_embd.weight"); tokens && !tokens->shape.empty())
    sizes.n_vocabulary = tokens->shape.front();
  architecture.norm = family->norm;
  const char* epsilon = family->norm.kind == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                                           : "attention.layer_norm_epsilon";
  architecture.norm.epsilon = keyed.number(epsilon).value_or(family->norm.epsilon);
  architecture.mlp = family->mlp;
  if (family->mlp.parallel)
    architecture.mlp.parallel = keyed.number("use_parallel_residual").value_or(1) != 0;
  architecture.causal = family->causal;
  architecture.has_neighbours = name == "llama";
  if (family->is_rotary) architecture.rotary = rotary_of(keyed, sizes, architecture.has_neighbours, file);
  require_sizes(architecture, metadata.place());
  refuse_other_rules(keyed, architecture);
  return architecture;
}

}  // namespace core::transformer
