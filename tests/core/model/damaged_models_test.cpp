// Models whose files are damaged, or whose numbers are not finite.
#include <gmock/gmock.h>

#include <cstring>

#include <filesystem>
#include "core/model/transformer.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::transformer {
namespace {

using formats::Tensor;
using support::bytes_of;
using support::error_of;
using support::put_bytes;

/// A model whose tensors can be changed before its weights are built.
struct Changed {
  explicit Changed(const std::string& name)
      : model(goldens::opened(goldens::folder + name)), architecture(model->architecture()) {
    for (const auto& info : model->weights().file().tensors())
      tensors.push_back(model->weights().file().read(info.name));
  }
  Tensor& tensor(const std::string& name) {
    return *std::ranges::find_if(tensors, [&](const Tensor& t) { return t.name.ends_with(name); });
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const Tensor& t) { return t.name.ends_with(name); });
  }
  void add(const std::string& name, const formats::TensorShape& shape, double number) {
    Tensor added;
    added.name = name, added.shape = shape;
    added.numbers.assign(*formats::count_of(shape), number);
    tensors.push_back(std::move(added));
  }
  void reshape(const std::string& name, const formats::TensorShape& shape) {
    tensor(name).shape = shape;
    tensor(name).numbers.resize(*formats::count_of(shape));
  }
  std::shared_ptr<const Transformer> made() const {
    const auto weights = std::make_shared<const Weights>(
        support::tensors_in_memory(tensors, model->weights().file().format()), architecture, 1 << 24);
    return std::make_shared<const Transformer>(
        "memory", architecture, weights, std::make_shared<const tokenizers::Tokenizer>(model->tokenizer()));
  }
  std::string error() const {
    return error_of([&] { made(); });
  }
  arma::fmat last() const {
    goldens::Tools tools;
    const auto of = made();
    return of->residual(*of->run({5, 9, 2, 14}, {}, tools.context), architecture.sizes.n_layers,
                        tools.context);
  }

  std::shared_ptr<const Transformer> model;
  Architecture architecture;
  std::vector<Tensor> tensors;
};

bool are_equal(const arma::fmat& a, const arma::fmat& b) {
  return arma::approx_equal(a, b, "absdiff", 0);
}

TEST(MissingBias, OfKeysCountsAsZeros) {
  Changed zeros("qwen2"), none("qwen2");
  for (const std::string layer : {"0", "1"}) {
    const std::string name = "layers." + layer + ".self_attn.k_proj.bias";
    std::ranges::fill(zeros.tensor(name).numbers, 0);
    none.remove(name);
  }
  EXPECT_TRUE(are_equal(none.last(), zeros.last()));
  EXPECT_FALSE(are_equal(none.last(), Changed("qwen2").last()));
}

TEST(MissingBias, OfOneHalfOfAGatedMlpCountsAsZeros) {
  const std::string mlp = "model.layers.1.mlp.";
  Changed zeros("llama"), none("llama");
  const std::size_t d_hidden = none.architecture.sizes.d_hidden;
  for (Changed* each : {&zeros, &none}) each->add(mlp + "up_proj.bias", {d_hidden}, 0.5);
  zeros.add(mlp + "gate_proj.bias", {d_hidden}, 0);
  EXPECT_TRUE(are_equal(none.last(), zeros.last()));
  EXPECT_FALSE(are_equal(none.last(), Changed("llama").last()));
}

TEST(TensorShapes, OfEverythingThatIsReadAreChecked) {
  const struct {
    const char *model, *tensor;
    formats::TensorShape shape;
    const char* expected;
  } cases[]{
      {"bert", "token_type_embeddings.weight", {2, 1}, "at least 1 rows of 24 numbers, got [2, 1]"},
      {"bert", "transform.dense.weight", {12, 24}, "[24, 24] by the sizes of the model, got [12, 24]"},
      {"bert", "transform.dense.bias", {12}, "[24] by the sizes of the model, got [12]"},
      {"bert", "transform.LayerNorm.weight", {12}, "[24] by the sizes of the model, got [12]"},
      {"bert", "transform.LayerNorm.bias", {48}, "[24] by the sizes of the model, got [48]"},
      {"bert", "cls.predictions.bias", {259}, "at least 260 numbers, got [259]"},
      {"roberta", "lm_head.bias", {2, 380}, "at least 380 numbers, got [2, 380]"},
      {"roberta", "position_embeddings.weight", {1, 24}, "at least 66 rows of 24 numbers, got [1, 24]"},
  };
  for (const auto& [model, tensor, shape, expected] : cases) {
    Changed changed(model);
    changed.reshape(tensor, shape);
    EXPECT_EQ(changed.error(), "memory: " + changed.tensor(tensor).name + ": expected " + expected);
  }
}

