// Weights in several tensors, and tensors that would change a weight: they are applied or refused, never
// ignored.
#include <gmock/gmock.h>

#include "core/files/composed_weights.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/importing/import.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/checkpoint_of.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::importing {
namespace {

using formats::TensorShape;
using support::Written;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string attention_of_layer = "model.layers.0.self_attn.";

/// Returns the projections of a layer of Llama of width 2, identities, without those that are left out.
std::vector<Written> projections(const std::string& prefix = attention_of_layer,
                                 const std::string& without = "") {
  std::vector<Written> all;
  for (const std::string name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    if (name != without) all.push_back({prefix + name + ".weight", {2, 2}, {1, 0, 0, 1}});
  return all;
}

/// A folder with model.safetensors and other files.
class ComposedWeights : public testing::Test {
 protected:
  void write(std::vector<Written> tensors, const std::string& name = "model.safetensors") {
    support::write(directory_ / name, tensors);
  }
  void write_json(const std::string& name, const std::string& text) {
    support::put_bytes(directory_ / name, text);
  }
  formats::checkpoints::Checkpoint checkpoint(const std::string& name = "model.safetensors") const {
    return support::read_checkpoint(formats::open_tensors(directory_ / name));
  }
  std::vector<double> numbers(const std::string& tensor) const {
    return checkpoint().file->read(tensor).numbers;
  }
  ImportResult imported(const std::vector<std::string>& ignored = {}) const {
    return import_file(directory_ / "model.safetensors", {.n_heads = 1, .ignored = ignored}, {});
  }
  std::string refusal() const {
    return support::error_of([&] { imported(); });
  }

  support::TemporaryDirectory directory_;
};

// 1, 2, 0.5, -1.5 and 1, 1, 2, 2 in float8_e4m3.
const std::vector<float> bits{0x38, 0x40, 0x30, 0xbc, 0x38, 0x38, 0x40, 0x40};
const std::vector<double> unscaled{1, 2, 0.5, -1.5, 1, 1, 2, 2};

TEST_F(ComposedWeights, OfFp8AreMultipliedByScalesOfTheTensorRowsOrBlocks) {
  const struct {
    TensorShape shape;
    std::vector<float> scales;
    std::vector<double> factors;
  } cases[]{{{}, {3}, {3, 3, 3, 3, 3, 3, 3, 3}},
            {{1}, {3}, {3, 3, 3, 3, 3, 3, 3, 3}},
            {{1, 1}, {3}, {3, 3, 3, 3, 3, 3, 3, 3}},
            {{2}, {2, 10}, {2, 2, 2, 2, 10, 10, 10, 10}},
            {{2, 1}, {2, 10}, {2, 2, 2, 2, 10, 10, 10, 10}},
            {{1, 2}, {2, 10}, {2, 2, 10, 10, 2, 2, 10, 10}},
            {{2, 2}, {2, 3, 4, 5}, {2, 2, 3, 3, 4, 4, 5, 5}}};
  for (const char* name : {"weight_scale", "weight_scale_inv", "scale_weight", "scale_inv"})
    for (const auto& [shape, scales, factors] : cases) {
      write({{"a.q_proj.weight", {2, 4}, bits, "F8_E4M3"}, {"a.q_proj." + std::string(name), shape, scales}});
      std::vector<double> expected = unscaled;
      for (std::size_t k = 0; k < expected.size(); ++k) expected[k] *= factors[k];
      EXPECT_EQ(numbers("a.q_proj.weight"), expected) << name << formats::shape_text(shape);
      const auto file = checkpoint().file;
      EXPECT_EQ(file->tensors().size(), 1u);
      EXPECT_EQ(file->read("a.q_proj.weight", std::vector<std::size_t>{1}).numbers,
                std::vector<double>(expected.begin() + 4, expected.end()));
      EXPECT_EQ(file->read("a.q_proj.weight", std::vector<std::size_t>{1, 2}).numbers.at(0), expected[6]);
      EXPECT_THAT(file->notes(), ElementsAre("Applied: FP8 weights multiplied by their scales (1)."));
    }
}

TEST_F(ComposedWeights, OfFp8HaveBlocksOfTheSizeThatConfigJsonSays) {
  write_json("config.json",
             R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 3]}})");
  write({{"a.q_proj.weight", {2, 4}, bits, "F8_E4M3"}, {"a.q_proj.weight_scale_inv", {1, 2}, {2, 10}}});
  EXPECT_THAT(numbers("a.q_proj.weight"), ElementsAre(2, 4, 1, -15, 2, 2, 4, 20));
  write({{"a.q_proj.weight", {2, 4}, bits, "F8_E4M3"}});
  EXPECT_THAT(support::error_of([&] { checkpoint(); }),
              HasSubstr("model.safetensors: a.q_proj.weight: expected its scale a.q_proj.weight_scale"));
}

