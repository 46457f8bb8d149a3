#include "core/editing/presets.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "core/graph/attend.hpp"
#include "core/graph/validation.hpp"
#include "tests/support/matchers.hpp"

namespace core::editing {
namespace {

using support::is_near;

/// Returns causal weights that are even, except that matching keys weigh e^match times as much.
arma::mat matching_weights(const std::vector<std::vector<std::size_t>>& matches) {
  const std::size_t n = matches.size();
  arma::mat w(n, n, arma::fill::zeros);
  for (std::size_t i = 0; i < n; ++i) {
    w.row(i).head(i + 1).fill(1);
    for (const std::size_t j : matches.at(i)) w(i, j) = std::exp(hand_built::match_score);
    w.row(i) /= arma::accu(w.row(i));
  }
  return w;
}

std::size_t characters(const std::string& utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

TEST(Presets, HaveNamesOfTheirOwnAndTitlesThatFit) {
  std::set<std::string> names, titles;
  for (const Preset& p : presets()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_TRUE(titles.insert(p.title).second) << p.title;
    EXPECT_LE(characters(p.title), 25u) << p.title;
    EXPECT_LE(characters(p.about), 120u) << p.name;
    EXPECT_THAT(p.about, testing::Not(testing::HasSubstr("\n"))) << p.name;
    EXPECT_GT(std::string(p.source).size(), 0u) << p.name;
  }
}

TEST(Presets, HoldEveryNotebookTheChapterAndTheHeads) {
  std::istringstream names(
      "multi-head 000-causal 001-dot-product 001-attention 001-attention-mask 001-multi-head "
      "001-multi-head-as-written 002-library 002-average 002-softmax-zeros 002-full 002-as-printed "
      "003-causal-class 003-masked-scores 003-dropout 004-self-attention 004-renormalise 004-causal "
      "004-causal-dropout chapter-causal-class chapter-two-heads chapter-multi-head chapter-dropped-weights "
      "head-previous-token head-first-token head-same-token head-average head-induction modern-grouped "
      "modern-rotary modern-llama modern-window modern-alibi modern-cap modern-sink modern-cross modern-decode");
  for (std::string name; names >> name;) EXPECT_NE(find_preset(name), nullptr) << name;
  EXPECT_EQ(find_preset("no-such-preset"), nullptr);
  EXPECT_STREQ(default_preset().name, "multi-head");
}

TEST(Presets, AreTheSameModelEachTimeAndCanBeComputed) {
  for (const Preset& p : presets()) {
    const attention::Model model = p.make();
    EXPECT_EQ(attention::check(model), std::nullopt) << p.name;
    EXPECT_TRUE(model == p.make()) << p.name;
  }
}

TEST(MultiHeadAsWritten, LeaksLaterTokensAndTheCorrectOneDoesNot) {
  for (const bool correct : {true, false}) {
    attention::Model model = find_preset(correct ? "001-multi-head" : "001-multi-head-as-written")->make();
    const arma::mat before = attention::attend(model).at(attention::Stage::output);
    model.sequences[0].embeddings.edit().row(3) += 1;
    const arma::mat moved = arma::abs(*attention::attend(model).at(attention::Stage::output) - before);
    if (correct)
      EXPECT_EQ(moved.head_rows(3).max(), 0);
    else
      EXPECT_GT(moved.head_rows(3).max(), 0.01);
  }
}

TEST(ModernRotary, HasScoresOfTheDistanceAlone) {
  const attention::Trace trace = attention::attend(find_preset("modern-rotary")->make());
  const arma::mat& scores = trace.at(attention::Stage::scores, 0);
  for (std::size_t i = 0; i < scores.n_rows; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      // Two pairs of ones with frequencies 1 and 0.1, rotated apart by the distance: 2·cos of each angle.
      const double distance = static_cast<double>(i - j);
      EXPECT_NEAR(scores(i, j), 2 * std::cos(distance) + 2 * std::cos(0.1 * distance), 1e-12);
    }
}

TEST(ModernAlibi, HasWeightsThatFallWithDistance) {
  const attention::Trace trace = attention::attend(find_preset("modern-alibi")->make());
  for (std::size_t h = 0; h < 8; ++h) {
    const arma::mat& weights = trace.at(attention::Stage::weights, h);
    const double slope = std::pow(2.0, -double(h + 1));
    for (std::size_t j = 1; j < 8; ++j)
      EXPECT_NEAR(std::log(weights(7, j) / weights(7, j - 1)), slope, 1e-12) << "head " << h;
  }
}

TEST(ModernDecode, IsTheLastRowOfTheWholePass) {
  const attention::Trace one = attention::attend(find_preset("modern-decode")->make());
  const attention::Trace all = attention::attend(find_preset("modern-llama")->make());
  EXPECT_TRUE(arma::approx_equal(*one.at(attention::Stage::output),
                                 arma::mat(all.at(attention::Stage::output)->tail_rows(1)), "absdiff",
                                 1e-12));
}

TEST(HandBuiltHeads, LookWhereTheirNamesSay) {
  struct Case {
    const char* preset;
    std::vector<std::vector<std::size_t>> matches;
  };
  for (const auto& [preset, matches] :
       {Case{"head-previous-token", {{}, {0}, {1}, {2}, {3}, {4}}},
        Case{"head-first-token", {{0}, {0}, {0}, {0}, {0}, {0}}},
        Case{"head-same-token", {{0}, {1}, {2}, {0, 3}, {1, 4}, {2, 5}}},  // a rose is a rose is
        Case{"head-average", {{}, {}, {}, {}, {}, {}}},
        Case{"head-induction", {{}, {}, {}, {}, {1}, {2}, {3}}}})  // the cat sat and the cat sat
    EXPECT_TRUE(is_near(attention::attend(find_preset(preset)->make()).at(attention::Stage::weights, 0),
                        matching_weights(matches), 1e-14))
        << preset;
}

TEST(HeadInduction, CarriesTheWordThatShouldComeNext) {
  const attention::Trace trace = attention::attend(find_preset("head-induction")->make());
  // Words by number: the 0, cat 1, sat 2, and 3. After the second "the" comes "cat", and so on.
  EXPECT_EQ(trace.at(attention::Stage::output).row(4).index_max(), 1u);
  EXPECT_EQ(trace.at(attention::Stage::output).row(5).index_max(), 2u);
  EXPECT_EQ(trace.at(attention::Stage::output).row(6).index_max(), 3u);
}

}  // namespace
}  // namespace core::editing
