#include "core/check/check.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "core/check/match.hpp"
#include "core/graph/attend.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"

namespace core::check {
namespace {

using formats::Tensor;
using support::checked;
using support::CheckFixture;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// Returns words of the inferred cause of a mistake that the table lacks, or "" if nothing can be inferred.
std::string inferred_cause(const std::string& name) {
  for (const auto& [part, words] : {std::pair{"base_two", "base 2"},
                                    {"values_rolled", "rolled"},
                                    {"softmax_twice", "applied twice"},
                                    {"capped", "soft-capped"}})
    if (name.find(part) != name.npos) return words;
  return "";
}

/// Returns words of the cause of a pair that is described as a whole, or "".
std::string common_cause(const std::string& name) {
  for (const auto& [pair, words] : {std::pair{"weight_untransposed:key+query_key_swapped",
                                              "the weight that makes the queries is transposed"},
                                    std::pair{"norm_missing+rotary_missing", "before norm and rotation"}})
    if (name == pair) return words;
  return "";
}

/// A model of the fixtures, with the number of its mistakes (at least) and of its unknown cases.
struct ModelCases {
  const char* name;
  std::size_t n_mistakes, n_unknown = 0;
  bool is_long = false;  ///< causes are tried on a few rows first; weights and output, in float32
};

class CheckOf : public testing::TestWithParam<ModelCases> {
 protected:
  /// Calls visit(case, its tensors) for every case whose name starts with kind ("": the mistakes) and returns
  /// their number.
  template <class Visit>
  std::size_t for_each_case(const std::string& kind, const std::set<std::string>& stages, Visit visit) {
    std::size_t n = 0;
    for (const std::string& name : fixture.cases()) {
      const bool is_mistake = !name.starts_with("right") && !name.starts_with("unknown");
      if (kind.empty() ? !is_mistake : !name.starts_with(kind)) continue;
      std::vector<Tensor> tensors = fixture.tensors(name, stages);
      for (Tensor& tensor : tensors)  // as kept by programs that compute in float16 and continue in float32
        if (name == "half_precision") tensor.dtype = formats::Dtype::f32;
      SCOPED_TRACE(name);
      visit(name, tensors);
      ++n;
    }
    return n;
  }

