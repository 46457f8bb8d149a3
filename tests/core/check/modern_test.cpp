#include <gmock/gmock.h>

#include <vector>

#include "core/check/causes.hpp"
#include "core/check/check.hpp"
#include "tests/core/check/check_fixture.hpp"

/// Tensors of attention with modern options, computed by NumPy with mistakes.
namespace core::check {
namespace {

using formats::Tensor;
using support::checked;
using testing::ElementsAre;
using testing::HasSubstr;

struct Llama : support::CheckOfOneModel {
  Llama() : CheckOfOneModel("llama") {}
};

TEST_F(Llama, SaysWhichBaseAndWhichPositionsWereTaken) {
  const auto sentences_of = [&](const char* name) {
    return checked(model, fixture.tensors(name)).explanations.at(0).sentences;
  };
  EXPECT_THAT(sentences_of("rotary_base"), ElementsAre(HasSubstr("base is 10000 instead of 500000")));
  EXPECT_THAT(sentences_of("rotary_base~1000000"), ElementsAre(HasSubstr("base is 1e+06 instead of 500000")));
  EXPECT_THAT(sentences_of("rotary_off_by_one~keys late"),
              ElementsAre("the positions of the keys are 1 ahead"));
  const Report from_weights = checked(model, fixture.tensors("rotary_off_by_one", {"weights"}));
  ASSERT_EQ(from_weights.explanations.size(), 2u) << report_text(from_weights);
  EXPECT_THAT(from_weights.explanations[0].sentences,
              ElementsAre("the positions of the queries are 1 ahead"));
  EXPECT_THAT(from_weights.explanations[1].sentences, ElementsAre("the positions of the keys are 1 behind"));
}

TEST_F(Llama, KeysOfGroupsMayBeOneForEachGroupOrForEachHead) {
  const Tensor keys = tensor("right", "keys", "keys");
  ASSERT_EQ(keys.shape, (formats::TensorShape{2, 7, 6}));
  EXPECT_EQ(checked(model, {keys}).stages.at(0).reading, "");
  Tensor repeated = keys, tiled = keys, joined = keys, repeated_joined = keys;
  repeated.shape = tiled.shape = {1, 4, 7, 6};
  joined.shape = {7, 12}, repeated_joined.shape = {1, 7, 24};
  repeated.numbers.clear(), tiled.numbers.clear(), joined.numbers.clear(), repeated_joined.numbers.clear();
  const auto at = [&](std::size_t g, std::size_t t, std::size_t c) {
    return keys.numbers[(g * 7 + t) * 6 + c];
  };
  for (std::size_t h = 0; h < 4; ++h)
    for (std::size_t t = 0; t < 7; ++t)
      for (std::size_t c = 0; c < 6; ++c)
        repeated.numbers.push_back(at(h / 2, t, c)), tiled.numbers.push_back(at(h % 2, t, c));
  for (std::size_t t = 0; t < 7; ++t)
    for (std::size_t h = 0; h < 4; ++h)
      for (std::size_t c = 0; c < 6; ++c) {
        repeated_joined.numbers.push_back(at(h / 2, t, c));
        if (h < 2) joined.numbers.push_back(at(h, t, c));
      }
  const auto reading_of = [&](const Tensor& tensor) {
    const Report report = checked(model, {tensor});
    EXPECT_TRUE(report.agrees) << report_text(report);
    return report.stages.at(0).reading;
  };
  EXPECT_EQ(reading_of(repeated), "[B, H, T, d], repeated for each head");
  EXPECT_EQ(reading_of(joined), "[T, H/2·d], groups of 2 heads");
  EXPECT_EQ(reading_of(repeated_joined), "[B, T, H·d], repeated for each head");
  const Report of_tiled = checked(model, {tiled});
  EXPECT_THAT(of_tiled.causes(), ElementsAre("groups_tiled")) << report_text(of_tiled);
  EXPECT_THAT(report_text(of_tiled), HasSubstr("repeat_interleave(2, dim=1)"));

  Tensor unfit = keys;
  unfit.shape = {3, 7, 6}, unfit.numbers.resize(126);
  EXPECT_EQ(checked(model, {unfit}).stages.at(0).obstacle,
            "expected [2, 7, 6], got [3, 7, 6]: 3 heads instead of 2, one for each group, or 4");
}

TEST_F(Llama, ADifferenceInAGroupIsOneOfItsHeads) {
  Tensor keys = tensor("right", "keys", "keys");
  keys.numbers[42 + 4] += 0.5;
  const Report wrong = checked(model, {keys});
  EXPECT_THAT(row_of(*wrong.first_difference())[5], testing::EndsWith(" at head 2, row 0, column 4"));
  const MatchResult matched = match(model, support::tensors_in_memory({keys}), {});
  const ObservedTrace observed = observed_trace(model, matched, check(model, matched, {}), 0);
  for (const std::size_t head : {2, 3})
    EXPECT_EQ(observed.trace.at(attention::Stage::keys, head)(0, 4), keys.numbers[46]) << head;
  EXPECT_EQ(observed.trace.at(attention::Stage::keys, 1)(0, 4), keys.numbers[4]);
}

TEST_F(Llama, QueriesThatWereTurnedUnderThePlainNameAreSaidToBe) {
  const Report report =
      checked(model, {tensor("right", "rotated_queries", "q"), tensor("right", "rotated_keys", "attn.k"),
                      tensor("right", "weights", "weights")});
  EXPECT_TRUE(report.agrees);
  EXPECT_EQ(report.stages.at(0).stage, Stage::rotated_queries);
  EXPECT_EQ(report.stages.at(1).stage, Stage::rotated_keys);
  EXPECT_THAT(report.notes,
              ElementsAre("q is the right rotated_queries: that is another name and not a bug, but the "
                          "queries before that were not compared with it",
                          HasSubstr("attn.k is the right rotated_keys")));
  // The same names next to a mistake whose effect they show.
  const Report pairs = checked(model, {tensor("rotary_other_pairs", "rotated_queries", "q"),
                                       tensor("rotary_other_pairs", "weights", "weights")});
  EXPECT_THAT(pairs.causes(), ElementsAre("rotary_other_pairs"));
  EXPECT_EQ(pairs.stages.at(0).stage, Stage::rotated_queries);
}

TEST_F(Llama, AStageThatWasComputedAndNotUsedKeepsNoCauseFromBeingFound) {
  std::vector<Tensor> tensors = fixture.tensors("rotary_missing");
  tensors.push_back(tensor("right", "rotated_queries", "q_rot"));
  EXPECT_THAT(checked(model, tensors).causes(), ElementsAre("rotary_missing"));
  tensors.back() = tensor("right", "queries", "q_rot");  // unrotated queries under the name of rotated ones
  EXPECT_THAT(checked(model, tensors).causes(), ElementsAre("rotary_missing"));
}

}  // namespace
}  // namespace core::check