TEST_F(ComposedWeights, OfFp8WithScalesOfAnotherShapeAreRefused) {
  for (const TensorShape& shape : {TensorShape{3}, TensorShape{4}, TensorShape{2, 3}}) {
    write({{"a.q_proj.weight", {2, 4}, bits, "F8_E4M3"},
           {"a.q_proj.weight_scale", shape, std::vector<float>(*formats::count_of(shape), 1)}});
    EXPECT_THAT(
        support::error_of([&] { checkpoint(); }),
        HasSubstr("model.safetensors: a.q_proj.weight_scale: expected one scale for a.q_proj.weight, for "
                  "each of its 2 rows or for each of its blocks of 128 × 128, got " +
                  formats::shape_text(shape)));
  }
}

TEST_F(ComposedWeights, DoNotNeedScalesOfActivations) {
  write({{"a.q_proj.weight", {2, 4}, bits, "F8_E4M3"},
         {"a.q_proj.weight_scale", {}, {3}},
         {"a.q_proj.input_scale", {}, {7}},
         {"a.k_scale", {1}, {7}}});
  EXPECT_THAT(checkpoint().file->notes(),
              ElementsAre("Applied: FP8 weights multiplied by their scales (1).",
                          "Not applied: 2 scales of activations, as activations are not rounded to FP8."));
}

TEST_F(ComposedWeights, OfANormHaveRowsOfTheLengthsThatItGives) {
  for (const auto& [g, v] : {std::pair{"weight_g", "weight_v"},
                             {"parametrizations.weight.original0", "parametrizations.weight.original1"}}) {
    const std::string q = "a.q_proj.";
    write({{q + g, {2, 1}, {10, 2}}, {q + v, {2, 2}, {3, 4, 0, 5}}});
    EXPECT_THAT(numbers("a.q_proj.weight"), ElementsAre(6, 8, 0, 2));
    write({{q + g, {1, 2}, {10, 2}}, {q + v, {2, 2}, {3, 4, 0, 5}}});
    EXPECT_THAT(support::error_of([&] { checkpoint(); }),
                HasSubstr(q + g + ": expected lengths of the 2 rows of " + q + v + ", got [1, 2]"));
  }
  write({{"a.q_proj.parametrizations.weight.original", {2, 2}, {3, 4, 0, 5}}});
  EXPECT_THAT(
      support::error_of([&] { checkpoint(); }),
      HasSubstr("model.safetensors: a.q_proj.parametrizations.weight.original: expected a.q_proj.weight "
                "itself: save the model after"));
}

const std::string lora = R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2)";
// 2 / 1 · [3, 4]ᵀ · [1, 2], added to the identity.
const std::vector<double> adapted{7, 12, 8, 17};

std::vector<Written> adapter(const std::string& module, const std::string& end = ".weight") {
  return {{module + ".lora_A" + end, {1, 2}, {1, 2}}, {module + ".lora_B" + end, {2, 1}, {3, 4}}};
}