const char* const models_of_families[]{
    "bert",    "bloom",      "cohere2",   "distilbert", "gemma2",  "gpt2",      "gpt_neox",   "llama",
    "mistral", "modernbert", "qwen2_moe", "qwen3",      "roberta", "gpt2.gguf", "llama.gguf", "qwen3.gguf"};

// A scale, an adapter and a gate of any weight that a layer reads are refused by their names.
TEST(UnknownTensors, ThatMayChangeAWeightAreRefusedInEveryFamily) {
  for (const std::string name : models_of_families) {
    const Changed model(name);
    EXPECT_EQ(model.error(), "no error") << name;
    std::vector<std::string> stems;
    for (const std::string& tensor : model.model->weights().tensors_of(1))
      if (tensor.ends_with(".weight")) stems.push_back(tensor.substr(0, tensor.size() - 6));
    ASSERT_GE(stems.size(), 4u) << name;
    for (const std::string& stem : stems)
      for (const char* end : {"weight_scale", "lora_A.weight", "SCB", "weight.absmax", "magnitude"}) {
        Changed changed(name);
        changed.add(stem + end, {1}, 2);
        EXPECT_EQ(changed.error(), "memory: " + stem + end + ": expected a model of the family " +
                                       changed.architecture.family +
                                       " without this tensor, whose use is not known");
      }
    const std::string& first = stems.front();
    const std::string parent = first.substr(0, first.rfind('.', first.size() - 2) + 1);
    for (const char* gate : {"g_proj.weight", "gate", "sinks"}) {
      Changed changed(name);
      changed.add(parent + gate, {1}, 2);
      EXPECT_THAT(changed.error(), testing::StartsWith("memory: " + parent + gate + ": expected a model"))
          << name;
    }
  }
}

TEST(UnknownTensors, ThatAreBuffersOrOfOtherPartsAreNotRefused) {
  Changed gpt2("gpt2"), llama("llama"), bert("bert");
  gpt2.add("transformer.h.0.attn.masked_bias", {}, -1e4);
  llama.add("model.layers.1.self_attn.rotary_emb.inv_freq", {4}, 1);
  llama.add("model.layers.9.self_attn.g_proj.weight", {4}, 1);  // a layer that the model does not run
  llama.add("vision_tower.layers.0.self_attn.q_proj.weight_scale", {4}, 1);
  bert.add("cls.seq_relationship.weight", {2, 24}, 1);
  bert.add("bert.pooler.dense.weight", {24, 24}, 1);
  for (const Changed* each : {&gpt2, &llama, &bert}) EXPECT_EQ(each->error(), "no error");
}

// A Llama with FP8 projections and a scale for each; the logit is that of transformers with the scaled
// weights.
TEST(Fp8Model, PredictsWithItsScales) {
  const support::TemporaryDirectory directory;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(goldens::folder + "llama_fp8/" + name, directory / name);
  std::filesystem::copy_file(goldens::tiny_gpt + "/tokenizer.json", directory / "tokenizer.json");
  const auto model = goldens::opened(directory.path());
  const goldens::Tools tools;
  const auto pass = model->run({988, 303, 389}, {}, tools.context);
  EXPECT_NEAR(model->next(*pass, 2, tools.context).max(), 4.9425, 2e-4);
}

/// Other norms of heads are refused, because a displayed layer could not compute them as the pass does.
TEST(NormsOfHeads, StandOnBothSidesWithoutBiases) {
  Changed one_side("qwen3"), biased("qwen3");
  one_side.remove("layers.1.self_attn.k_norm.weight");
  EXPECT_EQ(one_side.error(),
            "memory: expected a tensor model.layers.1.self_attn.k_norm.weight, there is none");
  biased.add("model.layers.0.self_attn.q_norm.bias", {8}, 1);
  EXPECT_EQ(biased.error(),
            "memory: model.layers.0.self_attn.q_norm.bias: expected none, as norms of heads have factors "
            "alone");
  Changed other_norm("qwen3");
  other_norm.architecture.norm.kind = NormKind::layer;
  EXPECT_EQ(
      other_norm.error(),
      "memory: model.layers.0.self_attn.q_norm.weight: expected none, as only RMS norms of heads can be "
      "computed");
}

