// Correct tensors in every common layout, and shapes that fit no stage.
#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "core/check/check.hpp"
#include "core/check/match.hpp"
#include "core/files/stage_names.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"

namespace core::check {
namespace {

using formats::parse_name;
using formats::Tensor;
using support::checked;
using support::CheckFixture;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Tensor of_shape(const std::string& name, formats::TensorShape shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.numbers.assign(*formats::count_of(shape), 0.25);
  tensor.shape = std::move(shape);
  return tensor;
}

std::map<Stage, std::string> readings_in(const Report& report) {
  std::map<Stage, std::string> readings;
  for (const StageResult& result : report.stages) readings[result.stage] = result.reading;
  return readings;
}

Report checked_as(const Model& model, std::vector<Tensor> tensors, const char* layout) {
  const auto file = support::tensors_in_memory(std::move(tensors));
  return check(model, match(model, file, {}, {.layout = find_layout(layout)}), {});
}

struct LayoutsOf : testing::TestWithParam<const char*> {
  CheckFixture fixture{GetParam()};
};

TEST_P(LayoutsOf, RightTensorsAgreeInEachAndMistakesAreNamedInEach) {
  std::size_t n_cases = 0;
  for (const std::string& name : fixture.cases()) {
    const Report report = checked(fixture.model, fixture.tensors(name));
    if (name.starts_with("right")) {
      EXPECT_TRUE(report.agrees) << name << report_text(report);
    } else {
      EXPECT_FALSE(report.agrees) << name;
      EXPECT_THAT(report.causes(), ElementsAre("no_scale")) << name << report_text(report);
    }
    EXPECT_FALSE(report.has_shape_mismatch()) << name << report_text(report);
    ++n_cases;
  }
  EXPECT_GE(n_cases, 14u);
}

INSTANTIATE_TEST_SUITE_P(Models, LayoutsOf,
                         testing::Values("layouts", "batch", "square", "grouped", "shared"),
                         [](const auto& of) { return std::string(of.param); });

struct Layouts : support::CheckOfOneModel {
  Layouts() : CheckOfOneModel("layouts") {}
};

TEST_F(Layouts, ThatAreNotThePlainOneAreSaid) {
  const std::map<std::string, std::string> expected{
      {"bhtd", ""},           {"htd", ""},        {"bthd", "[B, T, H, d]"}, {"thd", "[T, H, d]"},
      {"btd", "[B, T, H·d]"}, {"td", "[T, H·d]"}, {"tbd", "[T, B, H·d]"},   {"tbhd", "[T, B, H, d]"}};
  for (const auto& [layout, words] : expected) {
    const Report report = checked(model, fixture.tensors("right." + layout));
    const auto read = readings_in(report);
    for (const Stage stage : {Stage::queries, Stage::keys, Stage::values, Stage::contexts})
      EXPECT_EQ(read.at(stage), words) << layout;
    EXPECT_EQ(read.at(Stage::weights), "");
    if (words.empty()) continue;
    EXPECT_THAT(report_text(report), HasSubstr("read as"));
    EXPECT_THAT(report_json(report), HasSubstr("\"reading\": \"" + words + "\""));
  }
}

TEST_F(Layouts, ThatAreAskedForAreTheOnlyOnes) {
  for (const TensorLayout& asked : layouts())
    for (const TensorLayout& has : layouts()) {
      const std::string name = std::string("right.") + has.name;
      const Report report = checked_as(model, fixture.tensors(name), asked.name);
      // A single sequence may have a batch axis or none.
      const bool has_b = has.name[0] == 'b', asks_for_b = asked.name[0] == 'b';
      const bool same = std::string(asked.about) == has.about && (has_b || !asks_for_b);
      EXPECT_EQ(report.agrees, same) << has.name << " read as " << asked.name;
      EXPECT_EQ(report.has_shape_mismatch(), !same);
    }
  const Report report = checked_as(model, fixture.tensors("right.bthd"), "bhtd");
  EXPECT_EQ(report.first_difference()->obstacle,
            "expected [2, 5, 4], got [1, 5, 2, 4]: heads after tokens? transpose, or say --layout bthd");
}

TEST_F(Layouts, OfASquareCaseAreTakenByTheNumbers) {
  const CheckFixture square("square");
  Tensor queries = square.tensors("right.thd", {"queries"}).at(0);
  const Report right = checked(square.model, {queries});
  EXPECT_TRUE(right.agrees);
  EXPECT_EQ(right.stages[0].reading, "[T, H, d]");
  EXPECT_THAT(right.notes, IsEmpty());
  EXPECT_FALSE(checked_as(square.model, {queries}, "htd").agrees);
  EXPECT_TRUE(checked_as(square.model, {queries}, "thd").agrees);

  for (double& x : queries.numbers) x = 1 - x;
  const Report wrong = checked(square.model, {queries});
  EXPECT_FALSE(wrong.agrees);
  EXPECT_THAT(
      wrong.notes,
      ElementsAre("queries [4, 4, 4] was taken for queries [H, T, d]; it could also be queries [T, H, "
                  "d], and agrees as none of them"));
}

TEST_F(Layouts, GroupsAreReadWhereTheModelsHeadsRepeatAlone) {
  const CheckFixture grouped("grouped");
  const Report right = checked(grouped.model, grouped.tensors("right.thd"));
  EXPECT_EQ(readings_in(right).at(Stage::keys), "[T, H/2, d], groups of 2 heads");
  EXPECT_EQ(readings_in(right).at(Stage::queries), "[T, H, d]");
  // The second KV head changes: both query heads that share it differ.
  std::vector<Tensor> tensors = grouped.tensors("right.htd", {"keys"});
  ASSERT_EQ(tensors[0].shape, (formats::TensorShape{2, 5, 3}));
  tensors[0].numbers[15 + 4] += 0.5;
  const Report wrong = checked(grouped.model, tensors);
  EXPECT_THAT(row_of(*wrong.first_difference())[5], testing::EndsWith(" at head 2, row 1, column 1"));

  Model other = grouped.model;
  other.projections->key.weight.set(0, 4, 7);  // head 1 differs from head 0
  const Report unfit = checked(other, grouped.tensors("right.htd", {"keys"}));
  EXPECT_EQ(
      unfit.first_difference()->obstacle,
      "expected [4, 5, 3], got [2, 5, 3]: 2 heads instead of 4: grouped? the model's heads do not repeat in "
      "groups of 2");
}

TEST_F(Layouts, NamesOfResultsCanBeContextsConcatenatedOrOutput) {
  for (const char* name : {"o", "y", "out", "attn_output", "context", "context_vec", "z"})
    for (const char* stage : {"contexts", "concatenated", "output"}) {
      const Report report = checked(model, {tensor("right.stages", stage, name)});
      EXPECT_TRUE(report.agrees) << name << " " << stage;
      const bool are_contexts_first = std::string(name) == "context" || std::string(name) == "z";
      const bool as_contexts = stage == std::string("concatenated") && are_contexts_first;
      EXPECT_EQ(attention::info(report.stages[0].stage).name, std::string(as_contexts ? "contexts" : stage))
          << name;
      EXPECT_EQ(report.stages[0].reading, as_contexts ? "[T, H·d]" : "");
    }
  const Report report = checked(model, {tensor("right.stages", "concatenated", "attn_output")});
  EXPECT_THAT(report.notes, ElementsAre("attn_output is a right concatenated: that is another name and not a "
                                        "bug, but the output was not compared with it"));
  EXPECT_THAT(report.not_given, Contains(Stage::output));
}

TEST_F(Layouts, ShapesThatFitNothingAreGuessedAtAndHeadsAndSequencesThatAreNotThereDiffer) {
  const std::tuple<const char*, formats::TensorShape, const char*> cases[]{
      {"weights", {5, 2, 5}, "expected [2, 5, 5], got [5, 2, 5]: heads after tokens? transpose to [2, 5, 5]"},
      {"keys",
       {1, 2, 4, 5},
       "expected [2, 5, 4], got [1, 2, 4, 5]: rows and columns swapped? transpose the last two axes"},
      {"weights", {2, 7, 7}, "expected [2, 5, 5], got [2, 7, 7]: 7 tokens instead of 5"},
      {"weights", {3, 5, 5}, "expected [2, 5, 5], got [3, 5, 5]: 3 heads instead of 2"},
      {"queries", {2, 5, 3}, "expected [2, 5, 4], got [2, 5, 3]: 3 columns instead of 4"},
      {"output", {3, 5, 8}, "expected [5, 8], got [3, 5, 8]: 3 sequences instead of 1"},
      {"embeddings",
       {2, 5, 5},
       "expected [5, 6], got [2, 5, 5]: the shape of scores, scaled_scores, masked_scores, weights, "
       "dropout_mask or dropped_weights; --map says which stage it is"},
      {"weights", {10, 5}, "expected [2, 5, 5], got [10, 5]: as many numbers: reshape it"},
      {"weights", {0, 5}, "expected [2, 5, 5], got [0, 5]: it holds no numbers"},
      {"weights.head2", {5, 5}, "there is no head 2: the model has 2 of this stage"},
      {"output.head1", {5, 8}, "there is no head 1: the model has 1 of this stage"},
      {"sequence1/weights", {2, 5, 5}, "there is no sequence 1: the model has 1"},
      {"weights.head1",
       {5, 4},
       "expected [5, 5], got [5, 4]: the shape of queries, keys, values or contexts; --map says which stage "
       "it is"}};
  for (const auto& [name, shape, obstacle] : cases)
    EXPECT_EQ(checked(model, {of_shape(name, shape)}).stages.at(0).obstacle, obstacle);
}

TEST_F(Layouts, CausesAreLookedForInTheTensorsThatFit) {
  const Report report =
      checked(model, {tensor("no_scale.stages", "weights", "weights"), of_shape("queries", {2, 7, 4})});
  EXPECT_EQ(report.first_difference()->stage, Stage::queries);
  EXPECT_THAT(report.causes(), ElementsAre("no_scale"));
  EXPECT_THAT(verdict_words(report), HasSubstr("no_scale, which explains every tensor whose shape fits."));
}

TEST_F(Layouts, HeadsAndSequencesThatWereNotGivenAreSaid) {
  Tensor first = tensor("right.stages", "weights", "weights.head1");
  first.numbers.erase(first.numbers.begin(), first.numbers.begin() + 25);
  first.shape = {5, 5};
  const Report of_a_head = checked(model, {first});
  EXPECT_TRUE(of_a_head.agrees);
  EXPECT_THAT(of_a_head.notes, ElementsAre("Of weights only head 1 of 2 was given and compared"));

  const CheckFixture batch("batch");
  Tensor output = batch.tensors("right.stages", {"output"}).at(0);
  output.shape = {4, 10};
  output.numbers.resize(40);
  EXPECT_THAT(checked(batch.model, {output}).notes,
              ElementsAre("Of output only sequence 0 of 3 was given and compared"));
}

struct Layers : Layouts {
  MatchResult matched(std::vector<Tensor> tensors, const std::string& layer) const {
    return match(model, support::tensors_in_memory(std::move(tensors)), {}, {.layer = layer});
  }
  bool agrees(std::vector<Tensor> tensors, const std::string& layer) const {
    return check(model, matched(std::move(tensors), layer), {}).agrees;
  }
  Tensor right(const std::string& name) const { return tensor("right.stages", "weights", name); }
  Tensor wrong(const std::string& name) const { return tensor("no_scale.stages", "weights", name); }
};

TEST_F(Layers, AreChosenByTheirNames) {
  for (const auto& [second, tenth] :
       std::map<std::string, std::string>{{"layers.2.attn.weights", "layers.10.attn.weights"},
                                          {"attn_weights.2", "attn_weights.10"},
                                          {"layer2_attn", "layer10_attn"},
                                          {"attn_2", "attn_10"}}) {
    EXPECT_TRUE(agrees({wrong(second), right(tenth)}, "10")) << tenth;
    EXPECT_FALSE(agrees({wrong(second), right(tenth)}, "2")) << second;
    EXPECT_TRUE(agrees({right(second), wrong(tenth)}, "")) << "the first, unasked";
  }
  EXPECT_TRUE(agrees({wrong("encoder.attn"), right("decoder.attn")}, "decoder"));
  const MatchResult matched = this->matched({wrong("layers.2.attn.weights"), right("layers.10.attn.weights"),
                                             tensor("right.stages", "output", "output")},
                                            "10");
  EXPECT_EQ(layer_words(matched), "layer \"layers.10\" of 2");
  EXPECT_THAT(support::words_of(matched.left_out),
              ElementsAre("layers.2.attn.weights: of another layer", "output: its name says no layer"));
  EXPECT_EQ(support::error_of([&] {
              this->matched({right("layers.2.attn"), right("layers.10.attn")}, "1");
            }),
            "memory: expected a layer of layers.2, layers.10, got \"1\"");
}

TEST_F(Layers, OfOneNumberAreNone) {
  const MatchResult one =
      matched({right("layers.3.attn.weights"), tensor("right.stages", "output", "layers.3.mlp.out"),
               tensor("right.stages", "queries", "q")},
              "");
  EXPECT_THAT(one.observed, SizeIs(3));
  EXPECT_THAT(one.left_out, IsEmpty());
  EXPECT_EQ(layer_words(one), "");
}

TEST_F(Layers, AreTheFirstAxis) {
  Tensor both = wrong("attn_weights");
  const Tensor second = right("attn_weights");
  both.shape = {2, 1, 2, 5, 5};
  both.numbers.insert(both.numbers.end(), second.numbers.begin(), second.numbers.end());
  EXPECT_TRUE(agrees({both}, "1"));
  EXPECT_FALSE(agrees({both}, "0"));
  const Report first = check(model, matched({both}, ""), {});
  EXPECT_THAT(first.notes, Contains("The tensors are those of layer 0 of 2"));
  EXPECT_THAT(first.causes(), ElementsAre("no_scale"));
  both.shape = {2, 2, 5, 5};
  EXPECT_TRUE(agrees({both, tensor("right.stages", "output", "output")}, "1"));
  EXPECT_EQ(support::error_of([&] { matched({both}, "2"); }), "memory: expected a layer of 0 … 1, got \"2\"");
}

TEST(LayerNames, AreTakenFromNames) {
  const auto layer = [](const char* name) { return parse_name(name).layer; };
  EXPECT_EQ(layer("gpt2.h.3.attn.q"), "gpt2.h.3");
  EXPECT_EQ(layer("layer12/weights"), "layer12");
  EXPECT_EQ(layer("attn_weights_7"), "7");
  EXPECT_EQ(layer("q"), "");
  EXPECT_EQ(layer("weights.head3"), "");
  EXPECT_THAT(parse_name("x2").meaning.stages, IsEmpty()) << "another x";
  EXPECT_THAT(parse_name("0.weight").meaning.stages, IsEmpty()) << "a learned projection";
  EXPECT_THAT(parse_name("attn2").meaning.stages, Contains(Stage::weights));
}

}  // namespace
}  // namespace core::check
