#include "core/model/architecture.hpp"

#include <gtest/gtest.h>
#include <sstream>

#include "core/files/gguf.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::transformer {
namespace {

using Windows = std::vector<std::size_t>;

/// Returns the window of each layer, 0 for none.
Windows windows(const Architecture& architecture) {
  Windows all;
  for (std::size_t l = 0; l < architecture.sizes.n_layers; ++l)
    all.push_back(architecture.layers.window_of(l));
  return all;
}

/// Returns the architecture of a small model, four layers, four heads, d_head = 8, with extra config keys.
Architecture of(const std::string& type, const std::string& more) {
  return architecture_of(formats::parse_json(
      "{\"model_type\": \"" + type +
          "\", \"num_hidden_layers\": 4, \"hidden_size\": 32, \"num_attention_heads\": 4, \"vocab_size\": 9, "
          "\"max_position_embeddings\": 64" +
          (more.empty() ? "" : ", " + more) + "}",
      "config.json"));
}

/// Expected values: AutoConfig of transformers 5.
TEST(Configuration, WithoutAFractionTurnsTheColumnsOfItsType) {
  EXPECT_EQ(of("gpt_neox", "").rotary->dimensions, 2u);
  EXPECT_EQ(of("gpt_neox", R"("rope_parameters": {"rope_type": "default"})").rotary->dimensions, 2u);
  EXPECT_EQ(of("gpt_neox", R"("rotary_pct": 0.5)").rotary->dimensions, 4u);
  EXPECT_FALSE(of("llama", "").rotary->dimensions);
  EXPECT_EQ(support::error_of([] { of("gpt_neox", R"("rotary_pct": 1e300)"); }),
            "config.json: rotary_pct: expected a part of the columns, 0 … 1, got 1e+300");
}

/// As in transformers 5: only GPT-NeoX reads the factor; other types fail if positions are scaled as well.
TEST(Configuration, TurnsAPartOfTheColumnsWhereItsTypeDoes) {
  const std::string part = R"("rope_parameters": {"partial_rotary_factor": 0.5, "rope_type": )";
  EXPECT_EQ(of("gpt_neox", part + "\"default\"}").rotary->dimensions, 4u);
  EXPECT_EQ(of("gpt_neox", part + R"("linear", "factor": 2})").rotary->dimensions, 4u);
  for (const std::string type : {"llama", "mistral", "qwen2", "qwen3"}) {
    EXPECT_FALSE(of(type, part + "\"default\"}").rotary->dimensions) << type;
    EXPECT_FALSE(of(type, R"("partial_rotary_factor": 0.5)").rotary->dimensions) << type;
    EXPECT_EQ(
        support::error_of([&] { of(type, part + R"("linear", "factor": 2})"); }),
        "config.json: partial_rotary_factor: expected 1, as scaled positions of fewer columns cannot be "
        "computed for models of type " +
            type + ", got 0.5");
  }
}

TEST(Configuration, WithoutABaseBesideItsScalingHasThatOfTheWhole) {
  EXPECT_EQ(of("llama", "").rotary->base, 10000);
  EXPECT_EQ(of("llama", R"("rope_theta": 5e5, "rope_parameters": {"rope_type": "default"})").rotary->base,
            5e5);
  EXPECT_EQ(of("llama", R"("rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2})").rotary->base,
            5e5);
  EXPECT_EQ(
      of("llama", R"("rope_theta": 5e5, "rope_scaling": {"rope_theta": 1e4, "type": "linear", "factor": 2})")
          .rotary->base,
      1e4);
  EXPECT_EQ(support::error_of([] { of("llama", R"("rope_scaling": {"type": "linear"})"); }),
            "config.json: rope_scaling: expected the key \"factor\", got none");
}