TEST_F(ComposedWeights, WithAdaptersArePlusTheirProductsWhereverTheAdapterIs) {
  const std::string q = attention_of_layer + "q_proj";
  write_json("adapter_config.json", lora + "}");
  const auto with = [](std::vector<Written> tensors, const std::vector<Written>& more) {
    tensors.insert(tensors.end(), more.begin(), more.end());
    return tensors;
  };
  // Of the whole state of a model of PEFT, with and without the name of the adapter.
  auto whole = projections("base_model.model." + attention_of_layer, "q_proj");
  whole.push_back({"base_model.model." + q + ".base_layer.weight", {2, 2}, {1, 0, 0, 1}});
  write(with(whole, adapter("base_model.model." + q, ".default.weight")));
  EXPECT_EQ(numbers(q + ".weight"), adapted);
  EXPECT_EQ(imported().model.projections->query.weight->at(1, 0), 12);  // used as x·W
  write(with(whole, adapter("base_model.model." + q)));
  EXPECT_EQ(numbers(q + ".weight"), adapted);
  // Next to the model, whose names may lack the modules around it.
  write(adapter("base_model.model." + q), "adapter_model.safetensors");
  for (const std::string& prefix : {attention_of_layer, std::string("layers.0.self_attn.")}) {
    write(projections(prefix));
    EXPECT_EQ(numbers(prefix + "q_proj.weight"), adapted) << prefix;
    EXPECT_EQ(numbers(prefix + "k_proj.weight"), (std::vector<double>{1, 0, 0, 1})) << prefix;
    EXPECT_EQ(checkpoint("").file->read(prefix + "q_proj.weight").numbers, adapted) << "of the folder";
    EXPECT_THAT(imported().import_report.not_used, Each(Not(HasSubstr("lora"))));
  }
}

TEST_F(ComposedWeights, WithAdaptersHaveTheFactorOfTheirSettings) {
  const std::string q = "a.q_proj";
  const auto first = [&](const std::string& settings) {
    write_json("adapter_config.json", settings);
    write({{q + ".weight", {2, 2}, {1, 0, 0, 1}},
           {q + ".lora_A.weight", {4, 2}, {1, 2, 0, 0, 0, 0, 0, 0}},
           {q + ".lora_B.weight", {2, 4}, {3, 0, 0, 0, 4, 0, 0, 0}}});
    return numbers(q + ".weight");
  };
  const std::string r4 = R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8)";
  EXPECT_EQ(first(r4 + "}"), adapted);
  EXPECT_EQ(first(R"({"peft_type": "LORA", "r": 1, "lora_alpha": 8, "rank_pattern": {"q_proj": 4}})"),
            adapted);
  EXPECT_EQ(first(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 4, "use_rslora": true})"), adapted);
  EXPECT_THAT(first(r4 + R"(, "fan_in_fan_out": true})"), ElementsAre(7, 8, 12, 17));
}

TEST_F(ComposedWeights, WithMagnitudesHaveRowsOfTheirLengths) {
  write_json("adapter_config.json", R"({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "use_dora": true})");
  write({{"a.q_proj.weight", {2, 2}, {0, 2, 0, 1}},
         {"a.q_proj.lora_A.weight", {1, 2}, {1, 0}},
         {"a.q_proj.lora_B.weight", {2, 1}, {3, 0}},
         {"a.q_proj.lora_magnitude_vector", {2}, {13, 5}}});
  const std::vector<double> got = numbers("a.q_proj.weight");
  EXPECT_NEAR(got[0], 13 * 3 / std::sqrt(13), 1e-12);
  EXPECT_NEAR(got[1], 13 * 2 / std::sqrt(13), 1e-12);
  EXPECT_EQ(got[2], 0);
  EXPECT_NEAR(got[3], 5, 1e-12);
}

