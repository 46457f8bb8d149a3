#include "core/importing/import.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::importing {
namespace {

using attention::Stage;
using support::rows_of_two;
using support::write;
using support::Written;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct StagesInAFile : testing::Test {
  support::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "dump.safetensors";

  Imported imported(const Choices& choices = {}) const {
    core::Token progress;
    return import_file(path, choices, progress);
  }
  std::vector<std::string> layers(const Choices& choices = {}) const {
    core::Token progress;
    return layers_in(formats::open_tensors(path), choices, progress);
  }
  static Choices layer(const std::string& name) {
    Choices choices;
    choices.layer = name;
    return choices;
  }
};

TEST_F(StagesInAFile, OfFourDimensionsHaveLayersOfWhichOneIsGiven) {
  write(path, {rows_of_two("attn_weights", {3, 2, 2, 2})});
  EXPECT_EQ(layers().size(), 3u);
  const Imported second = imported(layer("1"));
  EXPECT_EQ(second.model.n_heads, 2u);
  EXPECT_EQ(second.model.n_tokens(), 2u);
  EXPECT_THAT(second.notes, ElementsAre("Given weights [3, 2, 2, 2]: layer 1 of 3."));
  // Of layer 1, head 1, row 1 is the eighth row of all.
  EXPECT_FLOAT_EQ((*second.model.given.find(Stage::weights)->matrices[1])(1, 0), 0.07);
  EXPECT_EQ(imported().model.given.find(Stage::weights)->matrices[0]->at(0, 0), 0) << "the first, unasked";
}

TEST_F(StagesInAFile, OfNoNumbersHaveNoLayersHoweverManyTheyClaim) {
  write(path, {{"w", {std::size_t{1} << 40, 1, 1, 0}, {}}});
  Choices choices;
  choices.stages = {{Stage::weights, {"w"}}};
  EXPECT_THAT(support::error_of([&] { layers(choices); }),
              HasSubstr("w: expected at least one number, got ["));
}

TEST(StagesBeyondTheLimits, AreRefusedBeforeTheyAreRead) {
  const auto refusal = [](const char* name, const formats::Shape& shape) {
    formats::TensorInfo info;
    info.name = name;
    info.shape = shape;
    const auto read = [&](std::span<const std::size_t> leading, const core::Token&) {
      EXPECT_FALSE(leading.empty()) << "all of it was read";
      formats::Tensor part;  // which tells that it is of no weights
      part.shape = {1, 1}, part.numbers = {2};
      return part;
    };
    const formats::TensorFile file("/d.npz", "npz", {{info, read}});
    return support::error_of([&] { import_tensors(file, {}, core::Token()); });
  };
  EXPECT_EQ(refusal("weights", {16385, 1}),
            "/d.npz: weights: expected axes of at most 16384, got [16385, 1]");
  EXPECT_EQ(refusal("weights", {1, 1 << 28}),
            "/d.npz: weights: expected axes of at most 16384, got [1, 268435456]");
  EXPECT_EQ(refusal("embeddings", {1 << 28, 1}),
            "/d.npz: embeddings: expected at most 16384 tokens, got 268435456");
  EXPECT_EQ(refusal("embeddings", {16385, 1, 1}),
            "/d.npz: embeddings: expected at most 16384 sequences, got 16385");
  EXPECT_EQ(refusal("embeddings", {1, 16385}),
            "/d.npz: embeddings: expected at most 16384 columns (d_in), got 16385");
}

TEST_F(StagesInAFile, MayHaveMoreLayersThanOtherAxes) {
  write(path, {rows_of_two("attn_weights", {16385, 1, 1, 2})});
  EXPECT_EQ(layers().size(), 16385u);
  EXPECT_EQ(imported(layer("16384")).model.n_heads, 1u);
}

TEST_F(StagesInAFile, OfOneBatchAreNotLayers) {
  write(path, {rows_of_two("attn_weights", {1, 3, 2, 2})});
  EXPECT_EQ(layers().size(), 0u);
  EXPECT_EQ(imported().model.n_heads, 3u);
  EXPECT_EQ(imported().model.sequences.size(), 1u);
}

TEST_F(StagesInAFile, WithABatchInEveryLayerGiveItsSequences) {
  write(path, {rows_of_two("attentions", {2, 3, 1, 2, 2})});
  const Imported last = imported(layer("1"));
  EXPECT_EQ(last.model.sequences.size(), 3u);
  EXPECT_EQ(last.model.n_heads, 1u);
  // Of layer 1, sequence 2, row 1 is the twelfth row.
  EXPECT_FLOAT_EQ((*last.model.given.find(Stage::weights)->matrices[2])(1, 0), 0.11);
}

TEST_F(StagesInAFile, AreSequencesWhereThePersonSaysSo) {
  write(path, {rows_of_two("attn_weights", {3, 2, 2, 2})});
  Choices choices;
  choices.first_axis_is_batch = true;
  EXPECT_EQ(imported(choices).model.sequences.size(), 3u);
  EXPECT_EQ(layers(choices).size(), 0u);
}

TEST_F(StagesInAFile, OfOtherKeysThanQueriesKeepTheirShape) {
  write(path, {rows_of_two("attn", {2, 5, 2})});
  const Imported cross = imported();
  EXPECT_EQ(cross.model.n_tokens(), 5u);
  EXPECT_EQ(cross.model.n_keys(), 2u);
  EXPECT_EQ(cross.model.n_heads, 2u);
}

TEST_F(StagesInAFile, OfALayerEachAreToldApartByTheirNames) {
  write(path, {rows_of_two("model.layers.10.self_attn.attn_weights", {1, 1, 2, 2}, 0.5f),
               rows_of_two("model.layers.2.self_attn.attn_weights", {1, 1, 2, 2}, 0.25f)});
  EXPECT_THAT(layers(), ElementsAre("model.layers.2.self_attn", "model.layers.10.self_attn"));
  EXPECT_EQ(imported().model.given.find(Stage::weights)->matrices[0]->at(1, 0), 0.25);
  EXPECT_EQ(imported(layer("1")).model.given.find(Stage::weights)->matrices[0]->at(1, 0), 0.5);
}

TEST_F(StagesInAFile, HaveTheirLayerAnywhereInTheName) {
  for (const char* name : {"attn_weights.4", "attn_layer_4", "layer4_attn", "blocks.4.attn"}) {
    write(path, {rows_of_two(name, {1, 2, 2})});
    core::Token progress;
    const auto found = find_stages(formats::open_tensors(path), progress);
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_THAT(found[0].name, HasSubstr("4"));
    EXPECT_EQ(found[0].stages[0].stage, Stage::weights);
  }
}

TEST_F(StagesInAFile, WithoutATellingNameAreWeightsWhenTheirRowsAre) {
  write(path, {rows_of_two("arr_0", {1, 2, 2}), rows_of_two("arr_1", {1, 2, 2})});
  EXPECT_THAT(layers(), ElementsAre("arr_0", "arr_1"));
  Written other = rows_of_two("arr_0", {1, 2, 2});
  other.numbers[0] = 3;
  write(path, {other});
  core::Token progress;
  EXPECT_THAT(find_stages(formats::open_tensors(path), progress), IsEmpty());
}

TEST_F(StagesInAFile, AreTheLatestOfTheScoresWithTheValues) {
  const Written q{"q", {1, 2, 1}, {1, 2}}, k{"k", {1, 2, 1}, {1, 1}}, v{"v", {1, 2, 1}, {4, 8}};
  write(path, {q, k, v, rows_of_two("weights", {1, 2, 2}, 0.25f)});
  const auto model = imported().model;
  EXPECT_EQ(model.given.stages.size(), 2u);
  // The second row of weights is 1/4, 3/4.
  EXPECT_EQ(attention::attend(model).heads[0].contexts(1, 0), 0.25 * 4 + 0.75 * 8);
  write(path, {q, k, v});
  EXPECT_EQ(imported().model.given.stages.size(), 3u);
}

TEST_F(StagesInAFile, OfAHeadEachAreOneStage) {
  std::filesystem::create_directory(directory.path() / "export");
  support::put_bytes(directory.path() / "export" / "weights.head0.csv", "1,0\n0.5,0.5\n");
  support::put_bytes(directory.path() / "export" / "weights.head1.csv", "1,0\n0.25,0.75\n");
  core::Token progress;
  const auto model = import_file(directory.path() / "export", {}, progress).model;
  EXPECT_EQ(model.n_heads, 2u);
  EXPECT_EQ((*model.given.find(Stage::weights)->matrices[1])(1, 0), 0.25);
}

TEST_F(StagesInAFile, ThatDoNotFitAreRefusedInOneLine) {
  write(path, {rows_of_two("attn_weights", {3, 2, 2, 2})});
  EXPECT_EQ(support::error_of([&] { imported(layer("3")); }),
            path.string() + ": expected a layer of 0 … 2, got \"3\"");
  write(path, {rows_of_two("weights", {3, 2, 2, 2}), {"v", {2, 1, 2, 1}, {1, 2, 3, 4}}});
  EXPECT_THAT(support::error_of([&] { imported(); }),
              HasSubstr("expected 3 layers, as the other stages have"));
}

}  // namespace
}  // namespace core::importing