/// Returns the error of the logits after four tokens when one number of a tensor is replaced.
std::string error_of_scores(const std::string& model, const std::string& tensor, std::size_t at,
                            double number) {
  Changed changed(model);
  changed.tensor(tensor).numbers.at(at) = number;
  const auto made = changed.made();
  goldens::Tools tools;
  return error_of([&] {
    const PassRef pass = made->run({5, 9, 2, 14}, {}, tools.context);
    for (std::size_t row = 0; row < 4; ++row) made->next(*pass, row, tools.context);
  });
}

TEST(NumbersThatAreNone, AreRefusedByTheTensorWhereTheyBegin) {
  const std::string begin = "memory: numbers that are not finite begin in ";
  for (const double number : {std::nan(""), 1 / 0., -1 / 0.}) {
    EXPECT_EQ(error_of_scores("gpt2", "wte.weight", 300 * 24 + 3, number),  // not a token of the text
              begin + "what predicts tokens, in transformer.wte.weight, row 300");
    EXPECT_EQ(error_of_scores("gpt2", "wte.weight", 9 * 24, number),
              begin + "the embeddings, in transformer.wte.weight, row 9");
    EXPECT_EQ(error_of_scores("gpt2", "wpe.weight", 2 * 24, number),
              begin + "the embeddings, in transformer.wpe.weight, row 2");
    EXPECT_EQ(error_of_scores("gpt2", "ln_f.bias", 7, number),
              begin + "what predicts tokens, in transformer.ln_f.bias");
    EXPECT_EQ(error_of_scores("gpt2", "h.1.mlp.c_fc.weight", 2 * 96, number),
              begin + "layer 1, in transformer.h.1.mlp.c_fc.weight, row 2");
    EXPECT_EQ(error_of_scores("gpt_neox", "embed_out.weight", 200 * 32 + 1, number),
              begin + "what predicts tokens, in embed_out.weight, row 200");
    EXPECT_EQ(error_of_scores("bert", "cls.predictions.bias", 11, number),
              begin + "what predicts tokens, in cls.predictions.bias");
  }
  EXPECT_EQ(error_of_scores("gpt2", "wte.weight", 300 * 24 + 3, 1), "no error");
  EXPECT_EQ(error_of_scores("gpt2", "ln_f.weight", 7, 3e38),  // finite, but its products overflow
            begin + "what predicts tokens, of finite weights");
}

/// A copy of a model that can be damaged.
struct Copy {
  explicit Copy(const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator(goldens::folder + name))
      std::filesystem::copy(entry.path(), dir.path());
  }
  std::string place() const { return dir.path().string(); }
  std::string error() const {
    return error_of([&] { goldens::opened(place()); });
  }
  void replace(const std::string& file, const std::string& what, const std::string& by) const {
    std::string text = bytes_of(dir / file);
    const std::size_t at = text.find(what);
    ASSERT_NE(at, text.npos) << what;
    text.replace(at, what.size(), by);
    put_bytes(dir / file, text);
  }
  support::TemporaryDirectory dir;
};