TEST_F(ComposedWeights, WithAdaptersThatCannotBeAppliedAreRefused) {
  const std::string q = attention_of_layer + "q_proj";
  const auto error = [&](const std::string& settings, const std::vector<Written>& more,
                         bool has_model = true) {
    std::filesystem::remove(directory_ / "adapter_config.json");
    if (!settings.empty()) write_json("adapter_config.json", settings);
    std::vector<Written> tensors = has_model ? projections() : std::vector<Written>();
    tensors.insert(tensors.end(), more.begin(), more.end());
    write(tensors);
    return refusal();
  };
  EXPECT_THAT(error("", adapter(q)), HasSubstr("model.safetensors: " + q +
                                               ".lora_A.weight: expected "
                                               "adapter_config.json next to the file"));
  EXPECT_THAT(error(lora + "}", adapter(q), false),
              HasSubstr("got the adapter alone: merge it into its model"));
  EXPECT_THAT(error(lora + "}", {adapter(q)[0]}),
              HasSubstr("expected also " + q + ".lora_B.weight, got none"));
  EXPECT_THAT(error(lora + "}", {adapter(q)[1]}), HasSubstr(q + ".lora_B.weight: expected an adapter of"));
  EXPECT_THAT(error(R"({"peft_type": "IA3"})", adapter(q)), HasSubstr("peft_type: expected \"LORA\""));
  EXPECT_THAT(error(lora + R"(, "alpha_pattern": {"q_proj": 4}})", adapter(q)),
              HasSubstr("alpha_pattern: expected none"));
  EXPECT_THAT(error(lora + R"(, "modules_to_save": ["lm_head"]})", adapter(q)),
              HasSubstr("modules_to_save: expected none"));
  EXPECT_THAT(error(R"({"peft_type": "LORA", "r": 3, "lora_alpha": 2})", adapter(q)),
              HasSubstr("lora_A.weight: expected 3 rows, r of adapter_config.json, got [1, 2]"));
  auto biased = adapter(q);
  biased.push_back({q + ".lora_B.bias", {2}, {1, 1}});
  EXPECT_THAT(error(lora + "}", biased),
              HasSubstr(q + ".lora_B.bias: expected an adapter of lora_A and lora_B"));
  auto saved = adapter(q);
  saved.push_back({"base_model.model.lm_head.weight", {2, 2}, {1, 1, 1, 1}});
  EXPECT_THAT(error(lora + "}", saved), HasSubstr("base_model.model.lm_head.weight: expected an adapter of"));
}

TEST_F(ComposedWeights, AreRefusedWithTensorsThatMayChangeThemUnlessTheseAreIgnored) {
  for (const std::string name :
       {"q_proj.weight_scale", "k_proj.scale", "v_proj.SCB", "o_proj.qzeros", "q_proj.weight.absmax",
        "q_proj.adapter.weight", "o_proj.weight_g", "g_proj.weight", "gate.weight", "gate_proj.weight",
        "sink", "attn_sub_norm.weight", "norm.weight", "temperature", "q_bias"}) {
    std::vector<Written> tensors = projections();
    tensors.push_back({attention_of_layer + name, {2}, {1, 1}});
    write(tensors);
    EXPECT_THAT(refusal(),
                HasSubstr("model.safetensors: " + attention_of_layer + ": expected attention without " +
                          attention_of_layer + name + ", which cannot be computed yet; --ignore tensors"))
        << name;
    const ImportReport report = imported({"tensors"}).import_report;
    EXPECT_THAT(not_supported_words(report), ElementsAre(attention_of_layer + name));
  }
}

TEST_F(ComposedWeights, AreNotRefusedWithBuffersAndTensorsOfOtherParts) {
  for (const auto& [name, shape] : {std::pair{"self_attn.masked_bias", TensorShape{}},
                                    {"self_attn.bias", TensorShape{1, 1, 2, 2}},
                                    {"self_attn.rotary_emb.inv_freq", TensorShape{1}},
                                    {"mlp.gate_proj.weight", TensorShape{2, 2}},
                                    {"mlp.gate_proj.weight_scale", TensorShape{1}},
                                    {"input_layernorm.weight", TensorShape{2}}}) {
    std::vector<Written> tensors = projections();
    tensors.push_back(
        {"model.layers.0." + std::string(name), shape, std::vector<float>(*formats::count_of(shape), 1)});
    write(tensors);
    EXPECT_EQ(refusal(), "no error") << name;
  }
  // A block in one file without modules: the gate is that of the MLP.
  std::vector<Written> flat = projections("");
  for (const char* name : {"gate_proj.weight", "up_proj.weight"})
    flat.push_back({name, {2, 2}, {1, 1, 1, 1}});
  write(flat);
  EXPECT_EQ(refusal(), "no error");
}

/// Returns a file with one more tensor.
std::shared_ptr<const formats::TensorFile> with_tensor(const formats::TensorFile& file,
                                                       const std::string& name) {
  std::vector<formats::TensorEntry> entries;
  for (const formats::TensorInfo& info : file.tensors())
    entries.push_back(
        {info,
         [file, own = info.name](std::span<const std::size_t> leading, const StopToken& progress) {
           return file.read(own, leading, progress);
         },
         {}});
  formats::Tensor more;
  more.name = name, more.shape = {1}, more.numbers = {2};
  entries.push_back(formats::make_entry(std::move(more)));
  return std::make_shared<const formats::TensorFile>(file.path(), file.format(), std::move(entries));
}

