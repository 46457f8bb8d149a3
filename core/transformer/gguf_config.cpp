#include "core/transformer/gguf_config.hpp"

#include "core/error.hpp"
#include "core/transformer/config.hpp"
#include "core/transformer/families.hpp"

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
  const std::string type = keyed.metadata.text(keyed.prefix + "rope.scaling.type").value_or("none");
  if (type == "linear")
    rotary.scaling = {positions::ScalingRule::linear, keyed.number("rope.scaling.factor").value_or(1)};
  else if (type != "none")
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
  if (keyed.whole_or("expert_count", 0) > 0)
    throw Error(metadata.place() + name + ".expert_count: expected none, as experts cannot be computed yet");
  if (family->is_rotary) architecture.rotary = rotary_of(keyed, sizes, architecture.has_neighbours, file);
  require_sizes(architecture, metadata.place());
  return architecture;
}

}  // namespace core::transformer