TEST(DamagedModel, ConfigurationIsRefusedInOneLine) {
  const Copy copy("llama");
  const std::string place = copy.place() + "/config.json: ";
  copy.replace("config.json", "\"hidden_size\": 24", "\"hidden_size\": 25");
  EXPECT_NE(copy.error().find("expected"), std::string::npos) << copy.error();
  copy.replace("config.json", "\"hidden_size\": 25", "\"hidden_size\": 24");
  copy.replace("config.json", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3");
  EXPECT_EQ(copy.error(), place + "expected a number of heads that heads of keys divide, got 4 and 3");
  copy.replace("config.json", "\"num_key_value_heads\": 3", "\"num_key_value_heads\": 2");
  copy.replace("config.json", "\"rope_type\": \"llama3\"", "\"rope_type\": \"ntk\"");
  EXPECT_EQ(copy.error(), place +
                              "rope_parameters.rope_type: expected rotary positions of type default, linear, "
                              "llama3, yarn, dynamic or longrope, as others cannot be computed yet, got "
                              "\"ntk\"");
  copy.replace("config.json", "\"model_type\": \"llama\"", "\"model_type\": \"mamba\"");
  EXPECT_EQ(copy.error(), place +
                              "model_type: expected a model type whose whole models are supported, which "
                              "docs/models-and-files.md lists, got \"mamba\"");
}

TEST(DamagedModel, MissingTensorsAndOtherShapesAreNamed) {
  const Copy copy("gpt2");
  const std::string file = copy.place() + "/model.safetensors: ";
  copy.replace("model.safetensors", "h.1.mlp.c_fc.weight", "h.1.mlp.c_xx.weight");
  EXPECT_EQ(copy.error(), file + "expected a tensor transformer.h.1.mlp.c_fc.weight, there is none");
  copy.replace("model.safetensors", "h.1.mlp.c_xx.weight", "h.1.mlp.c_fc.weight");
  copy.replace("config.json", "\"n_inner\": null", "\"n_inner\": 90");
  EXPECT_EQ(copy.error(), file +
                              "transformer.h.0.mlp.c_fc.weight: expected [24, 90] by the sizes of the model, "
                              "got [24, 96]");
}

TEST(DamagedModel, TokenizersOfOtherModelsAreRefused) {
  const Copy copy("bert");
  std::filesystem::copy_file(goldens::folder + "llama/tokenizer.json", copy.dir / "tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(copy.error(),
            copy.place() + ": expected a tokenizer of at most the model's 260 tokens, got one of 380");
}

TEST(DamagedModel, LongPromptsAndTokensBeyondTheVocabularyAreRefused) {
  const auto model = goldens::opened(goldens::folder + "gpt2");
  goldens::Tools tools;
  EXPECT_EQ(error_of([&] { goldens::run(*model, std::vector<std::size_t>(65), tools); }),
            "expected at most 64 tokens, as many as the model takes at once, got 65");
  EXPECT_EQ(error_of([&] { goldens::run(*model, {1, 380}, tools); }), "expected tokens below 380, got 380");
  EXPECT_EQ(error_of([&] { goldens::run(*model, {}, tools); }), "the text has no tokens to run the model on");
}

}  // namespace

TEST(DamagedModel, MissingAndTruncatedShardsAreNamed) {
  const Copy copy("llama");
  const std::string shard = "model-00002-of-00003.safetensors";
  const std::string bytes = bytes_of(copy.dir / shard);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  put_bytes(copy.dir / shard, bytes.substr(0, bytes.size() - 100));
  EXPECT_EQ(copy.error(),
            copy.place() + "/" + shard + ": expected " + std::to_string(bytes.size() - 8 - header) +
                " bytes of tensors after the header, got " + std::to_string(bytes.size() - 108 - header));
  std::filesystem::remove(copy.dir / shard);
  EXPECT_NE(copy.error().find(shard), std::string::npos) << copy.error();
}

TEST(DamagedModel, NeighborsThatTurnInPartAreRefused) {
  const support::TemporaryDirectory directory;
  std::string bytes = bytes_of(goldens::folder + "llama.gguf");
  const std::string key = "llama.rope.dimension_count";
  bytes.replace(bytes.find(key) + key.size() + 4, 4, std::string("\2\0\0\0", 4));
  put_bytes(directory / "part.gguf", bytes);
  EXPECT_EQ(error_of([&] { goldens::opened((directory / "part.gguf").string()); }),
            (directory / "part.gguf").string() +
                ": llama.rope.dimension_count: expected the 6 numbers of a head, as pairs of neighbors among "
                "fewer columns are not supported yet, got 2");
}

TEST(DamagedModel, PositionsBeginBehindThoseOfThePadding) {
  const Copy copy("roberta");
  copy.replace("config.json", "\"max_position_embeddings\": 66", "\"max_position_embeddings\": 1");
  EXPECT_EQ(copy.error(),
            copy.place() +
                "/config.json: max_position_embeddings: expected more than pad_token_id + 1 = 2, "
                "got 1");
  copy.replace("config.json", "\"max_position_embeddings\": 1", "\"max_position_embeddings\": 66");
  copy.replace("config.json", "\"pad_token_id\": 1", "\"pad_token_id\": 18446744073709551615");
  EXPECT_NE(copy.error().find("expected more than pad_token_id + 1"), std::string::npos) << copy.error();
  copy.replace("config.json", "\"pad_token_id\": 18446744073709551615", "\"pad_token_id\": 0");
  EXPECT_EQ(goldens::opened(copy.place())->architecture().first_position, 1u);
  EXPECT_EQ(goldens::opened(copy.place())->architecture().sizes.n_context, 65u);
}

}  // namespace core::transformer
