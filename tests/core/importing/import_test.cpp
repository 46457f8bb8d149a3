#include "core/importing/import.hpp"

#include <gmock/gmock.h>

#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/out/numpy.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::importing {
namespace {

using support::Written;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string fixtures = FIXTURES;

ImportResult imported(const std::filesystem::path& path, const Choices& choices = {}) {
  return import_file(path, choices, {});
}

TEST(ImportedCheckpoint, WithEmbeddingsGivesTheGoldenWeights) {
  const Choices choices{
      .layer = "2", .embeddings = fixtures + "/tiny_gpt/golden.npz", .embeddings_tensor = "L2.ln_1"};
  const ImportResult result = imported(fixtures + "/tiny_gpt/attention.safetensors", choices);
  EXPECT_THAT(result.notes, IsEmpty());
  EXPECT_EQ(result.model.n_heads, 4u);  // as config.json says
  EXPECT_EQ(result.model.sequences[0].tokens[0], "Mr");
  const arma::mat golden =
      formats::matrix(formats::open_tensors(choices.embeddings).read("L2.attn"), std::vector<std::size_t>{0});
  EXPECT_LT(arma::abs(*attention::attend(result.model).at(attention::Stage::weights, 0) - golden).max(),
            1e-6);
}

TEST(ImportedCheckpoint, WithoutEmbeddingsDrawsThemAndSaysSo) {
  const ImportResult result = imported(fixtures + "/tiny_gpt/attention.safetensors");
  EXPECT_EQ(result.model.n_tokens(), 8u);
  EXPECT_EQ(result.model.d_model(), 128u);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("No embeddings were given")));
}

TEST(ImportedCheckpoint, MasksAndScalesAsItsFamilyDoes) {
  const Choices two_heads{.n_heads = 2};
  EXPECT_FALSE(imported(fixtures + "/checkpoints/bert.safetensors", two_heads).model.mask.causal);
  const ImportResult llama = imported(fixtures + "/checkpoints/llama.safetensors", two_heads);
  EXPECT_TRUE(llama.model.mask.causal);
  EXPECT_THAT(llama.import_report.not_supported, testing::IsEmpty());
  EXPECT_EQ(llama.model.additions.positions.rotary, core::positions::Rotary());
  EXPECT_THAT(llama.import_report.assumed, Contains("causal, as Llama is, by its names"));
}

TEST(ImportedCheckpoint, CanBeMappedByHand) {
  Choices choices;
  choices.n_heads = 2;
  choices.mapping.emplace();
  choices.mapping->query = {{"model.layers.0.self_attn.q_proj.weight"}, {}, true};
  choices.mapping->key = choices.mapping->value = choices.mapping->query;
  const ImportResult result = imported(fixtures + "/checkpoints/llama.safetensors", choices);
  EXPECT_TRUE(result.model.projections->query == result.model.projections->key);
  EXPECT_FALSE(result.model.projections->output.has_value());
}

TEST(ImportedCheckpoint, RefusesEmbeddingsOfAnotherWidth) {
  Choices choices{.layer = "0", .embeddings = fixtures + "/formats/npy/row.npy"};
  EXPECT_THAT(support::error_of([&] { imported(fixtures + "/tiny_gpt/attention.safetensors", choices); }),
              HasSubstr("row.npy: expected a tensor called embeddings, or one to be chosen among row"));
  const support::TemporaryDirectory directory;
  support::put_bytes(directory / "x.csv", "1,2\n3,4\n");
  choices.embeddings = directory / "x.csv";
  EXPECT_THAT(
      support::error_of([&] { imported(fixtures + "/tiny_gpt/attention.safetensors", choices); }),
      HasSubstr("x.csv: expected embeddings of 128 columns, as many as the projections have inputs, got 2"));
}

TEST(ImportedMatrix, IsEmbeddingsWithTheNamesOfItsRows) {
  const support::TemporaryDirectory directory;
  support::put_bytes(directory / "x.csv", ",a,b\nThe,1,2\ndog,3,4\n");
  const ImportResult result = imported(directory / "x.csv");
  EXPECT_THAT(result.model.sequences[0].tokens, ElementsAre("The", "dog"));
  EXPECT_FALSE(result.model.projections.has_value());
  EXPECT_TRUE(support::is_near(*result.model.sequences[0].embeddings, arma::mat{{1, 2}, {3, 4}}, 0));
}

TEST(ImportedMatrix, OfNoNumbersIsRefusedHoweverManyTokensItClaims) {
  const support::TemporaryDirectory directory;
  const auto path = directory / "x.npy";
  support::put_bytes(path, formats::npy_header({std::size_t{1} << 62, 0}));
  EXPECT_EQ(support::error_of([&] { imported(path); }),
            path.string() + ": x: expected at least one number, got the shape [4611686018427387904, 0]");
}

TEST(ImportedMatrix, OfThreeDimensionsIsABatch) {
  const ImportResult result = imported(fixtures + "/formats/npy/i2.little.C.npy");
  EXPECT_EQ(result.model.sequences.size(), 2u);
  EXPECT_EQ(result.model.n_tokens(), 3u);
}