// Each projection of each layer of the checkpoints of all families.
TEST(LayersOfEveryFamily, AreRefusedWithAScaleAnAdapterOrAGate) {
  const std::filesystem::path families = FIXTURES "/checkpoints/families";
  std::vector<std::string> ignored;
  for (const auto& feature : formats::checkpoints::features())
    if (feature.name != std::string_view("tensors")) ignored.emplace_back(feature.name);
  for (const auto& family : std::filesystem::directory_iterator(families)) {
    if (!family.is_directory()) continue;
    const formats::TensorFile file = formats::open_tensors(family.path());
    const auto layers = formats::checkpoints::find_layers(file);
    ASSERT_FALSE(layers.empty()) << family;
    for (std::size_t k = 0; k < layers.size(); ++k) {
      std::optional<std::size_t> n_heads;
      const auto error = [&](const std::string& more) {
        return support::error_of([&] {
          const auto checkpoint = more.empty()
                                      ? support::read_checkpoint(file)
                                      : formats::checkpoints::read_checkpoint(with_tensor(file, more));
          import_tensors(checkpoint, {.layer = std::to_string(k), .n_heads = n_heads, .ignored = ignored},
                         {});
        });
      };
      if (error("").find("--heads") != std::string::npos) n_heads = 2;
      ASSERT_EQ(error(""), "no error") << family << k;
      const auto stem_of = [](const std::string& weight) {
        return weight.ends_with(".weight") ? weight.substr(0, weight.size() - 6) : weight + ".";
      };
      for (const std::string& weight : formats::checkpoints::projection_tensors(layers[k].mapping)) {
        if (weight.ends_with("bias")) continue;
        for (const char* end : {"weight_scale", "lora_A.weight"})
          EXPECT_THAT(error(stem_of(weight) + end), HasSubstr(stem_of(weight) + end));
      }
      const std::string query = stem_of(layers[k].mapping.query.weights.front());
      const std::string gate = query.substr(0, query.rfind('.', query.size() - 2) + 1) + "g_proj.weight";
      EXPECT_THAT(error(gate), HasSubstr(gate));
    }
  }
}

// [d_model, heads, d_head] is x·W with the columns of a head together.
TEST_F(ComposedWeights, OfKerasAndFlaxAreKernelsOfHeads) {
  const std::vector<float> kernel{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // [3, 2, 2]
  for (const auto& [point, output] : {std::pair{".", "attention_output"}, {".", "out"}, {"/", "out"}}) {
    std::vector<Written> tensors;
    const std::string prefix = "encoder" + std::string(point) + "attention" + point;
    for (const char* name : {"query", "key", "value"}) {
      tensors.push_back({prefix + name + point + "kernel", {3, 2, 2}, kernel});
      tensors.push_back({prefix + name + point + "bias", {2, 2}, {1, 2, 3, 4}});
    }
    tensors.push_back({prefix + output + point + "kernel", {2, 2, 3}, kernel});
    tensors.push_back({prefix + output + point + "bias", {3}, {1, 2, 3}});
    write(tensors);
    const ImportResult result =
        import_file(directory_ / "model.safetensors", {.ignored = std::vector<std::string>()}, {});
    EXPECT_EQ(result.model.n_heads, 2u);
    const auto& p = *result.model.projections;
    const arma::mat expected = arma::mat(arma::conv_to<arma::rowvec>::from(kernel)).t();
    EXPECT_TRUE(arma::approx_equal(*p.query.weight, arma::reshape(expected, 4, 3).t(), "absdiff", 0));
    EXPECT_TRUE(arma::approx_equal(**p.value.bias, arma::mat{{1, 2, 3, 4}}, "absdiff", 0));
    EXPECT_TRUE(arma::approx_equal(*p.output->weight, arma::reshape(expected, 3, 4).t(), "absdiff", 0));
    EXPECT_EQ(result.import_report.not_used, std::vector<std::string>());
  }
}

}  // namespace
}  // namespace core::importing
