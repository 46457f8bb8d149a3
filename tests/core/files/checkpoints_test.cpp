#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/base/text.hpp"
#include "core/files/read_layer.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/checkpoint_of.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats::checkpoints {
namespace {

using support::checkpoint_of;
using testing::HasSubstr;

const std::string folder = FIXTURES "/checkpoints/";

arma::mat projected(const arma::mat& x, const attention::Linear& linear) {
  arma::mat y = x * *linear.weight;
  if (linear.bias) y.each_row() += arma::rowvec(**linear.bias);
  return y;
}

Attention read_first(const TensorFile& file, std::size_t n_heads) {
  core::StopToken progress;
  return read_attention(file, find_layers(file).at(0).mapping, {n_heads}, progress);
}

Config parsed(std::string_view text) {
  return parse_config(parse_json(text, "config.json"));
}

bool family_of_name_is_known(std::string_view name) {
  return std::ranges::any_of(families(), [&](const Family& family) { return family.name == name; });
}

struct Known {
  const char *file, *naming, *prefix;
  bool bias, output;
};
const Known known[] = {{"gpt2", "gpt2", "h.0.attn.", true, true},
                       {"nano_gpt", "gpt2", "transformer.h.0.attn.", true, true},
                       {"llama", "llama", "model.layers.0.self_attn.", false, true},
                       {"grouped", "llama", "model.layers.0.self_attn.", true, true},
                       {"opt", "opt", "decoder.layers.0.self_attn.", true, true},
                       {"bert", "bert", "encoder.layer.0.attention.", true, true},
                       {"vit", "vit", "encoder.layer.0.attention.", true, true},
                       {"distilbert", "distilbert", "layer.0.attention.", true, true},
                       {"notebook", "notebook", "", true, true},
                       {"w_q", "w_q", "blocks.0.", false, true},
                       {"wq", "wq", "layers.0.attention.", false, true},
                       {"query_key_value", "query_key_value", "", false, false},
                       {"to_q", "to_q", "attn1.", false, true},
                       {"one_class_a_head", "query_key_value", "sa.", true, true},
                       {"notebook_parameters", "notebook_parameters", "", false, false}};

TEST(CheckpointNaming, IsFoundByItsNames) {
  for (const Known& k : known) {
    const auto layers = find_layers(open_tensors(folder + k.file + ".safetensors"));
    ASSERT_EQ(layers.size(), 1u) << k.file;
    EXPECT_STREQ(layers[0].naming->name, k.naming) << k.file;
    EXPECT_EQ(layers[0].prefix, k.prefix);
  }
}

TEST(CheckpointNaming, PutsCrossAttentionBehindAndLeavesOutWhatItCannotSplit) {
  const auto tensor = [](const std::string& name, TensorShape shape) {
    return TensorInfo{name, Dtype::f32, shape};
  };
  std::vector<TensorInfo> tensors;
  for (const char* attention : {"decoder.layers.0.encoder_attn.", "decoder.layers.0.self_attn."})
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      tensors.push_back(tensor(attention + std::string(name) + ".weight", {4, 4}));
  const auto layers = checkpoint_of(tensors).layers;
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].prefix, "decoder.layers.0.self_attn.");
  tensors = {tensor("h.0.attn.c_attn.weight", {4, 12}), tensor("h.0.attn.c_proj.weight", {4, 4}),
             tensor("h.0.crossattention.c_attn.weight", {4, 8}),
             tensor("h.0.crossattention.q_attn.weight", {4, 4}),
             tensor("h.0.crossattention.c_proj.weight", {4, 4})};
  const auto of_gpt2 = checkpoint_of(tensors).layers;
  ASSERT_EQ(of_gpt2.size(), 1u);
  EXPECT_EQ(of_gpt2[0].prefix, "h.0.attn.");
}

