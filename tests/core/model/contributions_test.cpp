#include "core/model/contributions.hpp"

#include <gtest/gtest.h>

#include "core/model/lens.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"

namespace core::transformer {
namespace {

using goldens::Golden;

constexpr std::size_t ig = 686;  // the token that "egg jam fig and egg jam f" goes on with

/// The tiny GPT on that text, and what NumPy makes of it (make_lens.py).
struct Lens : testing::Test {
  Golden golden{goldens::folder + "tiny_gpt_lens.npz"};
  Transformer model = goldens::opened(goldens::tiny_gpt);
  goldens::Tools tools;
  std::vector<std::size_t> ids{68, 70, 70, 520, 383, 277, 686, 282, 302, 70, 70, 520, 383, 277};
  Pass pass = run(model, ids, {}, tools.means);
  std::size_t row = ids.size() - 1;

  Contributions of(const Pass& of_pass, const Interventions& interventions) {
    std::vector<arma::fmat> added;
    for (std::size_t l = 0; l < of_pass.layers.size(); ++l)
      added.push_back(added_by_heads(model, of_pass, l, row, interventions, tools.means));
    return contributions_to(model, of_pass, row, ig, added, tools.means);
  }
};

TEST_F(Lens, PartsOfALogitAreThoseOfTheReference) {
  const Contributions parts = of(pass, {});
  for (std::size_t l = 0; l < 4; ++l) {
    for (std::size_t h = 0; h < 4; ++h)
      EXPECT_NEAR(parts.heads[l][h], golden.matrix("heads")(l, h), 1e-4) << l << "." << h;
    EXPECT_NEAR(parts.mlps[l], golden.matrix("mlps")[l], 1e-4) << l;
    EXPECT_NEAR(parts.besides[l], golden.matrix("besides")[l], 1e-4) << l;
  }
  EXPECT_NEAR(parts.embedding, golden.matrix("embedding")[0], 1e-4);
  EXPECT_NEAR(parts.constant, golden.matrix("constant")[0], 1e-4);
}

/// Whatever the family: rotary positions, groups, RMS norms, an MLP beside attention.
TEST(Contributions, AddUpToTheLogitInEveryFamilyThatHasThem) {
  goldens::Tools tools;
  for (const char* name : {"gpt2", "llama", "mistral", "qwen2", "qwen3", "gpt_neox", "gpt_neox_serial"}) {
    const Transformer model = goldens::opened(goldens::folder + name);
    const Golden golden(goldens::folder + name + "/golden.npz");
    const Interventions off{{{1, 1}}, {}, {}};
    const Pass pass = run(model, golden.ids(), off, tools.means);
    const std::size_t row = pass.ids.size() - 1;
    std::vector<arma::fmat> added;
    for (std::size_t l = 0; l < pass.layers.size(); ++l)
      added.push_back(added_by_heads(model, pass, l, row, off, tools.means));
    const arma::frowvec logits = logits_of(model, pass.last.row(row), tools.means).as_row();
    for (const std::size_t token : {std::size_t{3}, std::size_t{200}}) {
      const Contributions parts = contributions_to(model, pass, row, token, added, tools.means);
      EXPECT_NEAR(parts.sum(), logits[token], 2e-4 * (1 + std::abs(logits[token]))) << name << " " << token;
      EXPECT_EQ(parts.heads[1][1], 0) << name;
    }
  }
}

TEST(Contributions, AreRefusedWhereNormsStandBehindBlocks) {
  const std::string bert = goldens::folder + "bert";
  const Transformer model = goldens::opened(bert);
  goldens::Tools tools;
  EXPECT_FALSE(has_contributions(model));
  const Pass pass = run(model, {1, 2, 3}, {}, tools.means);
  EXPECT_EQ(support::error_of([&] { contributions_to(model, pass, 0, 1, {}, tools.means); }),
            bert + ": its logits are no sums of what heads add, as norms stand behind them");
}

TEST_F(Lens, LayersGuessWhatTheReferenceGuesses) {
  const arma::fmat logits = logits_after_layers(model, pass, row, tools.means);
  EXPECT_LT(goldens::relative_difference(logits, golden.matrix("lens")), 1e-5);
  EXPECT_NEAR(probability_of(logits.row(3), ig), 0.9287, 2e-3);  // of the float32 parameters
}

TEST_F(Lens, SwitchingAHeadOffDoesWhatItDoesInTheReference) {
  for (std::size_t l = 0; l < 4; ++l)
    for (std::size_t h = 0; h < 4; ++h) {
      const arma::frowvec logits = logits_without(model, pass, l, h, row, {}, tools.means);
      EXPECT_NEAR(logits[ig], golden.matrix("off_logit")(l, h), 1e-4) << l << "." << h;
      EXPECT_NEAR(probability_of(logits, ig), golden.matrix("off_probability")(l, h), 2e-5) << l << "." << h;
    }
  const Interventions off{{{2, 3}}, {}, {}};
  const Pass edited = run(model, ids, off, tools.means);
  EXPECT_NEAR(probability_of(logits_without(model, edited, 2, 0, row, off, tools.means), ig),
              golden.matrix("both_off")[0], 2e-5);
}

/// What stands in a layer's place may look at what enters it.
TEST_F(Lens, AnotherAttentionTakesThePlaceOfALayers) {
  Interventions other;
  other.attentions[2] = [&](const arma::fmat& input) {
    EXPECT_EQ(input.n_rows, ids.size());
    return pass.layers[2]->output;
  };
  EXPECT_TRUE(arma::approx_equal(run(model, ids, other, tools.means).last, pass.last, "absdiff", 0));
  other.attentions[2] = [](const arma::fmat& input) { return arma::fmat(arma::size(input)); };
  EXPECT_FALSE(arma::approx_equal(run(model, ids, other, tools.means).last, pass.last, "absdiff", 1e-3));
}

}  // namespace
}  // namespace core::transformer