TEST(ImportedSession, KeepsWhatWasLookedAtAndLeavesNothingToChoose) {
  const std::string path = fixtures + "/../../assets/examples/tiny_gpt/layer0.json";
  EXPECT_THAT(imported(path).view, HasSubstr("\"tokens\""));
  EXPECT_THAT(support::error_of([&] { imported(path, {.layer = "1"}); }),
              HasSubstr("layer0.json: it is a session"));
}

TEST(ImportedSession, IsToldFromTensorsByItsFirstSign) {
  EXPECT_FALSE(is_session(fixtures + "/formats/printed/json.txt"));
  EXPECT_TRUE(is_session(fixtures + "/sessions/batch.json"));
  const support::TemporaryDirectory directory;  // a .safetensors file with a header of 0x7b20 bytes
  support::put_bytes(directory / "m.safetensors", std::string(" {\0\0\0\0\0\0{}", 10));
  EXPECT_FALSE(is_session(directory / "m.safetensors"));
  support::put_bytes(directory / "wrong.json", "hello\n");
  EXPECT_TRUE(is_session(directory / "wrong.json")) << "so that its JSON is said to be wrong";
  support::put_bytes(directory / "numbers.json", "[[1, 2], [3, 4]]\n");
  EXPECT_FALSE(is_session(directory / "numbers.json"));
}

TEST(ImportedTable, TakesItsFirstLineForWhatItIsSaidToBe) {
  const support::TemporaryDirectory directory;
  const auto opened = [&](bool names) { return imported(directory / "x.csv", {.index = {.line = names}}); };
  support::put_bytes(directory / "x.csv", "1,2,3\n0.5,0.25,3\n1,2,4\n");
  EXPECT_EQ(opened(false).model.n_tokens(), 3u);
  EXPECT_THAT(opened(false).import_report.assumed, Not(Contains(HasSubstr("first line"))));
  const ImportResult named = opened(true);
  EXPECT_EQ(named.model.n_tokens(), 2u);
  EXPECT_EQ((*named.model.sequences[0].embeddings)(0, 1), 0.25);
  EXPECT_THAT(named.import_report.assumed, Not(Contains(HasSubstr("first line"))));
  support::put_bytes(directory / "x.csv", "1,2,4\n0.5,0.25,3\n");
  EXPECT_THAT(support::error_of([&] { opened(true); }),
              HasSubstr("x.csv: expected a table whose first line is 0, 1, 2 … or 1, 2, 3 …"));
}

TEST(QuantizedWeights, AreRefusedByTheNameOfTheirScheme) {
  const support::TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  const auto refusal = [&](const std::vector<Written>& tensors) {
    support::write(path, tensors);
    return support::error_of([&] { imported(path); });
  };
  const std::string q = "model.layers.0.self_attn.q_proj.";
  const Written packed{q + "qweight", {1, 8}, {1, 2, 3, 4, 5, 6, 7, 8}, "I32"};
  const Written scales{q + "scales", {1, 8}, {1, 1, 1, 1, 1, 1, 1, 1}};
  EXPECT_THAT(
      refusal({packed, scales, {q + "g_idx", {8}, {0, 0, 0, 0, 0, 0, 0, 0}, "I32"}}),
      HasSubstr(q + "qweight: expected weights as floating-point numbers, got int32 quantised by GPTQ"));
  EXPECT_THAT(refusal({packed, {q + "scales", {1, 64}, std::vector<float>(64, 1)}}), HasSubstr("by AWQ"));
  const Written bytes{q + "weight", {2, 2}, {1, 2, 3, 4}, "I8"};
  EXPECT_THAT(refusal({bytes, {q + "SCB", {2}, {1, 1}}}), HasSubstr("int8 quantised by bitsandbytes"));
  EXPECT_THAT(refusal({bytes, {q + "scale", {1}, {1}}}),
              HasSubstr("quantised by a scheme with " + q + "scale"));
  EXPECT_THAT(refusal({bytes, {q + "weight_scale", {1}, {1}}}), HasSubstr(q + "weight_scale"));
  // Integers without a scale are plain numbers, and so are integers next to the scale of a dump.
  EXPECT_EQ(refusal({{"x", {2, 2}, {1, 2, 3, 4}, "I8"}}), "no error");
  EXPECT_EQ(refusal({{"q", {2, 2}, {1, 2, 3, 4}},
                     {"k", {2, 2}, {1, 2, 3, 4}},
                     {"scale", {1}, {1}},
                     {"mask", {2, 2}, {1, 0, 1, 1}, "I32"}}),
            "no error");
}

TEST(ImportedCheckpoint, TooWideIsRefusedBeforeEmbeddingsAreDrawn) {
  const support::TemporaryDirectory directory;
  const auto path = directory / "wide.safetensors";
  const support::Written query{"W_query.weight", {1, 16385}, std::vector<float>(16385, 0.5f)};
  support::Written key = query, value = query;
  key.name = "W_key.weight", value.name = "W_value.weight";
  support::write(path, {query, key, value});
  EXPECT_EQ(support::error_of([&] { imported(path, {.n_heads = 1}); }),
            path.string() + ": embeddings: expected at most 16384 columns (d_in), got 16385");
}

}  // namespace
}  // namespace core::importing