TEST(CheckpointNaming, GivesWhatPyTorchProjects) {
  for (const Known& k : known) {
    const TensorFile file = open_tensors(folder + k.file + ".safetensors");
    const Attention read = read_first(file, 2);
    const attention::Projections& p = read.projections;
    const arma::uword times = 2 / read.n_kv_heads.value_or(2);  // PyTorch repeats the KV heads
    const auto tensor = [&](const char* name) { return matrix(file.read(name)); };
    const arma::mat x = tensor("x"), queries = projected(x, p.query);
    EXPECT_TRUE(support::is_near(queries, tensor("want.q"), 1e-13)) << k.file;
    EXPECT_TRUE(support::is_near(arma::repmat(projected(x, p.key), 1, times), tensor("want.k"), 1e-13))
        << k.file;
    EXPECT_TRUE(support::is_near(arma::repmat(projected(x, p.value), 1, times), tensor("want.v"), 1e-13))
        << k.file;
    EXPECT_EQ(p.query.bias.has_value(), k.bias) << k.file;
    ASSERT_EQ(p.output.has_value(), k.output) << k.file;
    if (k.output) {
      EXPECT_TRUE(support::is_near(projected(queries, *p.output), tensor("want.out"), 1e-13)) << k.file;
    }
  }
}

TEST(CheckpointNaming, OfMultiheadAttentionGivesItsWeightsAndResult) {
  const TensorFile file = open_tensors(folder + "multihead_attention.safetensors");
  attention::Model model;
  model.n_heads = 2;
  model.projections = read_first(file, 2).projections;
  model.mask.causal = find_layers(file).at(0).naming->causal;
  const arma::mat x = matrix(file.read("x"));
  model.sequences = {{attention::numbered_tokens(x.n_rows), x}};
  const attention::Trace trace = attention::attend(model);
  for (std::size_t head = 0; head < 2; ++head) {
    const arma::mat want = matrix(file.read("want.weights"), std::vector{head});
    EXPECT_TRUE(support::is_near(*trace.at(attention::Stage::weights, head), want, 1e-13)) << head;
  }
  EXPECT_TRUE(support::is_near(*trace.at(attention::Stage::output), matrix(file.read("want.result")), 1e-13));
}

TEST(CheckpointLayer, IsChosenByNumberOrPrefix) {
  const auto info = [](const std::string& name) { return TensorInfo{name, Dtype::f32, {4, 12}}; };
  const std::vector<TensorInfo> tensors{info("h.10.attn.c_attn.weight"), info("h.2.attn.c_attn.weight"),
                                        info("h.0.attn.c_attn.weight"), info("h.0.attn.c_attn.bias")};
  const auto layers = checkpoint_of(tensors).layers;
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(choose_layer(layers, "1", "").prefix, "h.2.attn.");
  EXPECT_EQ(choose_layer(layers, "h.10.attn", "").prefix, "h.10.attn.");
  EXPECT_EQ(support::error_of([&] { choose_layer(layers, "3", "m: "); }),
            "m: expected a layer from 0 (h.0.attn.) to 2 (h.10.attn.), got \"3\"");
  EXPECT_EQ(support::error_of([&] { choose_layer({}, "0", "m: "); }),
            "m: expected a checkpoint of a known layout, found no attention in it");
}

TEST(CheckpointLayer, RefusesShapesThatDoNotFit) {
  const TensorFile file = open_tensors(folder + "grouped.safetensors");
  EXPECT_THAT(support::error_of([&] { read_first(file, 3); }),
              HasSubstr("q_proj.weight: expected a number of outputs that 3 heads share, got 6 × 8"));
  ProjectionMapping mapping = find_layers(file).at(0).mapping;
  mapping.value.weights = {"model.layers.0.self_attn.o_proj.weight"};
  mapping.value.biases.clear();
  core::StopToken progress;
  EXPECT_THAT(support::error_of([&] { read_attention(file, mapping, {2}, progress); }),
              HasSubstr("o_proj.weight: expected 6 inputs as the queries have, got 8 × 8"));
}

