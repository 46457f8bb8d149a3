#include "tests/core/circuits/random_transformer.hpp"

#include <cmath>
#include <random>

#include "core/base/words.hpp"
#include "core/files/json.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/core/model/goldens.hpp"

namespace core::circuits::random_models {
namespace {

using core::transformer::Architecture;
using core::transformer::Family;
using core::transformer::NormKind;
using core::transformer::NormScope;
using core::transformer::TensorRole;
using formats::Tensor;
using formats::TensorShape;

Architecture architecture(const std::string& type, const Family& family) {
  std::string text =
      "{\"model_type\": \"" + type +
      R"(", "num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 19,
      "max_position_embeddings": 32, "intermediate_size": 40, "num_local_experts": 4, "num_experts": 4,
      "num_experts_per_tok": 2, "moe_intermediate_size": 12, "shared_expert_intermediate_size": 16,
      "sliding_window": 4, "use_sliding_window": true, "pad_token_id": 1)";
  if (family.reads_kv_heads) text += ", \"num_key_value_heads\": 2";
  if (*family.names.of(TensorRole::embedding_projection))
    text += R"(, "embedding_size": 24, "word_embed_proj_dim": 24)";
  if (type == "gemma2") text += R"(, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0)";
  if (type == "granite") text += R"(, "embedding_multiplier": 3.0, "residual_multiplier": 0.5)";
  return core::transformer::architecture_of(core::formats::parse_json(text + "}", "config.json"));
}

/// The tensors of a model, random.
class Tensors {
 public:
  Tensors(const Family& family, const Architecture& rules) : family_(family), rules_(rules) {}
  std::vector<Tensor> all;

  void weight(TensorRole role, std::size_t layer, std::size_t d_in, std::size_t d_out, std::size_t nth = 0) {
    const std::string name = name_of(role, layer, nth);
    if (name.empty()) return;
    add(name + ".weight", family_.in_by_out ? TensorShape{d_in, d_out} : TensorShape{d_out, d_in},
        0.9 / std::sqrt(static_cast<double>(d_in)));
    if (rules_.experts.n == 0 && family_.norm.kind == NormKind::layer) add(name + ".bias", {d_out}, 0.2);
  }
  void norm(TensorRole role, std::size_t layer, std::size_t width, std::size_t nth = 0) {
    const std::string name = name_of(role, layer, nth);
    if (name.empty()) return;
    add(name + ".weight", {width}, 0.2, family_.norms_plus_one ? 0 : 1);
    const bool is_of_heads = role == TensorRole::query_norm || role == TensorRole::key_norm;
    if (rules_.norm.kind == NormKind::layer && !is_of_heads) add(name + ".bias", {width}, 0.2);
  }
  void factors(TensorRole role, std::size_t layer, const TensorShape& shape) {
    if (const std::string name = name_of(role, layer, 0); !name.empty()) add(name + ".weight", shape, 0.2, 1);
  }
  void table(TensorRole role, std::size_t n_rows, std::size_t width) {
    if (const std::string name = name_of(role, 0, 0); !name.empty())
      add(name + ".weight", {n_rows, width}, 0.6);
  }
  void numbers(TensorRole role, std::size_t layer, const char* ending, std::size_t n) {
    if (const std::string name = name_of(role, layer, 0); !name.empty()) add(name + "." + ending, {n}, 0.2);
  }
  void experts(TensorRole role, std::size_t layer, std::size_t d_in, std::size_t d_out) {
    const std::string_view names = family_.names.of(role);
    if (names.find('@') != names.npos) {
      for (std::size_t k = 0; k < rules_.experts.n; ++k) weight(role, layer, d_in, d_out, k);
    } else if (const std::string name = name_of(role, layer, 0); !name.empty()) {
      add(name + ".weight", {rules_.experts.n, d_out, d_in}, 0.9 / std::sqrt(static_cast<double>(d_in)));
    }
  }

 private:
  std::string name_of(TensorRole role, std::size_t layer, std::size_t nth) const {
    const auto words = core::text::split_words(family_.names.of(role));
    if (words.empty()) return "";
    std::string name(words.front());
    for (const auto& [sign, number] : {std::pair{'#', layer}, {'@', nth}})
      if (const std::size_t at = name.find(sign); at != name.npos)
        name.replace(at, 1, std::to_string(number));
    return name;
  }
  void add(const std::string& name, const TensorShape& shape, double size, double around = 0) {
    if (std::ranges::find(all, name, &Tensor::name) != all.end()) return;  // layers share it: ALBERT
    Tensor tensor;
    tensor.name = name, tensor.shape = shape;
    std::normal_distribution<float> normal(static_cast<float>(around), static_cast<float>(size));
    for (std::size_t k = *core::formats::count_of(shape); k > 0; --k)
      tensor.numbers.push_back(normal(random_));
    all.push_back(std::move(tensor));
  }

