// The same questions to both readers of a checkpoint: to that of a single layer, and to that of whole models.
#include <gmock/gmock.h>

#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/words.hpp"
#include "core/files/read_layer.hpp"
#include "core/model/architecture.hpp"
#include "tests/support/checkpoint_of.hpp"

namespace core::transformer {
namespace {

namespace checkpoints = formats::checkpoints;
using checkpoints::Checkpoint;
using checkpoints::LayerRules;
using formats::TensorInfo;
using formats::TensorShape;

constexpr std::size_t n_layers = 4, n_heads = 4, d_model = 32;

/// A key that a config.json may have, of the model's own type or of another one.
struct PossibleKey {
  const char* name;
  std::vector<const char*> values;
};
const std::vector<PossibleKey> possible_keys{
    {"num_key_value_heads", {"2"}},
    {"head_dim", {"16"}},
    {"rms_norm_eps", {"1e-5"}},
    {"rope_theta", {"5e5"}},
    {"partial_rotary_factor", {"0.5"}},
    {"rotary_dim", {"4"}},
    {"rope_local_base_freq", {"100"}},
    {"rope_scaling", {R"({"rope_type": "linear", "factor": 2})", R"({"rope_type": "yarn", "factor": 4})"}},
    {"rope_parameters",
     {R"({"sliding_attention": {"rope_theta": 100}, "full_attention": {"rope_type": "linear", "factor": 2}})"}},
    {"sliding_window", {"16", "null", "0"}},
    {"use_sliding_window", {"true", "false"}},
    {"max_window_layers", {"0", "2"}},
    {"sliding_window_pattern", {"2"}},
    {"layer_types", {R"(["full_attention", "sliding_attention", "full_attention", "sliding_attention"])"}},
    {"no_rope_layers", {"[1, 0, 1, 1]"}},
    {"attn_config", {R"({"rope": true})", R"({"alibi": true, "alibi_bias_max": 4})", R"({"kv_n_heads": 2})"}},
    {"attn_logit_softcapping", {"50.0"}},
    {"query_pre_attn_scalar", {"16"}},
    {"attention_multiplier", {"0.2"}},
    {"scale_attn_weights", {"false"}},
    {"scale_attn_by_inverse_layer_idx", {"true"}},
    {"is_decoder", {"true", "false"}},
    {"alibi", {"true", "false"}},
    {"do_layer_norm_before", {"false"}}};

std::string random_config(std::string_view type, std::mt19937& random) {
  std::string config =
      R"({"num_hidden_layers": 4, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 11,
          "max_position_embeddings": 64, "intermediate_size": 64, "num_local_experts": 4, "num_experts": 4,
          "n_routed_experts": 4, "moe_num_experts": 4, "num_experts_per_tok": 2, "moe_k": 2,
          "shared_expert_intermediate_size": 8, "model_type": ")" +
      std::string(type) + "\"";
  for (const PossibleKey& key : possible_keys)
    if (random() % 8 == 0)
      config += std::string(", \"") + key.name + "\": " + key.values[random() % key.values.size()];
  return config + "}";
}

/// Returns the weights of attention in a model of a family; in ALBERT all layers have the same ones.
std::vector<TensorInfo> tensors_of(const Family& family, const Sizes& sizes) {
  std::vector<TensorInfo> all;
  const auto add = [&](TensorRole role, std::size_t layer, std::size_t d_in, std::size_t d_out) {
    const auto names = text::split_words(family.names.of(role));
    if (names.empty()) return;
    const auto prefixes = text::split_words(family.prefixes);
    std::string name = (prefixes.empty() ? "" : std::string(prefixes.front())) + std::string(names.front());
    if (const auto at = name.find('#'); at != name.npos) name.replace(at, 1, std::to_string(layer));
    all.push_back({name + ".weight", formats::Dtype::f32,
                   family.in_by_out ? TensorShape{d_in, d_out} : TensorShape{d_out, d_in}});
  };
  const std::size_t d_queries = sizes.n_heads * sizes.d_head, d_keys = sizes.kv_heads * sizes.d_head;
  const bool is_numbered =
      std::string_view(family.names.of(TensorRole::output)).find('#') != std::string_view::npos;
  for (std::size_t l = 0; l < (is_numbered ? n_layers : 1); ++l) {
    add(TensorRole::fused, l, d_model, d_queries + 2 * d_keys);
    if (!*family.names.of(TensorRole::fused)) {
      add(TensorRole::query, l, d_model, d_queries);
      add(TensorRole::key, l, d_model, d_keys);
      add(TensorRole::value, l, d_model, d_keys);
    }
    add(TensorRole::output, l, d_queries, d_model);
  }
  return all;
}

/// Returns the questions that both answer differently for a layer.
std::vector<std::string> differences(const Architecture& model, const LayerRules& rules,
                                     const Checkpoint& checkpoint, const checkpoints::Config& config,
                                     std::size_t l) {
  std::vector<std::string> all;
  const auto compare = [&](bool agree, const char* question) {
    if (!agree) all.push_back(question);
  };
  const std::size_t d_head = model.sizes.d_head, n_keys = model.layers.window_of(l);
  const auto window = n_keys > 0 ? checkpoints::window_of(n_keys, model.causal) : attention::MaskWindow();
  std::optional<positions::Rotary> rotary;
  if (rules.rotary) rotary = rules.rotary->of_width(d_head, "");
  const auto scale = checkpoints::layer_scale(rules, config, checkpoint.layers[l], d_head),
             model_scale = scale_of(model, l);
  const Family& family = checkpoints::full_model_family_named(model.family);
  const bool has_norm = *family.names.of(TensorRole::attention_norm) || family.norms_without_parameters;
  compare(rules.causal == model.causal, "causal");
  compare(rules.window == window, "window");
  compare(rotary == rotary_of(model, l), "rotary");
  compare(rules.alibi.has_value() == model.alibi.has_value(), "ALiBi");
  if (rules.alibi && model.alibi)
    compare(checkpoints::make_alibi(*rules.alibi, n_heads, d_head) == *model.alibi, "slopes");
  compare(rules.softcap == model.softcap, "softcap");
  compare(scale.rule == model_scale.rule && scale.factor == model_scale.factor, "scale");
  compare(rules.heads.kv_heads.value_or(n_heads) == model.sizes.kv_heads, "KV heads");
  compare(rules.norm_before == (model.norm.place == NormPlace::before && has_norm), "norm before");
  return all;
}

TEST(LayerOfAKnownType, IsThatOfItsWholeModel) {
  std::mt19937 random(1);
  std::set<std::string_view> opened;
  for (const Family& family : checkpoints::families())
    for (const auto type :
         *family.full_model ? text::split_words(family.types) : std::vector<std::string_view>())
      for (int trial = 0; trial < 100; ++trial) {
        const std::string config_text = random_config(type, random);
        const formats::Json json = formats::parse_json(config_text, "config.json");
        std::optional<Architecture> model;
        try {
          model = architecture_of(json);
        } catch (const Error&) {
          continue;  // it is not opened as a whole model
        }
        const checkpoints::Config config = checkpoints::parse_config(json);
        const Checkpoint checkpoint = support::checkpoint_of(tensors_of(family, model->sizes));
        ASSERT_FALSE(checkpoint.layers.empty()) << type;
        opened.insert(type);
        for (std::size_t l = 0; l < checkpoint.layers.size(); ++l)
          EXPECT_THAT(differences(*model, infer_layer_rules(checkpoint, checkpoint.layers[l], config),
                                  checkpoint, config, l),
                      testing::IsEmpty())
              << "layer " << l << " of " << config_text;
      }
  EXPECT_GT(opened.size(), 60u);
}

}  // namespace
}  // namespace core::transformer
