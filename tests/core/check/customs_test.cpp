// Correct tensors in other conventions than ours, and the sentences about tensors that are not compared.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "core/check/check.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/rounding.hpp"
#include "tests/core/check/check_fixture.hpp"

namespace core::check {
namespace {

using formats::Dtype;
using formats::Tensor;
using support::checked;
using support::CheckFixture;
using support::named;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double inf = std::numeric_limits<double>::infinity();

Tensor made(const std::string& name, formats::TensorShape shape, std::vector<double> numbers) {
  Tensor tensor;
  tensor.name = name, tensor.shape = std::move(shape), tensor.numbers = std::move(numbers);
  return tensor;
}

/// Five tokens, two heads, causal.
struct Customs : testing::Test {
  CheckFixture fixture{"full"};

  /// Reads a case's tensors with scores masked in place before softmax(scores / √d), as in the book's class.
  std::vector<Tensor> masked_before_scale(const std::string& name,
                                          const std::set<std::string>& others) const {
    std::set<std::string> stages = others;
    stages.insert("scores");
    std::vector<Tensor> tensors = fixture.tensors(name, stages);
    Tensor& scores = named(tensors, "scores");
    scores.name = "attn_scores";
    for (std::size_t k = 0; k < scores.numbers.size(); ++k)
      if (k % 5 > k / 5 % 5) scores.numbers[k] = -inf;
    return tensors;
  }
};

TEST_F(Customs, ScoresMaskedBeforeTheScaleAgree) {
  const Report report =
      checked(fixture.model, masked_before_scale("right", {"queries", "keys", "values", "weights"}));
  EXPECT_TRUE(report.agrees) << report_text(report);
  EXPECT_THAT(report_text(report), HasSubstr("masked before the scale"));
  std::vector<Tensor> wrong = masked_before_scale("right", {"weights"});
  named(wrong, "attn_scores").numbers[1] = 0;  // an unmasked score at a masked position
  EXPECT_FALSE(checked(fixture.model, wrong).agrees);
}

TEST_F(Customs, MaskedScoresAreTakenForUnscaledOnesWhereWeightsWouldTellAMissingScale) {
  for (const char* of : {"right", "no_scale", "merge_without_transpose"}) {
    std::vector<Tensor> tensors = masked_before_scale(of, {"weights", "output"});
    named(tensors, "attn_scores").name = "masked";
    const Report report = checked(fixture.model, tensors);
    if (of == std::string("right"))
      EXPECT_TRUE(report.agrees) << report_text(report);
    else
      EXPECT_THAT(report.causes(), ElementsAre(of)) << report_text(report);
  }
  std::vector<Tensor> alone = masked_before_scale("no_scale", {});
  alone.front().name = "masked";
  EXPECT_THAT(checked(fixture.model, alone).causes(), ElementsAre("no_scale"));
}

TEST_F(Customs, ScoresMaskedBeforeTheScaleHideNoLaterCause) {
  for (const char* cause : {"no_scale", "merge_without_transpose", "scale_d_head"}) {
    const Report report = checked(
        fixture.model, masked_before_scale(cause, {"queries", "keys", "values", "weights", "output"}));
    EXPECT_THAT(report.causes(), Contains(cause)) << report_text(report);
    EXPECT_TRUE(report.stages[3].agreement.within) << "the scores are right";
  }
}

TEST_F(Customs, AnAddedMaskMayHoldAnyLargeNegativeNumber) {
  for (const double hidden : {-3.4028234663852886e38, -1e4, -1e9}) {
    Tensor mask = made("attention_mask", {1, 1, 5, 5}, {});
    for (std::size_t k = 0; k < 25; ++k) mask.numbers.push_back(k % 5 <= k / 5 ? 0 : hidden);
    EXPECT_TRUE(checked(fixture.model, {mask}).agrees) << hidden;
    mask.numbers[7] = 0;  // row 1, column 2
    const Report report = checked(fixture.model, {mask});
    EXPECT_FALSE(report.agrees);
    EXPECT_THAT(row_of(*report.first_difference())[5], testing::EndsWith(" at row 1, column 2"));
  }
}

TEST_F(Customs, AFiniteMaskIsNamedByItsNumber) {
  for (const auto& [fill, words] : {std::pair{-1e4, "they are −10000"}, std::pair{-1e9, "they are −1e+09"},
                                    std::pair{-3.4028234663852886e38, "they are −3.4e+38"}}) {
    std::vector<Tensor> tensors = fixture.tensors("right", {"masked_scores", "weights"});
    for (double& number : named(tensors, "masked_scores").numbers)
      if (number == -inf) number = fill;
    const Report report = checked(fixture.model, tensors);
    EXPECT_THAT(report.causes(), ElementsAre("mask_finite"));
    EXPECT_THAT(report_text(report), HasSubstr(words));
    EXPECT_THAT(report_text(report), HasSubstr("∞ apart"));
  }
}

TEST_F(Customs, WeightsAveragedOverTheHeadsAreComparedWithTheirMean) {
  const auto mean_of = [&](const std::string& name) {
    const Tensor all = fixture.tensors(name, {"weights"}).front();
    Tensor mean = made("attn_weights", {1, 5, 5}, {});
    for (std::size_t k = 0; k < 25; ++k) mean.numbers.push_back((all.numbers[k] + all.numbers[25 + k]) / 2);
    return mean;
  };
  const Report right = checked(fixture.model, {mean_of("right")});
  EXPECT_TRUE(right.agrees) << report_text(right);
  EXPECT_THAT(report_text(right), HasSubstr("the mean of 2 heads"));
  EXPECT_THAT(right.notes, IsEmpty());
  EXPECT_THAT(checked(fixture.model, {mean_of("no_scale")}).causes(), ElementsAre("no_scale"));
  // A mean over heads belongs to no head, so none can be displayed.
  const auto file = support::tensors_in_memory({mean_of("right")});
  const MatchResult matched = match(fixture.model, file, {});
  EXPECT_THAT(observed_trace(fixture.model, matched, check(fixture.model, matched, {}), 0).stages, IsEmpty());
}

TEST_F(Customs, HiddenStatesOfLayersThatAreNotWhatEntersAttentionAreLeftOut) {
  const Tensor weights = fixture.tensors("right", {"weights"}).front();
  const arma::mat& x = *fixture.model.sequences[0].embeddings;
  std::vector<Tensor> tensors;
  for (const std::string layer : {"0", "1"}) {
    tensors.push_back(weights);
    tensors.back().name = "attentions." + layer;
    tensors.push_back(made("hidden_states." + layer, {1, x.n_rows, x.n_cols}, {}));
    for (arma::uword i = 0; i < x.n_rows; ++i)
      for (arma::uword j = 0; j < x.n_cols; ++j)
        tensors.back().numbers.push_back(layer == "0" ? x(i, j) : 3 * x(i, j) + 1);
  }
  const auto file = support::tensors_in_memory(tensors);
  const MatchResult behind_norm = match(fixture.model, file, {}, {.layer = "1"});
  EXPECT_THAT(support::words_of(behind_norm.left_out),
              Contains(HasSubstr("hidden_states.1: not what enters attention")));
  EXPECT_TRUE(check(fixture.model, behind_norm, {}).agrees);
  const MatchResult itself = match(fixture.model, file, {}, {.layer = "0"});
  EXPECT_THAT(support::words_of(itself.left_out), Not(Contains(HasSubstr("not what enters attention"))));
  EXPECT_EQ(check(fixture.model, itself, {}).n_tensors, 2u);
  const MatchResult by_hand = match(fixture.model, file, {{"hidden_states.1", "embeddings"}}, {.layer = "1"});
  EXPECT_FALSE(check(fixture.model, by_hand, {}).agrees);
}

TEST(Roundings, OfTheTypeThatTensorsAreKeptInAreNoDifference) {
  const CheckFixture plain("rounded_plain");
  for (const auto& [arithmetic, type, cause] : {std::tuple{"bfloat16", Dtype::bf16, "bfloat16_precision"},
                                                std::tuple{"float16", Dtype::f16, "half_precision"}}) {
    std::vector<Tensor> tensors = plain.tensors(std::string("right.") + arithmetic);
    for (Tensor& tensor : tensors) tensor.dtype = type;
    const Report kept = checked(plain.model, tensors);
    EXPECT_TRUE(kept.agrees) << report_text(kept);
    EXPECT_EQ(kept.first_difference(), nullptr);
    EXPECT_THAT(kept.causes(), IsEmpty());
    EXPECT_THAT(report_text(kept), HasSubstr(std::string("agrees as ") + arithmetic));
    EXPECT_THAT(kept.notes, Contains(HasSubstr(std::string("rounding errors of ") + arithmetic)));
    // As float32 their type does not reveal the arithmetic.
    for (Tensor& tensor : tensors) tensor.dtype = Dtype::f32;
    EXPECT_THAT(checked(plain.model, tensors).causes(), ElementsAre(cause));
  }
}

TEST(Roundings, OfStagesThatAreKeptWiderAreToldByTheirNumbers) {
  const CheckFixture plain("rounded_plain");
  for (const auto precision : {attention::Precision::bfloat16, attention::Precision::float16}) {
    std::vector<Tensor> tensors = plain.tensors("right.float64");
    for (const char* stage : {"scores", "weights"}) {
      Tensor& tensor = named(tensors, stage);
      for (double& number : tensor.numbers) number = attention::rounded(precision, number);
      tensor.dtype = Dtype::f32;
    }
    const Report mixed = checked(plain.model, tensors);
    EXPECT_TRUE(mixed.agrees) << report_text(mixed);
    EXPECT_THAT(mixed.notes,
                Contains(HasSubstr(std::string("hold ") + attention::name_of(precision) + " numbers")));
    for (double& number : named(tensors, "weights").numbers)
      number = attention::rounded(precision, 1.25 * number);
    EXPECT_FALSE(checked(plain.model, tensors).agrees);
  }
}

TEST(OutputProjection, IsMissedInAnOutputOfAnotherWidth) {
  const Model model = editing::find_preset("modern-llama")->make();
  ASSERT_NE(model.projections->output->weight->n_rows, model.projections->output->weight->n_cols);
  const auto trace = attention::attend(model);
  const auto tensor_of = [](const char* name, const arma::mat& numbers) {
    const arma::mat by_rows = numbers.t();
    return made(name, {numbers.n_rows, numbers.n_cols}, {by_rows.begin(), by_rows.end()});
  };
  const Report report = checked(model, {tensor_of("output", trace.at(attention::Stage::concatenated))});
  EXPECT_FALSE(report.agrees);
  EXPECT_THAT(report.causes(), ElementsAre("output_projection_missing"));
  EXPECT_THAT(report_text(report), Not(HasSubstr("another shape were not looked at")));
  EXPECT_TRUE(checked(model, {tensor_of("output", trace.at(attention::Stage::output))}).agrees);
}

}  // namespace
}  // namespace core::check