/// Defaults of transformers for missing keys.
TEST(Configuration, ScalesRotaryPositionsAsTransformersDoes) {
  using positions::ScalingRule;
  const auto scaling = [](const std::string& says, const std::string& more = "") {
    return of("llama", "\"rope_scaling\": {" + says + "}" + more).rotary->scaling;
  };
  positions::Scaling yarn = scaling(R"("rope_type": "yarn", "factor": 4.0)");
  EXPECT_EQ(yarn.rule, ScalingRule::yarn);
  EXPECT_EQ(yarn.original, 64) << "max_position_embeddings";
  EXPECT_EQ(yarn.low, 1);
  EXPECT_EQ(yarn.high, 32);
  EXPECT_NEAR(yarn.attention, 1.138629436111989, 1e-15);
  yarn = scaling(
      R"("type": "yarn", "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.5, "truncate": false, "original_max_position_embeddings": 16)");
  EXPECT_NEAR(yarn.attention, 1.064468903941252, 1e-15);
  EXPECT_EQ(yarn.original, 16);
  EXPECT_FALSE(yarn.truncate);
  EXPECT_EQ(scaling(R"("rope_type": "yarn", "factor": 4, "attention_factor": 1)").attention, 1);
  const positions::Scaling dynamic = scaling(R"("rope_type": "dynamic", "factor": 2)");
  EXPECT_EQ(dynamic.rule, ScalingRule::dynamic);
  EXPECT_EQ(dynamic.original, 64);
  const std::string factors = R"("short_factor": [1, 1, 1, 2], "long_factor": [1, 2, 3, 4])";
  const positions::Scaling longrope =
      scaling(R"("type": "su", )" + factors, R"(, "original_max_position_embeddings": 16)");
  EXPECT_EQ(longrope.rule, ScalingRule::longrope);
  EXPECT_EQ(longrope.original, 16);
  EXPECT_NEAR(longrope.attention, std::sqrt(1.5), 1e-15) << "√(1 + ln 4 / ln 16)";
  EXPECT_EQ(longrope.factors->at(1, 3), 4);
  EXPECT_EQ(support::error_of(
                [&] { scaling(R"("rope_type": "longrope", "short_factor": [1], "long_factor": [1])"); }),
            "config.json: short_factor: expected a factor for each of 4 pairs, got 1");
  EXPECT_EQ(
      support::error_of([&] { scaling(R"("rope_type": "longrope", "short_mscale": 1.2, )" + factors); }),
      "config.json: rope_scaling.short_mscale: expected none, as LongRoPE with it cannot be computed yet, "
      "got 1.2");
  EXPECT_EQ(support::error_of([&] { scaling(R"("rope_type": "yarn")"); }),
            "config.json: rope_scaling: expected the key \"factor\", got none");
}

/// The old form of OLMo 3's configuration: layers with a window are not scaled.
TEST(Configuration, OfOlmo3ScalesLayersWithoutAWindowAlone) {
  const Architecture olmo3 = of(
      "olmo3",
      R"("sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"], "rope_scaling": {"rope_type": "yarn", "factor": 8})");
  EXPECT_EQ(rotary_of(olmo3, 0)->scaling.rule, positions::ScalingRule::none);
  EXPECT_EQ(rotary_of(olmo3, 1)->scaling.rule, positions::ScalingRule::yarn);
}

