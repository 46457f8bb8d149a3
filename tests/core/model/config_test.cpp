#include "core/model/architecture.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_of.hpp"

namespace core::transformer {
namespace {

using Windows = std::vector<std::size_t>;

/// A small model of a type, four layers of four heads of eight columns, whose configuration says more.
Architecture of(const std::string& type, const std::string& more) {
  return architecture_of(formats::parse_json(
      "{\"model_type\": \"" + type +
          "\", \"num_hidden_layers\": 4, \"hidden_size\": 32, \"num_attention_heads\": 4, \"vocab_size\": 9, "
          "\"max_position_embeddings\": 64" +
          (more.empty() ? "" : ", " + more) + "}",
      "config.json"));
}

/// What AutoConfig of transformers 5 makes of the same.
TEST(Configuration, WithoutAFractionTurnsTheColumnsOfItsType) {
  EXPECT_EQ(of("gpt_neox", "").rotary->dimensions, 2u);
  EXPECT_EQ(of("gpt_neox", R"("rope_parameters": {"rope_type": "default"})").rotary->dimensions, 2u);
  EXPECT_EQ(of("gpt_neox", R"("rotary_pct": 0.5)").rotary->dimensions, 4u);
  EXPECT_FALSE(of("llama", "").rotary->dimensions);
  EXPECT_EQ(support::error_of([] { of("gpt_neox", R"("rotary_pct": 1e300)"); }),
            "config.json: rotary_pct: expected a part of the columns, 0 … 1, got 1e+300");
}

/// What the code of each type in transformers 5 does with the same: only GPT-NeoX's reads it, that of the
/// others fails where positions are scaled as well.
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

TEST(Configuration, HasTheWindowsOfItsType) {
  EXPECT_EQ(of("qwen2", R"("sliding_window": 8, "max_window_layers": 2)").windows, Windows());
  EXPECT_EQ(of("qwen2", R"("sliding_window": 8, "max_window_layers": 2, "use_sliding_window": true)").windows,
            (Windows{0, 0, 8, 8}));
  EXPECT_EQ(of("qwen2", R"("sliding_window": 8, "use_sliding_window": true)").windows, (Windows{0, 0, 0, 0}));
  EXPECT_EQ(of("qwen3", R"("sliding_window": 8, "use_sliding_window": true, "layer_types":
      ["full_attention", "sliding_attention", "full_attention", "full_attention"])")
                .windows,
            (Windows{0, 8, 0, 0}));
  EXPECT_EQ(of("mistral", "").windows, (Windows{4096, 4096, 4096, 4096}));
  EXPECT_EQ(of("mistral", R"("sliding_window": null)").windows, Windows());
  EXPECT_EQ(of("mistral", R"("sliding_window": 8, "use_sliding_window": false)").windows,
            (Windows{8, 8, 8, 8}));
  EXPECT_EQ(of("llama", R"("sliding_window": 8, "use_sliding_window": true)").windows, Windows());
}

}  // namespace
}  // namespace core::transformer