/// Settings that a model type implies or that its config.json gives in its own keys.
struct OfType {
  const char *type, *more;
  /// Per layer: W with a sliding window, F without; lower case without positions.
  const char* layers;
  positions::Pairs pairs = positions::Pairs::halves;
  double fraction = 1;
};
constexpr auto neighbors = positions::Pairs::neighbors;

TEST(FamilyOfAType, HasTheWindowsAndRotaryEmbeddingsThatItsProgramKnows) {
  const OfType types[] = {
      {"llama", "", "FFFFFFFF"},
      {"llama", R"(, "use_sliding_window": false)", "FFFFFFFF"},
      {"mistral", R"(, "use_sliding_window": false)", "WWWWWWWW"},
      {"qwen2", "", "FFFFFFFF"},
      {"qwen3", R"(, "use_sliding_window": true, "max_window_layers": 3)", "FFFWWWWW"},
      {"qwen2_moe", R"(, "use_sliding_window": true)", "WWWWWWWW"},
      {"gemma2", "", "WFWFWFWF"},
      {"gemma3_text", "", "WWWWWFWW"},
      {"gemma3", R"(, "sliding_window_pattern": 3)", "WWFWWFWW"},
      {"gpt_oss", "", "WFWFWFWF"},
      {"cohere2", "", "WWWfWWWf", neighbors},
      {"exaone4", R"(, "layer_types": ["sliding_attention", "full_attention"])", "WfWWWWWW"},
      {"smollm3", "", "FFFfFFFf"},
      {"smollm3", R"(, "no_rope_layers": [0, 1])", "fFFFFFFF"},
      {"modernbert", "", "FWWFWWFW"},
      {"modernbert", R"(, "global_attn_every_n_layers": 2)", "FWFWFWFW"},
      {"cohere", "", "FFFFFFFF", neighbors},
      {"glm4", "", "FFFFFFFF", neighbors, 0.5},
      {"gptj", "", "FFFFFFFF", neighbors},
      {"gptj", R"(, "rope_interleaved": false)", "FFFFFFFF"},
      {"stablelm", "", "FFFFFFFF", positions::Pairs::halves, 0.25},
      {"stablelm", R"(, "partial_rotary_factor": 0.75)", "FFFFFFFF", positions::Pairs::halves, 0.75},
      {"gpt_neox", "", "FFFFFFFF", positions::Pairs::halves, 0.25},
      {"persimmon", "", "WWWWWWWW", positions::Pairs::halves, 0.5},
      {"phi", "", "FFFFFFFF", positions::Pairs::halves, 0.5},
      {"phi3", "", "WWWWWWWW"},
      {"llama4", "", "wwwwwwww"},
      {"gpt2", "", "ffffffff"},
  };
  for (const OfType& type : types) {
    const Config config = parsed(std::string(R"({"num_hidden_layers": 8, "sliding_window": 3, )") +
                                 "\"model_type\": \"" + type.type + "\"" + type.more + "}");
    std::string layers;
    for (std::size_t k = 0; k < 8; ++k) {
      const std::string prefix = "model.layers." + std::to_string(k) + ".self_attn.";
      std::vector<TensorInfo> tensors;
      for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
        tensors.push_back({prefix + name + ".weight", Dtype::f32, {8, 8}});
      const Checkpoint checkpoint = checkpoint_of(tensors);
      const LayerRules rules = infer_layer_rules(checkpoint, checkpoint.layers.at(0), config);
      const char letter = rules.window.left ? 'W' : 'F';
      layers += rules.rotary ? letter : text::lower(letter);
      if (rules.rotary) {
        EXPECT_EQ(rules.rotary->rotary.pairs, type.pairs) << type.type << type.more;
        EXPECT_EQ(rules.rotary->fraction, type.fraction) << type.type << type.more;
      }
    }
    EXPECT_EQ(layers, type.layers) << type.type << type.more;
  }
}