TEST(Configuration, HasTheWindowsOfItsType) {
  const Windows none{0, 0, 0, 0};
  EXPECT_EQ(windows(of("qwen2", R"("sliding_window": 8, "max_window_layers": 2)")), none);
  EXPECT_EQ(
      windows(of("qwen2", R"("sliding_window": 8, "max_window_layers": 2, "use_sliding_window": true)")),
      (Windows{0, 0, 8, 8}));
  EXPECT_EQ(windows(of("qwen2", R"("sliding_window": 8, "use_sliding_window": true)")), none);
  EXPECT_EQ(windows(of("qwen3", R"("sliding_window": 8, "use_sliding_window": true, "layer_types":
      ["full_attention", "sliding_attention", "full_attention", "full_attention"])")),
            (Windows{0, 8, 0, 0}));
  EXPECT_EQ(windows(of("mistral", "")), (Windows{4096, 4096, 4096, 4096}));
  EXPECT_EQ(windows(of("mistral", R"("sliding_window": null)")), none);
  EXPECT_EQ(windows(of("mistral", R"("sliding_window": 8, "use_sliding_window": false)")),
            (Windows{8, 8, 8, 8}));
  EXPECT_EQ(windows(of("llama", R"("sliding_window": 8, "use_sliding_window": true)")), none);
}

class GgufOf : public testing::TestWithParam<const char*> {};

/// Compares its tokenizer with the folder's on texts that are hard to split.
TEST_P(GgufOf, HasTheTokenizerOfTheFolder) {
  const std::string folder = goldens::folder + GetParam();
  const auto gguf = goldens::opened(folder + ".gguf"), plain = goldens::opened(folder);
  for (const char* text :
       {"it's 12345, naïve\u0308  CAFÉ", "   x\n\n y", "你好 🙂 <|end|> [MASK] unaffable ##x", ""})
    EXPECT_EQ(goldens::ids_of(*gguf, text), goldens::ids_of(*plain, text)) << text;
  EXPECT_EQ(gguf->tokenizer().decode(goldens::ids_of(*gguf, "the ferry, the fog")),
            plain->tokenizer().decode(goldens::ids_of(*plain, "the ferry, the fog")));
}

INSTANTIATE_TEST_SUITE_P(Transformer, GgufOf,
                         testing::Values("gpt2", "llama", "qwen2", "qwen3", "gpt_neox", "bert_headless"),
                         [](const auto& of) { return std::string(of.param); });

formats::GgufValue number(double value) {
  return {false, {value}, {}};
}
formats::GgufValue text(const char* value) {
  return {false, {}, {value}};
}

/// Returns the architecture of a small GGUF model with one extra value.
Architecture of_gguf(const std::string& name, const std::string& key, const formats::GgufValue& value) {
  std::map<std::string, formats::GgufValue> values{{"general.architecture", text(name.c_str())}};
  for (const auto& [size, count] :
       {std::pair("block_count", 2), std::pair("embedding_length", 32), std::pair("attention.head_count", 2),
        std::pair("feed_forward_length", 8), std::pair("context_length", 64)})
    values[name + "." + size] = number(count);
  values[name + "." + key] = value;
  formats::Tensor tokens;
  tokens.name = "token_embd.weight", tokens.shape = {3, 32}, tokens.numbers.assign(96, 0);
  return architecture_of(formats::GgufMetadata("m: ", values), support::tensors_in_memory({tokens}));
}

TEST(GgufConfiguration, RefusesWhatChangesNumbersByItsKey) {
  const Architecture plain = of_gguf("llama", "vocab_size", number(3));
  const struct {
    const char* key;
    double neutral, other;
    const char* expected;
  } cases[]{{"attention.scale", 0.25, 0.1, "none or 0.25"},
            {"attention.value_length", 16, 8, "none or 16"},
            {"attention.output_scale", 1, 2, "none or 1"},
            {"attention.max_alibi_bias", 0, 8, "none or 0"},
            {"attention.clamp_kqv", 0, 8, "none or 0"},
            {"attn_logit_softcapping", 0, 50, "none or 0"},
            {"final_logit_softcapping", 0, 30, "none or 0"},
            {"logit_scale", 1, 0.5, "none or 1"},
            {"residual_scale", 1, 0.5, "none or 1"},
            {"embedding_scale", 1, 12, "none or 1"},
            {"rope.scaling.attn_factor", 1, 1.5, "none or 1"},
            {"nextn_predict_layers", 0, 1, "none or 0"},
            {"expert_count", 0, 8, "none or 0"},
            {"attention.causal", 1, 0, "true"},
            {"attention.sliding_window", 64, 63, "none, or all 64 tokens at once"}};
  for (const auto& [key, neutral, other, expected] : cases) {
    EXPECT_EQ(of_gguf("llama", key, number(neutral)), plain) << key;
    std::ostringstream got;
    got << other;
    EXPECT_EQ(support::error_of([&, key = key, other = other] { of_gguf("llama", key, number(other)); }),
              std::string("m: llama.") + key + ": expected " + expected +
                  ", as others cannot be computed yet, got " + got.str());
  }
  EXPECT_EQ(of_gguf("bert", "attention.causal", number(0)), of_gguf("bert", "pooling_type", number(1)));
  EXPECT_EQ(support::error_of([] { of_gguf("bert", "attention.causal", number(1)); }),
            "m: bert.attention.causal: expected false, as others cannot be computed yet, got 1");
}

/// llama.cpp defaults to linear scaling without a type, and reads an older key of the factor.
TEST(GgufConfiguration, ScalesPositionsAsLlamaCppDoes) {
  const positions::Scaling by_four{positions::ScalingRule::linear, 4};
  EXPECT_EQ(of_gguf("llama", "rope.scaling.factor", number(4)).rotary->scaling, by_four);
  EXPECT_EQ(of_gguf("llama", "rope.scale_linear", number(4)).rotary->scaling, by_four);
  EXPECT_EQ(of_gguf("llama", "rope.scaling.factor", number(0)).rotary->scaling, positions::Scaling());
  EXPECT_EQ(of_gguf("llama", "rope.scaling.type", text("linear")).rotary->scaling, positions::Scaling());
  EXPECT_EQ(support::error_of([] { of_gguf("llama", "rope.scaling.factor", number(-4)); }),
            "m: llama.rope.scaling.factor: expected a number from 0 on, got -4");
}

TEST(GgufModel, IsRefusedInOneLine) {
  const support::TemporaryDirectory dir;
  const auto error_with = [&](const std::string& what, const std::string& by) {
    std::string bytes = support::bytes_of(goldens::folder + "llama.gguf");
    bytes.replace(bytes.find(what), what.size(), by);
    support::put_bytes(dir / "m.gguf", bytes);
    return support::error_of([&] { goldens::opened((dir / "m.gguf").string()); });
  };
  const std::string place = (dir / "m.gguf").string() + ": ";
  EXPECT_EQ(error_with("llama.block_count", "llama.block_xxxxx"),
            place + "llama.block_count: expected a whole number, there is none");
  EXPECT_EQ(error_with("blk.1.ffn_up.weight", "blk.1.ffn_xx.weight"),
            place + "expected a tensor blk.1.ffn_up.weight, there is none");
  EXPECT_EQ(error_with("llama-bpe", "mystery-x"),
            place +
                "tokenizer.ggml.pre: expected gpt-2, llama-bpe, qwen2 or smollm, as others cut words in ways "
                "that are not known here, got \"mystery-x\"");
  EXPECT_EQ(error_with("tokenizer.ggml.pre", "tokenizer.ggml.xxx"),
            place +
                "tokenizer.ggml.pre: expected gpt-2, llama-bpe, qwen2 or smollm, as others cut words in ways "
                "that are not known here, there is none");
}

}  // namespace
}  // namespace core::transformer