  CheckFixture fixture{GetParam().name};
};

TEST_P(CheckOf, NamesEveryMistakeAndEveryPairFromAllStages) {
  const std::size_t n =
      for_each_case("", {}, [&](const std::string& name, const std::vector<Tensor>& tensors) {
        if (GetParam().is_long && name == "mask_finite") return;  // shows in neither of the two tensors
        const Report report = checked(fixture.model, tensors);
        EXPECT_FALSE(report.agrees);
        const std::string words = common_cause(name);
        const bool is_described = !words.empty() && report_text(report).find(words) != std::string::npos;
        EXPECT_TRUE(is_described || support::names_causes(report, support::causes_of(name)))
            << report_text(report);
        // Dividing twice by √d_head equals once by d_head; few tensors may allow several explanations.
        const std::size_t n_explanations = name.find("scale_d_head") != name.npos ? 2 : 1;
        if (tensors.size() > 4) {
          EXPECT_EQ(report.explanations.size(), n_explanations) << report_text(report);
        }
      });
  EXPECT_GE(n, GetParam().n_mistakes);
}

TEST_P(CheckOf, CallsRightTensorsRightInEveryType) {
  for_each_case("right", {}, [&](const std::string&, const std::vector<Tensor>& tensors) {
    const Report report = checked(fixture.model, tensors);
    EXPECT_TRUE(report.agrees) << report_text(report);
    EXPECT_EQ(report.first_difference(), nullptr);
    EXPECT_THAT(report.causes(), IsEmpty());
    EXPECT_THAT(report.left_out, IsEmpty());
    EXPECT_EQ(report.stages.size(), tensors.size());
  });
}

TEST_P(CheckOf, FindsTheMistakeFromTheOutputAloneOrSaysWhatItCouldBe) {
  for_each_case("", {"output"}, [&](const std::string& name, const std::vector<Tensor>& tensors) {
    if (name.find('+') != name.npos) return;
    const Report report = checked(fixture.model, tensors);
    const bool changes_nothing = name == "mask_finite" || name == "rotary_off_by_one~queries keys late";
    EXPECT_EQ(report.agrees, changes_nothing);
    if (!changes_nothing) {
      EXPECT_THAT(report.causes(), Contains(*support::causes_of(name).begin())) << report_text(report);
    }
  });
}

TEST_P(CheckOf, GuessesNothingForMistakesThatItDoesNotKnow) {
  const std::size_t n =
      for_each_case("unknown", {}, [&](const std::string& name, const std::vector<Tensor>& tensors) {
        const Report report = checked(fixture.model, tensors);
        EXPECT_FALSE(report.agrees);
        if (inferred_cause(name).empty()) {
          EXPECT_THAT(report.causes(), IsEmpty());
        }
        for (const Explanation& e : report.explanations)
          EXPECT_THAT(e.sentences, Contains(HasSubstr(inferred_cause(name))));
      });
  EXPECT_EQ(n, GetParam().n_unknown);
}

INSTANTIATE_TEST_SUITE_P(Models, CheckOf,
                         testing::Values(ModelCases{"full", 11, 8}, ModelCases{"causal", 11, 8},
                                         ModelCases{"plain", 11, 8}, ModelCases{"long", 30, 8, true},
                                         ModelCases{"llama", 19}, ModelCases{"gemma", 11},
                                         ModelCases{"gpt_oss", 9}, ModelCases{"qwen", 9},
                                         ModelCases{"bloom", 7}, ModelCases{"cache", 13},
                                         ModelCases{"long_llama", 15, 0, true}),
                         [](const auto& of) { return std::string(of.param.name); });

struct OneCheck : support::CheckOfOneModel {
  OneCheck() : CheckOfOneModel("full") {}
};

TEST_F(OneCheck, NamesTheFirstStageThatDiffersAndTheWorstCell) {
  std::vector<Tensor> tensors = fixture.tensors("right");
  for (Tensor& t : tensors)
    if (t.name == "scaled_scores") t.numbers[1 * 25 + 3 * 5 + 2] += 0.5, t.numbers[7] += 0.25;
  const Report report = checked(model, tensors);
  ASSERT_NE(report.first_difference(), nullptr);
  const StageResult& first = *report.first_difference();
  EXPECT_EQ(first.stage, Stage::scaled_scores);
  EXPECT_NEAR(first.agreement.largest, 0.5, 1e-12);
  EXPECT_THAT(row_of(first)[5], testing::EndsWith(" at head 1, row 3, column 2"));
}

TEST_F(OneCheck, NamesAllCausesThatTheTensorsCannotTellApart) {
  // With d_model = d_head², 1/√d_model, 1/d_head and 1/√d_head applied twice are equal.
  support::Random random(5);
  const Model square = support::model(random, 4, 4, 4, 2);
  Model wrong = square;
  wrong.scale.rule = attention::ScaleRule::inverse_sqrt_d_model;
  const auto trace = attention::attend(wrong);
  Tensor output;
  output.name = "output", output.shape = {4, 4};
  const arma::mat rows = arma::mat(trace.at(attention::Stage::output)).t();
  output.numbers.assign(rows.begin(), rows.end());
  const Report report = checked(square, {output});
  EXPECT_THAT(report.causes(), UnorderedElementsAre("scale_twice", "scale_sqrt_d_model", "scale_d_head"));
  EXPECT_EQ(report.explanations.size(), 3u) << report_text(report);
  EXPECT_THAT(report_text(report), HasSubstr("the tensors cannot tell them apart"));
}

TEST_F(OneCheck, KnowsTheHooksOfTransformerLens) {
  const std::string block = "blocks.0.attn.";
  const Report report =
      checked(model, {tensor("right", "queries", block + "hook_q"), tensor("right", "keys", block + "hook_k"),
                      tensor("right", "values", block + "hook_v"),
                      tensor("right", "masked_scores", block + "hook_attn_scores"),
                      tensor("right", "weights", block + "hook_pattern"),
                      tensor("right", "contexts", block + "hook_z"),
                      tensor("right", "output", "blocks.0.hook_attn_out"),
                      tensor("right", "output", block + "hook_result")});
  EXPECT_TRUE(report.agrees) << report_text(report);
  EXPECT_EQ(report.n_tensors, 7u);
  EXPECT_EQ(report.stages[3].stage, Stage::masked_scores);
  EXPECT_THAT(report.left_out, ElementsAre(block + "hook_result: its name says no stage"));
}

TEST_F(OneCheck, TakesHeadsInFilesOfTheirOwnForOneStage) {
  Tensor first = tensor("no_scale", "weights", "weights.head0"), second = first;
  first.shape = second.shape = {5, 5};
  second.numbers.erase(second.numbers.begin(), second.numbers.begin() + 25);
  first.numbers.resize(25);
  second.name = "weights.head1";
  const Report report = checked(model, {first, second});
  ASSERT_EQ(report.stages.size(), 1u);
  EXPECT_THAT(report.causes(), ElementsAre("no_scale"));
}

TEST_F(OneCheck, MaskOfEachHeadIsTheMaskWhereAllAreIt) {
  Tensor mask;
  mask.name = "attn_mask", mask.shape = {1, 2, 5, 5};
  for (std::size_t k = 0; k < 50; ++k) mask.numbers.push_back(k % 5 <= k / 5 % 5 ? 1 : 0);
  EXPECT_TRUE(checked(model, {mask}).agrees);
  mask.numbers[25] = 0;
  const Report report = checked(model, {mask});
  EXPECT_FALSE(report.agrees);
  EXPECT_THAT(row_of(*report.first_difference())[5], testing::EndsWith(" at head 1, row 0, column 0"));
  EXPECT_THAT(report.notes, IsEmpty());
}

/// Expected values: PyTorch 2.15's conversions; older ones give NaN beyond the range of float8_e4m3fn.
TEST(StoredNumbers, OfEightBitsAreThoseOfPytorch) {
  using formats::Dtype;
  const std::vector<double> numbers{0.3, -1.7, 448, 460, 0.001, 0.0009765625, 0.00098, 17.5, 1e-5, -0.0107};
  const std::vector<double> e4m3{0.3125, -1.75, 448, 448, 0.001953125, 0, 0.001953125, 18, 0, -0.009765625},
      e5m2{0.3125,      -1.75, 448, 448, 0.0009765625, 0.0009765625, 0.0009765625, 16, 1.52587890625e-05,
           -0.009765625};
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    EXPECT_LE(std::abs(e4m3[k] - numbers[k]), round_trip_error(Dtype::f8_e4m3, numbers[k])) << numbers[k];
    EXPECT_LE(std::abs(e5m2[k] - numbers[k]), round_trip_error(Dtype::f8_e5m2, numbers[k])) << numbers[k];
  }
  EXPECT_LT(round_trip_error(Dtype::f8_e4m3, 17.5), 1.1);
  /// A number beyond a type's range agrees with whatever the type stores for it.
  const auto is_overflow_of = [](Dtype dtype, double kept, double number) {
    Agreement agreement;
    agreement.add(kept, number, {{}, dtype}, 0, 0);
    return agreement.largest == 0;
  };
  EXPECT_TRUE(is_overflow_of(Dtype::f8_e4m3, 448, 1000));
  EXPECT_TRUE(is_overflow_of(Dtype::f8_e4m3, std::nan(""), -1000));
  EXPECT_FALSE(is_overflow_of(Dtype::f8_e4m3, 448, -1000));
  EXPECT_FALSE(is_overflow_of(Dtype::f8_e4m3, std::nan(""), 440));
  EXPECT_TRUE(is_overflow_of(Dtype::f8_e5m2, arma::datum::inf, 62000));
  EXPECT_FALSE(is_overflow_of(Dtype::f8_e5m2, arma::datum::inf, 57344));
}

TEST_F(OneCheck, JudgesTensorsOfEightBitsAsSuch) {
  // tests/fixtures/check/make_eight_bits.py: PyTorch's conversions of the right scores and weights.
  CheckFixture eight("eight_bits");
  for (const auto& [name, dtype] :
       {std::pair("e4m3", formats::Dtype::f8_e4m3), {"e5m2", formats::Dtype::f8_e5m2}}) {
    std::vector<Tensor> tensors = eight.tensors(std::string("right.") + name);
    for (Tensor& tensor : tensors) tensor.dtype = dtype;
    EXPECT_TRUE(checked(eight.model, tensors).agrees) << name;
    tensors = eight.tensors(std::string("no_scale.") + name);
    for (Tensor& tensor : tensors) tensor.dtype = dtype;
    const Report report = checked(eight.model, tensors);
    EXPECT_THAT(report.causes(), ElementsAre("no_scale")) << name;
    EXPECT_THAT(report_text(report), HasSubstr(std::string("agrees as float8_") + name)) << name;
  }
}

TEST_F(OneCheck, MapsByHand) {
  const auto file =
      support::tensors_in_memory({tensor("right", "weights", "foo"), tensor("right", "output", "weights")});
  const MatchResult matched = match(model, file, {{"foo", "weights"}, {"weights", ""}});
  ASSERT_EQ(matched.observed.size(), 1u);
  EXPECT_TRUE(check(model, matched, {}).agrees);
  EXPECT_EQ(support::error_of([&] {
              match(model, file, {{"bar", "weights"}});
            }),
            "memory: there is no tensor \"bar\" in it");
  EXPECT_EQ(support::error_of([&] {
              match(model, file, {{"foo", "bar"}});
            }),
            "foo: there is no stage \"bar\"");
}

TEST_F(OneCheck, RefusesFilesWithoutAnyStage) {
  EXPECT_EQ(
      support::error_of([&] { checked(model, {tensor("right", "weights", "frobnicated")}); }),
      "memory: expected tensors named as stages (weights, queries, attn_scores, …), got none; --map NAME=STAGE "
      "says which is which");
}

TEST_F(OneCheck, ToleranceIsWhatWasAsked) {
  Tensor output = tensor("right", "output", "output");
  output.numbers[4] += 1e-3;
  const auto file = support::tensors_in_memory({output});
  EXPECT_FALSE(check(model, match(model, file, {}), {}).agrees);
  EXPECT_TRUE(check(model, match(model, file, {}), {0, 2e-3}).agrees);
}

TEST_F(OneCheck, StopsWhenToldTo) {
  const auto file = support::tensors_in_memory(fixture.tensors("no_scale"));
  core::StopToken stopped, goes_on;
  stopped.stop();
  const Report report = check(model, match(model, file, {}), {}, stopped);
  EXPECT_FALSE(report.agrees);
  EXPECT_TRUE(report.explanations.empty());
  EXPECT_EQ(stopped.done(), 0u);
  EXPECT_FALSE(check(model, match(model, file, {}), {}, goes_on).explanations.empty());
  EXPECT_GT(goes_on.done(), 0u) << "what was tried is counted";
}

TEST_F(OneCheck, ReportsAsJson) {
  const Report report = checked(model, {tensor("no_scale", "scaled_scores", "scaled_scores")});
  EXPECT_THAT(
      report_json(report),
      HasSubstr(
          R"({"agrees": false, "first_difference": "scaled_scores", "causes": ["no_scale"], "explanations": [["no_scale"]], "stages": [{"stage": "scaled_scores", "max_abs": )"));
}

TEST_F(OneCheck, GivesTheirTensorsAsATrace) {
  const auto file = support::tensors_in_memory(fixture.tensors("no_scale", {"queries", "weights", "output"}));
  const MatchResult matched = match(model, file, {});
  const Report report = check(model, matched, {});
  const ObservedTrace observed = observed_trace(model, matched, report, 0);
  EXPECT_THAT(observed.stages, ElementsAre(Stage::queries, Stage::weights, Stage::output));
  const Tensor weights = tensor("no_scale", "weights", "weights");
  EXPECT_EQ(observed.trace.at(attention::Stage::weights, 1)(4, 2), weights.numbers[25 + 4 * 5 + 2]);
  EXPECT_EQ(observed.trace.at(attention::Stage::scores, 0).n_rows(), 0u);
}

}  // namespace
}  // namespace core::check
