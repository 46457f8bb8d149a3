#include <gtest/gtest.h>

#include "core/model/generate.hpp"
#include "core/model/predictions.hpp"
#include "core/model/roles.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"

namespace core::transformer {
namespace {

using goldens::Golden;

/// What heads do by their weights, against the same means taken by NumPy from the library's weights.
TEST(Roles, AreThoseOfTheReference) {
  for (const std::string name : {"tiny_gpt", "llama", "gpt_neox", "bert"}) {
    const bool is_tiny = name == "tiny_gpt";
    const Golden golden(goldens::folder + name + (is_tiny ? ".npz" : "/golden.npz"));
    const Transformer model = goldens::opened(is_tiny ? goldens::tiny_gpt : goldens::folder + name);
    goldens::Tools tools;
    const Pass pass = run(model, golden.ids(), {}, tools.means);
    for (std::size_t l = 0; l < pass.layers.size(); ++l)
      for (std::size_t h = 0; h < model.architecture.sizes.n_heads; ++h) {
        const HeadRoles roles = roles_of(weights_in(model, pass, l, h), pass.ids);
        const arma::mat expected = golden.matrix("roles", {l, h});
        const double got[]{roles.previous,          roles.first,       roles.itself, roles.same_token.value(),
                           roles.induction.value(), roles.entropy_bits};
        for (std::size_t k = 0; k < 6; ++k)
          EXPECT_NEAR(got[k], expected[k], 2e-5) << name << " " << l << "." << h << " " << k;
      }
  }
}

TEST(Roles, OfTokensThatAreNotRepeatedAreNotKnown) {
  const HeadRoles roles = roles_of(arma::fmat{{1, 0}, {0.25f, 0.75f}}, {4, 5});
  EXPECT_FALSE(roles.same_token || roles.induction);
  EXPECT_EQ(roles.previous, 0.25);
  EXPECT_EQ(roles.itself, 0.875);
}

/// Token after token with the keys and values that are there, against all tokens at once.
TEST(Cache, GivesWhatAWholePassGives) {
  for (const char* name : {"gpt2", "llama", "mistral", "qwen3", "gpt_neox"}) {
    const Transformer model = goldens::opened(goldens::folder + name);
    const Golden golden(goldens::folder + name + "/golden.npz");
    goldens::Tools tools;
    const auto ids = golden.ids();
    const arma::mat expected = golden.matrix("logits");
    Cache cache;
    arma::frowvec logits = read_on(model, cache, {ids[0], ids[1], ids[2]}, {}, tools.means);
    for (std::size_t i = 3; i <= ids.size(); ++i) {
      EXPECT_LT(goldens::relative_difference(logits, expected.row(i - 1)), 2e-5) << name << " " << i;
      if (i < ids.size()) logits = read_on(model, cache, {ids[i]}, {}, tools.means);
    }
    EXPECT_EQ(cache.n_tokens, ids.size());
  }
}

TEST(Cache, RefusesWhatTheModelCannotRead) {
  goldens::Tools tools;
  Cache cache;
  const Transformer gpt2 = goldens::opened(goldens::folder + "gpt2");
  read_on(gpt2, cache, std::vector<std::size_t>(60), {}, tools.means);
  EXPECT_EQ(support::error_of([&] { read_on(gpt2, cache, std::vector<std::size_t>(5), {}, tools.means); }),
            "expected at most 64 tokens, as many as the model takes at once, got 65");
  const std::string bert = goldens::folder + "bert";
  EXPECT_EQ(support::error_of([&] { read_on(goldens::opened(bert), cache, {1}, {}, tools.means); }),
            bert + ": tokens of this model see both sides, so it cannot go on with a text");
}

TEST(Guesses, AreTheMostProbableTokensOfTheTokenizer) {
  const arma::frowvec logits{1, 3, 3, 2, 9};
  const auto guesses = best_guesses(logits, 3, 4);  // the last row is padding
  ASSERT_EQ(guesses.size(), 3u);
  EXPECT_EQ(guesses[0].id, 1u);
  EXPECT_EQ(guesses[1].id, 2u);
  EXPECT_EQ(guesses[2].id, 3u);
  const double sum = std::exp(1) + 2 * std::exp(3) + std::exp(2) + std::exp(9);
  EXPECT_NEAR(guesses[0].probability, std::exp(3) / sum, 1e-12);
}

TEST(Choice, OfTheTopOneIsTheMostProbableAndASeedIsFollowed) {
  const arma::frowvec logits{0, 2, 1.5f, -1};
  random::Generator generator(1), again(1);
  EXPECT_EQ(chosen(logits, 4, {0, 0}, generator), 1u);
  EXPECT_EQ(chosen(logits, 4, {1.5, 1}, generator), 1u);
  std::vector<std::size_t> counts(4);
  for (int k = 0; k < 2000; ++k) ++counts[chosen(logits, 4, {0.5, 2}, generator)];
  EXPECT_EQ(counts[0] + counts[3], 0u);
  EXPECT_NEAR(counts[1] / 2000.0, 1 / (1 + std::exp(-1.0)), 0.04);  // scores 4 and 3
  chosen(logits, 4, {1.5, 1}, again);
  for (int k = 0; k < 2000; ++k) chosen(logits, 4, {0.5, 2}, again);
  EXPECT_EQ(generator.next_u32(), again.next_u32());
}

/// As near as float64 comes, where float32 divides to infinity.
TEST(ChosenToken, OfATemperatureNearNothingIsTheMostProbable) {
  random::Generator generator(3);
  for (const double temperature : {1e-40, 1e-300, 5e-324})
    for (int k = 0; k < 20; ++k) {
      EXPECT_EQ(chosen({-3, -1, -2, -90}, 4, {temperature, 0}, generator), 1u) << temperature;
      EXPECT_EQ(chosen({3, 1, 2, 9}, 4, {temperature, 3}, generator), 3u) << temperature;
    }
}

}  // namespace
}  // namespace core::transformer