TEST(FamilyOfAType, DoesNotReadKeysThatItsProgramDoesNotKnow) {
  const auto unread = [](const char* text) { return parsed(text).unread_keys; };
  using Keys = std::set<std::string>;
  EXPECT_EQ(
      unread(R"({"model_type": "llama", "sliding_window": 3, "alibi": true, "partial_rotary_factor": 0.5})"),
      (Keys{"alibi", "partial_rotary_factor", "sliding_window"}));
  EXPECT_EQ(unread(R"({"model_type": "llama", "sliding_window": null, "alibi": false})"), Keys());
  EXPECT_EQ(unread(R"({"model_type": "mistral", "sliding_window": 3})"), Keys());
  EXPECT_EQ(unread(R"({"model_type": "gpt2", "n_head": 4, "num_key_value_heads": 2, "rope_theta": 100})"),
            (Keys{"num_key_value_heads", "rope_theta"}));
  EXPECT_EQ(unread(R"({"model_type": "gpt2", "n_head": 4, "num_key_value_heads": 4})"), Keys());
  EXPECT_EQ(unread(R"({"model_type": "unknown", "sliding_window": 3})"), Keys());
  const Config part = parsed(R"({"model_type": "llama", "text_config": {"sliding_window": 3}})").parts.at(0);
  EXPECT_EQ(part.unread_keys, Keys{"sliding_window"}) << "a part without a type is of the enclosing one";
}

TEST(FamilyTable, HasEachTypeOnceAndAFamilyForEveryNaming) {
  std::set<std::string> types;
  for (const Family& family : families()) {
    std::istringstream words(family.types);
    for (std::string type; words >> type;) EXPECT_TRUE(types.insert(type).second) << type;
    if (*family.grouped_family) {
      EXPECT_TRUE(family_of_name_is_known(family.grouped_family)) << family.grouped_family;
    }
  }
  for (const Naming& naming : namings())
    EXPECT_TRUE(!*naming.family || family_of_name_is_known(naming.family)) << naming.name;
}

TEST(CheckpointConfig, TellsHeadsAndScale) {
  const Config gpt2 = parsed(R"({"n_head": 12, "scale_attn_by_inverse_layer_idx": true, "other": {}})");
  EXPECT_EQ(gpt2.heads.n, 12u);
  const Layer third{"h.2.attn.", nullptr, {}, 0};
  EXPECT_DOUBLE_EQ(layer_scale({}, gpt2, third, 64).factor, 1.0 / 8 / 3);
  const Config grouped = parsed(R"({"num_attention_heads": 32, "num_key_value_heads": 8})");
  EXPECT_EQ(grouped.heads.n, 32u);
  EXPECT_EQ(grouped.heads.kv_heads, 8u);
  EXPECT_EQ(layer_scale({}, parsed(R"({"scale_attn_weights": false})"), third, 64).rule,
            attention::ScaleRule::none);
  EXPECT_EQ(layer_scale({}, {}, third, 64).rule, attention::ScaleRule::inverse_sqrt_d_head);
  EXPECT_DOUBLE_EQ(layer_scale({}, parsed(R"({"query_pre_attn_scalar": 256})"), third, 64).factor, 1.0 / 16);
  EXPECT_DOUBLE_EQ(layer_scale({}, parsed(R"({"attention_multiplier": 0.5})"), third, 64).factor, 0.5);
  EXPECT_EQ(support::error_of([] { parsed(R"({"n_head": 0})"); }).substr(0, 20), "config.json: n_head:");
  EXPECT_EQ(support::error_of([] { parsed("[12]"); }), "config.json: expected an object, got a list of 1");
}

TEST(CheckpointConfig, OfNumbersThatNoModelHasIsRefused) {
  const auto error = [](const char* text) { return support::error_of([&] { parsed(text); }); };
  EXPECT_EQ(error(R"({"num_attention_heads": 2, "num_key_value_heads": 9223372036854775807})"),
            "config.json: num_key_value_heads: expected a whole number from 1 to 16777216, got "
            "9223372036854775807");
  EXPECT_EQ(error(R"({"num_attention_heads": 16777216})"), "no error");
  EXPECT_THAT(error(R"({"head_dim": 16777217})"), HasSubstr("head_dim: expected a whole number from 1 to"));
}