  const Family& family_;
  const Architecture& rules_;
  std::mt19937 random_{7};
};

std::vector<Tensor> random_tensors(const std::string& type, const Family& family, const Architecture& rules) {
  const auto& s = rules.sizes;
  const std::size_t d = s.d_model, d_embedding = s.d_embedding > 0 ? s.d_embedding : d,
                    d_queries = s.n_heads * s.d_head, d_keys = s.kv_heads * s.d_head;
  Tensors tensors(family, rules);
  tensors.table(TensorRole::token_embedding, s.n_vocabulary, d_embedding);
  const bool is_wide = *family.names.of(TensorRole::output_projection);
  if (!rules.rotary && !rules.alibi)
    tensors.table(TensorRole::position_embedding, rules.first_position + s.n_context,
                  is_wide ? d : d_embedding);
  tensors.table(TensorRole::segment_embedding, 2, d_embedding);
  tensors.norm(TensorRole::embedding_norm, 0, d_embedding);
  if (d_embedding != d) tensors.weight(TensorRole::embedding_projection, 0, d_embedding, d);
  if (d_embedding != d) tensors.weight(TensorRole::output_projection, 0, d, d_embedding);
  for (std::size_t l = 0; l < s.n_layers; ++l) {
    if (type != "modernbert" || l > 0) tensors.norm(TensorRole::attention_norm, l, d);
    tensors.weight(TensorRole::fused, l, d, d_queries + 2 * d_keys);
    tensors.weight(TensorRole::query, l, d, d_queries);
    tensors.weight(TensorRole::key, l, d, d_keys);
    tensors.weight(TensorRole::value, l, d, d_keys);
    tensors.weight(TensorRole::output, l, d_queries, d);
    if (family.norm_over != NormScope::head || (family.has_head_norms && rules.norm.kind == NormKind::rms))
      for (const auto& [role, n_heads] :
           {std::pair{TensorRole::query_norm, s.n_heads}, {TensorRole::key_norm, s.kv_heads}}) {
        const bool is_per_head = std::string_view(family.names.of(role)).find('@') != std::string::npos;
        if (family.norm_over == NormScope::own_head && !is_per_head)
          tensors.factors(role, l, {n_heads, s.d_head});
        else
          for (std::size_t h = 0; h < (is_per_head ? n_heads : 1); ++h)
            tensors.norm(role, l, family.norm_over == NormScope::all_heads ? n_heads * s.d_head : s.d_head,
                         h);
      }
    tensors.norm(TensorRole::attention_output_norm, l, d);
    tensors.norm(TensorRole::mlp_norm, l, d);
    tensors.norm(TensorRole::mlp_output_norm, l, d);
    if (rules.experts.n > 0 && l >= rules.experts.first_layer) {
      const auto& experts = rules.experts;
      const bool has_gate = *family.names.of(TensorRole::expert_gate);
      tensors.weight(TensorRole::router, l, d, experts.n);
      tensors.experts(TensorRole::expert_gate, l, d, experts.d_hidden);
      tensors.experts(TensorRole::expert_up, l, d, (has_gate ? 1 : 2) * experts.d_hidden);
      tensors.experts(TensorRole::expert_down, l, experts.d_hidden, d);
      tensors.numbers(TensorRole::router_correction, l, "e_score_correction_bias", experts.n);
      if (experts.d_shared == 0) continue;
      tensors.weight(TensorRole::shared_gate, l, d, experts.d_shared);
      tensors.weight(TensorRole::shared_up, l, d, experts.d_shared);
      tensors.weight(TensorRole::shared_down, l, experts.d_shared, d);
      tensors.weight(TensorRole::shared_expert_gate, l, d, 1);
      continue;
    }
    const bool has_gate = rules.mlp.gated && *family.names.of(TensorRole::gate);
    if (has_gate) tensors.weight(TensorRole::gate, l, d, s.d_hidden);
    tensors.weight(TensorRole::up, l, d, rules.mlp.gated && !has_gate ? 2 * s.d_hidden : s.d_hidden);
    tensors.weight(TensorRole::down, l, s.d_hidden, d);
    for (const char* ending : {"alpha_p", "alpha_n", "beta", "eps"})
      tensors.numbers(TensorRole::activation_parameters, l, ending, 1);
  }
  if (rules.norm.place == core::transformer::NormPlace::before) tensors.norm(TensorRole::final_norm, 0, d);
  tensors.weight(TensorRole::head_dense, 0, d, d_embedding);
  tensors.norm(TensorRole::head_norm, 0, d_embedding);
  return tensors.all;
}

}  // namespace

std::vector<std::string> whole_model_types() {
  std::vector<std::string> types;
  for (const Family& family : core::formats::checkpoints::families())
    if (*family.full_model)
      for (const std::string_view type : core::text::split_words(family.types)) types.emplace_back(type);
  return types;
}

std::shared_ptr<const core::transformer::Transformer> random_transformer(const std::string& type) {
  using namespace core::transformer;
  const Family& family = *core::formats::checkpoints::family_of_type(type);
  const Architecture rules = architecture(type, family);
  // Of families with the same name the first gives the names of tensors and the rules of norms.
  const Family& named = core::formats::checkpoints::full_model_family_named(rules.family);
  auto weights = std::make_shared<const Weights>(
      support::tensors_in_memory(random_tensors(type, named, rules), "safetensors"), rules,
      std::uint64_t{1} << 28);
  const auto tokenizer = goldens::opened(goldens::folder + "gpt2");
  return std::make_shared<const Transformer>(
      type, rules, weights, std::make_shared<const core::tokenizers::Tokenizer>(tokenizer->tokenizer()));
}

}  // namespace core::circuits::random_models
