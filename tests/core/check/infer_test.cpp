#include <gmock/gmock.h>

#include <cstdio>

#include "core/check/check.hpp"
#include "core/check/match.hpp"
#include "core/files/session.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/core/check/check_fixture.hpp"

/// Publicly reported bugs, rebuilt in NumPy: a correct session and the tensors of the buggy program.
namespace core::check {
namespace {

using testing::HasSubstr;

struct Bug {
  int number;
  const char* cause;                  ///< inferred from all stages
  const char* from_output = nullptr;  ///< from the output alone, if different; "" agrees
};

constexpr Bug bugs[] = {
    {0, "uniform geometric series 2^(−8(h+1)/n)"},
    {2, "the ALiBi bias is added twice"},
    {4, "all positions are 3 behind", ""},
    {6, "the last 4 keys and every query there are at position 0"},
    {8, "the positions of the queries are 4 behind"},
    {10, "runs over the axis of heads"},
    {12, "exponents 2p/8 (the head width) instead of 2p/4"},
    {14, "all 8 columns are rotated instead of 4"},
    {16, "runs over all heads at once"},
    {18, "multiplies by 1 + w"},
    {20, "the norm of the keys has the weights of the queries"},
    {22, "the scale is 0.353553 = 1/√d_head"},
    {24, "the softcap is missing"},
    {26, "the softmax adds 1 to its sum, not rescaled"},
    {28, "a sink in base 2"},
    {30, "heads use the sinks 0, 0, 1, 1"},
    {32, "the sliding window is [8, 4] instead of [4, 4]"},
    {34, "the mask is inverted"},
    {36, "the padding mask is shifted by 1 to the right"},
    {38, "a causal mask is applied from the first key on"},
    {40, "dropout is active: compare in eval mode"},
    {42, "all heads use KV head 0"},
    {44, "stored head by head (a group's queries, its key, its value) but cut as bands"},
    {46, "the heads are combined as [d_head, heads]"},
    {48, "as differential attention with λ = 0.5"},
    {50, "documents are ignored"},
    {52, "pairs are neighbors (2p, 2p + 1) instead of halves; the rotary base is 10000 instead of 500000"},
};

std::string path_of(const char* format, int number) {
  char name[32];
  std::snprintf(name, sizeof name, format, number);
  return std::string(FIXTURES) + "/check/inferred/" + name;
}

Report report_of(int number, const char* dump) {
  const Model model = formats::load_session(path_of("s%02d.json", number)).model;
  return check(model, match(model, formats::open_tensors(path_of(dump, number)), {}), {});
}

std::string sentences_of(const Report& report) {
  std::string all;
  for (const Explanation& explanation : report.explanations)
    for (const std::string& sentence : explanation.sentences) all += sentence + "\n";
  return all;
}

class InferenceOf : public testing::TestWithParam<Bug> {};

TEST_P(InferenceOf, NamesTheCauseWithItsNumberFromAllStages) {
  const Report report = report_of(GetParam().number, "d%02d_all.npz");
  EXPECT_FALSE(report.agrees);
  EXPECT_EQ(report.explanations.size(), 1u) << sentences_of(report);
  EXPECT_THAT(sentences_of(report), HasSubstr(GetParam().cause));
}

TEST_P(InferenceOf, NamesTheCauseFromTheOutputAlone) {
  const Report report = report_of(GetParam().number, "d%02d_out.npz");
  const char* expected = GetParam().from_output ? GetParam().from_output : GetParam().cause;
  EXPECT_EQ(report.agrees, !*expected);
  EXPECT_THAT(sentences_of(report), HasSubstr(expected));
}

INSTANTIATE_TEST_SUITE_P(PublicBugs, InferenceOf, testing::ValuesIn(bugs),
                         [](const auto& of) { return "number" + std::to_string(of.param.number); });

TEST(Inference, SaysThatWeightsWereAveragedAndIsHarmless) {
  const Report report = report_of(54, "d54_all.npz");
  EXPECT_TRUE(report.agrees);
  EXPECT_THAT(verdict_words(report),
              HasSubstr("weights are given averaged over the heads; that is harmless"));
}

TEST(Inference, SaysThatADifferenceIsHarmlessForWhatComesAfter) {
  EXPECT_THAT(verdict_words(report_of(4, "d04_all.npz")), HasSubstr("harmless for what comes after"));
}

TEST(Inference, GivesAModelThatHasTheNumbersOfTheOther) {
  for (const int number : {0, 8, 16, 26, 32, 46}) {
    const Report report = report_of(number, "d%02d_all.npz");
    const Model other = injected(report.explanations.at(0));
    const Report again =
        check(other, match(other, formats::open_tensors(path_of("d%02d_all.npz", number)), {}), {});
    EXPECT_TRUE(again.agrees) << number << ": " << verdict_words(again);
  }
}

}  // namespace
}  // namespace core::check