TEST(CheckpointConfig, OfAWindowBeyondAllTextsHasOneThatCanBeCountedWith) {
  EXPECT_EQ(parsed(R"({"sliding_window": 18446744073709551615})").positions.layers.window,
            std::size_t{1} << 31);
  EXPECT_EQ(parsed(R"({"sliding_window": 4096})").positions.layers.window, 4096u);
}

TEST(CheckpointHeads, ThatNoModelHasAreRefused) {
  const TensorFile file = open_tensors(folder + "gpt2.safetensors");
  EXPECT_THAT(support::error_of([&] { read_first(file, SIZE_MAX); }),
              HasSubstr("expected from 1 to 16777216 heads, got 18446744073709551615"));
  const ProjectionMapping mapping = find_layers(file).at(0).mapping;
  core::StopToken progress;
  const HeadCount wraps{2, (std::size_t{1} << 63) - 1, {}};  // 2 + 2 · (2^63 − 1) heads overflow to 0
  EXPECT_EQ(read_attention(file, mapping, wraps, progress).projections.key.weight->n_cols,
            read_first(file, 2).projections.key.weight->n_cols);
}

TEST(CheckpointHeads, AreSaidOrFoundBesideTheFileOrAskedFor) {
  const TensorFile tiny = open_tensors(FIXTURES "/tiny_gpt/attention.safetensors");
  const Checkpoint checkpoint = read_checkpoint(std::make_shared<const TensorFile>(tiny));
  const Layer layer = checkpoint.layers.at(0);
  const LayerRules rules = infer_layer_rules(checkpoint, layer, checkpoint.config);
  EXPECT_EQ(resolve_head_count(tiny, layer, rules, std::nullopt).n, 4u);
  EXPECT_EQ(resolve_head_count(tiny, layer, rules, 2).n, 2u);
  EXPECT_THAT(support::error_of([&] { resolve_head_count(tiny, layer, {}, std::nullopt); }),
              HasSubstr("the number of heads must be said"));
  Layer of_two = layer;
  of_two.n_heads = 2;
  EXPECT_THAT(support::error_of([&] { resolve_head_count(tiny, of_two, rules, 4); }),
              HasSubstr("expected 4 heads as said, got 2 by its tensors"));
}

TEST(TinyGpt, GivesTheGoldenQueriesKeysValuesAndWeightsOfEachLayer) {
  const TensorFile checkpoint = open_tensors(FIXTURES "/tiny_gpt/attention.safetensors");
  const TensorFile golden = open_tensors(FIXTURES "/tiny_gpt/golden.npz");
  const auto layers = find_layers(checkpoint);
  ASSERT_EQ(layers.size(), 4u);
  core::StopToken progress;
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const std::string name = "L" + std::to_string(layer) + ".";
    Attention read = read_attention(checkpoint, layers[layer].mapping, {4}, progress);
    attention::Model model;
    model.n_heads = read.n_heads;
    model.projections = std::move(read.projections);
    model.sequences = {{golden.read("tokens").texts, matrix(golden.read(name + "ln_1"))}};
    const attention::Trace trace = attention::attend(model);
    for (std::size_t head = 0; head < 4; ++head) {
      const auto worst = [&](const arma::mat& ours, const char* what) {
        return arma::abs(ours - matrix(golden.read(name + what), std::vector{head})).max();
      };
      // Golden vectors and embeddings are rounded to float32: 2^-24 of numbers up to 20.
      EXPECT_LT(worst(trace.at(attention::Stage::queries, head), "q"), 4e-6) << layer << "." << head;
      EXPECT_LT(worst(trace.at(attention::Stage::keys, head), "k"), 4e-6) << layer << "." << head;
      EXPECT_LT(worst(trace.at(attention::Stage::values, head), "v"), 4e-6) << layer << "." << head;
      EXPECT_LT(worst(trace.at(attention::Stage::weights, head), "attn"), 4e-6) << layer << "." << head;
    }
  }
}

}  // namespace
}  // namespace core::formats::checkpoints
