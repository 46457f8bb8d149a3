// Dumps of queries, keys, values and accompanying tensors.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/visible.hpp"
#include "core/importing/import.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/checkpoint_of.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::importing {
namespace {

using attention::ScaleRule;
using attention::Stage;
using support::rows_of_two;
using support::write;
using support::Written;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr float inf = std::numeric_limits<float>::infinity();

Written scores_times(float factor) {
  Written scores{"scores", {1, 3, 3}, {}};
  for (int i = 1; i <= 3; ++i)
    for (int j = 1; j <= 3; ++j) scores.numbers.push_back(factor * static_cast<float>(i * j));
  return scores;
}

struct StagesInAFile : testing::Test {
  support::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "dump.safetensors";

  ImportResult imported(const Choices& choices = {}) const { return import_file(path, choices, {}); }
  ImportResult opened(const std::vector<Written>& tensors, const Choices& choices = {}) const {
    write(path, tensors);
    return imported(choices);
  }
  std::string refusal(const std::vector<Written>& tensors, const Choices& choices = {}) const {
    return support::error_of([&] { opened(tensors, choices); });
  }
  std::vector<std::string> layers(const Choices& choices = {}) const {
    return layer_names(support::read_checkpoint(formats::open_tensors(path)), choices, {});
  }
};

/// Returns a given stage's matrix of a head, or of a sequence and head in their order.
arma::mat given(const ImportResult& dump, Stage stage, std::size_t which) {
  return dump.model.given.find(stage)->matrices.at(which);
}

struct Dump : StagesInAFile {
  /// Queries of one head over three tokens, and keys with Q·Kᵀ[i, j] = (i + 1)(j + 1).
  const Written q{"q", {1, 3, 4}, {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}},
      k{"k", {1, 3, 4}, {1, 5, 0, 0, 2, 6, 0, 0, 3, 7, 0, 0}}, v{"v", {1, 3, 2}, {1, 0, 0, 1, 1, 1}};
  /// One head in two sequences, or layers, of three tokens.
  const Written both_q{"q", {2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}}, both_k{"k", {2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}};
  const Choices batch{.first_axis_is_batch = true}, two_heads{.n_heads = 2}, three_heads{.n_heads = 3};

  static Choices strict() {
    Choices choices;
    choices.ignored.emplace();
    return choices;
  }
};

/// Returns which keys each query sees, for each sequence: "100 110 111, 111 111 111".
std::string seen(const attention::Model& model) {
  std::string words;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const arma::mat visible = attention::visibility_matrix(model, s);
    for (arma::uword i = 0; i < visible.n_rows; ++i) {
      if (i > 0 || s > 0) words += i > 0 ? " " : ", ";
      for (const double shown : visible.row(i)) words += shown == 1 ? '1' : '0';
    }
  }
  return words;
}

TEST_F(Dump, WithABooleanMaskSeesWhatItShows) {
  const ImportResult dump = opened({q, k, v, {"attn_mask", {3, 3}, {1, 0, 0, 1, 1, 0, 0, 1, 1}, "BOOL"}});
  EXPECT_FALSE(dump.model.mask.causal);
  EXPECT_EQ(seen(dump.model), "100 110 011");
  EXPECT_THAT(dump.import_report.used, Contains("attn_mask [3, 3] as the mask"));
  EXPECT_THAT(dump.import_report.assumed, ElementsAre("1 head", "scale 1/√4"));
  EXPECT_THAT(dump.import_report.not_used, IsEmpty());
}

TEST_F(Dump, WithACausalMaskOfAnyKindIsCausal) {
  for (const Written& mask : {Written{"mask", {1, 1, 3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}, "U8"},
                              Written{"mask", {3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}},
                              Written{"attn_bias", {3, 3}, {0, -inf, -inf, 0, 0, -inf, 0, 0, 0}},
                              Written{"mask", {3, 3}, {0, -1e9f, -1e9f, 0, 0, -1e9f, 0, 0, 0}},
                              Written{"is_causal", {1}, {1}, "BOOL"}}) {
    const ImportResult dump = opened({q, k, v, mask});
    EXPECT_TRUE(dump.model.mask.causal) << mask.name;
    EXPECT_THAT(dump.model.mask.cells, IsEmpty()) << mask.name;
    EXPECT_THAT(dump.import_report.not_supported, IsEmpty());
  }
  const ImportResult not_causal = opened({q, k, v, {"is_causal", {1}, {0}, "BOOL"}});
  EXPECT_FALSE(not_causal.model.mask.causal);
  EXPECT_THAT(not_causal.import_report.assumed, ElementsAre("1 head", "scale 1/√4"));
}

TEST_F(Dump, OfABatchWithAMaskOfItsKeysHidesThem) {
  const ImportResult dump = opened({both_q, both_k, {"attention_mask", {2, 3}, {1, 1, 0, 1, 1, 1}}}, batch);
  EXPECT_EQ(seen(dump.model), "110 110 110, 111 111 111");
}

TEST_F(Dump, OfFourAxesIsABatchWhereAMaskHasAsManySequences) {
  for (const Written& mask : {Written{"attention_mask", {2, 3}, {0, 1, 1, 1, 1, 1}},
                              Written{"attention_mask", {2, 1, 1, 3}, {0, 1, 1, 1, 1, 1}}}) {
    const ImportResult dump = opened({both_q, both_k, mask});
    EXPECT_EQ(seen(dump.model), "011 011 011, 111 111 111");
    EXPECT_THAT(dump.import_report.used,
                Contains("the first axis as sequences, of which a mask has as many"));
  }
  // Without such a mask layers are assumed, unless one is requested.
  const std::string assumed = "that the first axis of q [2, 1, 3, 1] counts layers, not sequences";
  const ImportResult of_layers = opened({both_q, both_k});
  EXPECT_EQ(of_layers.model.sequences.size(), 1u);
  EXPECT_THAT(of_layers.import_report.assumed, Contains(assumed));
  EXPECT_THAT(opened({both_q, both_k}, {.layer = "1"}).import_report.assumed,
              testing::Not(Contains(assumed)));
}

TEST_F(Dump, OfFewerQueriesThanKeysThatIsCausalBeginsAtTheFirstKeyAsInPyTorch) {
  const Written one_q{"q", {1, 2, 4}, {1, 0, 0, 0, 2, 0, 0, 0}};
  const ImportResult dump = opened({one_q, k, v, {"is_causal", {1}, {1}, "BOOL"}});
  EXPECT_EQ(seen(dump.model), "100 110");
}

/// Returns a causal mask of three tokens, the first n_padding of them padding, as transformers makes it.
std::vector<float> left_padded(int n_padding) {
  std::vector<float> mask;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) mask.push_back(j <= i && j >= n_padding ? 1 : 0);
  return mask;
}

TEST_F(Dump, OfALeftPaddedTextIsNotTurnedRound) {
  for (const auto& [n_padding, shown] : {std::pair{1, "000 010 011"}, {2, "000 000 001"}})
    for (const char* type : {"BOOL", "F32"})
      for (const formats::TensorShape& shape :
           {formats::TensorShape{3, 3}, formats::TensorShape{1, 1, 3, 3}}) {
        const ImportResult dump = opened({q, k, v, {"attn_mask", shape, left_padded(n_padding), type}});
        EXPECT_EQ(seen(dump.model), shown) << type;
        EXPECT_THAT(dump.import_report.used, Contains("1 in attn_mask shows"));
      }
  // Padding on the right; its queries have no unmasked key.
  const ImportResult right = opened({q, k, v, {"attn_mask", {3, 3}, {1, 0, 0, 1, 1, 0, 0, 0, 0}, "BOOL"}});
  EXPECT_EQ(seen(right.model), "100 110 000");
}

TEST_F(Dump, OfSequencesOfWhichOneIsPaddedIsTurnedInBothOrInNone) {
  std::vector<float> mask = left_padded(0), padded = left_padded(2);
  mask.insert(mask.end(), padded.begin(), padded.end());
  const ImportResult dump = opened({both_q, both_k, {"attention_mask", {2, 1, 3, 3}, mask, "BOOL"}}, batch);
  EXPECT_TRUE(dump.model.mask.causal);
  EXPECT_EQ(seen(dump.model), "100 110 111, 000 000 001");
  // The first sequence has no masked key; only the second one reveals that 1 masks.
  const ImportResult hides = opened({both_q, both_k, {"mask", {2, 3}, {0, 0, 0, 0, 0, 1}, "BOOL"}}, batch);
  EXPECT_EQ(seen(hides.model), "111 111 111, 110 110 110");
}

TEST_F(Dump, WithABiasAddsItToTheScores) {
  // Scaled by 1/√4, row i of the scores is (i + 1)(j + 1)/2; the bias is added, and −∞ masks.
  const Written bias{"attn_bias", {3, 3}, {0, -inf, -inf, -1, 0, -inf, -2, -1, 0}};
  const ImportResult dump = opened({q, k, v, bias}, strict());
  EXPECT_TRUE(dump.model.mask.causal);
  EXPECT_THAT(dump.import_report.used, Contains("attn_bias [3, 3] as a bias of the scores"));
  const arma::mat weights = attention::attend(dump.model).at(Stage::weights, 0);
  const double own = std::exp(2), first = std::exp(1 - 1);
  EXPECT_NEAR(weights(1, 0), first / (own + first), 1e-12);
  EXPECT_EQ(weights(1, 2), 0);
  EXPECT_THAT(opened({scores_times(0.5), v, bias}).import_report.assumed,
              Contains("that the scores do not include attn_bias"));
  // A bias for each of two heads, one of which masks more.
  const Written two_q{"q", {2, 2, 1}, {1, 2, 3, 4}}, two_k{"k", {2, 2, 1}, {1, 2, 3, 4}};
  const ImportResult of_heads = opened({two_q, two_k, {"attn_bias", {2, 2, 2}, {0, 3, 0, 0, 0, -inf, 5, 0}}});
  const auto trace = attention::attend(of_heads.model);
  EXPECT_NEAR(trace.at(Stage::weights, 0)(0, 1), std::exp(2 + 3) / (std::exp(1) + std::exp(2 + 3)), 1e-12);
  EXPECT_EQ(trace.at(Stage::weights, 1)(0, 1), 0);
  EXPECT_NEAR(trace.at(Stage::weights, 1)(1, 0), std::exp(12 + 5) / (std::exp(12 + 5) + std::exp(16)), 1e-12);
}

TEST_F(Dump, WithABiasOfASequenceOrAMaskAHeadIsRefusedUnlessIgnored) {
  const Written q_of_two{"q", {2, 1, 2, 1}, {1, 2, 3, 4}}, k_of_two{"k", {2, 1, 2, 1}, {1, 2, 3, 4}};
  const Written bias{"attn_bias", {2, 1, 2, 2}, {0, 0.5f, 0, 0, 0, 0, 0, 0}};
  Choices strict_batch = strict();
  strict_batch.first_axis_is_batch = true;
  EXPECT_THAT(refusal({q_of_two, k_of_two, bias}, strict_batch),
              HasSubstr("--ignore bias opens it without them"));
  const ImportResult dump = opened({q_of_two, k_of_two, bias}, batch);
  ASSERT_EQ(dump.import_report.not_supported.size(), 1u);
  EXPECT_EQ(dump.import_report.not_supported[0].name, "bias");
  const Written two_q{"q", {2, 2, 1}, {1, 2, 3, 4}}, two_k{"k", {2, 2, 1}, {1, 2, 3, 4}};
  EXPECT_THAT(refusal({two_q, two_k, {"mask", {2, 2, 2}, {1, 0, 1, 1, 1, 1, 1, 1}, "BOOL"}}, strict()),
              HasSubstr("--ignore mask"));
}

TEST_F(Dump, WithAScaleIsScaledByIt) {
  const ImportResult dump = opened({q, k, v, {"scale", {}, {0.125}}});
  EXPECT_EQ(dump.model.scale, (attention::Scale{ScaleRule::factor, 0.125}));
  EXPECT_THAT(dump.import_report.assumed, ElementsAre("1 head", "not causal: every key is attended to"));
  const ImportResult divided = opened({q, k, v, {"scale", {1}, {2}}});  // √4
  EXPECT_EQ(divided.model.scale.factor, 0.5);
  EXPECT_THAT(divided.import_report.assumed, Contains("scores are divided by scale, which is √4"));
}

TEST_F(Dump, WithScoresIsToldByQueriesAndKeysWhetherTheyAreScaled) {
  const ImportResult raw = opened({q, k, v, scores_times(1)});
  EXPECT_TRUE(raw.model.given.find(Stage::scores));
  EXPECT_EQ(raw.model.scale, (attention::Scale{ScaleRule::factor, 0.5}));
  EXPECT_THAT(raw.import_report.used, Contains("the scores are Q·Kᵀ, not scaled yet"));
  EXPECT_THAT(raw.import_report.assumed, Contains("scale 0.5"));
  const ImportResult scaled = opened({q, k, v, scores_times(0.5)});
  EXPECT_TRUE(scaled.model.given.find(Stage::scaled_scores));
  EXPECT_THAT(scaled.import_report.used, Contains("the scores are scaled already: Q·Kᵀ × 0.5"));
  Written other = scores_times(1);
  other.numbers[4] = -7;
  EXPECT_THAT(opened({q, k, v, other}).import_report.assumed,
              Contains("the scores, which are not Q·Kᵀ times a number, are scaled already"));
  // Either way the softmax is of i·j/2: the second row's first weight is e¹/(e¹ + e² + e³).
  const double first = std::exp(1) / (std::exp(1) + std::exp(2) + std::exp(3));
  for (const ImportResult* each : {&raw, &scaled})
    EXPECT_NEAR(attention::attend(each->model).at(Stage::weights, 0)(1, 0), first, 1e-12);
}

TEST_F(Dump, OfWeightsWithTheirHeadsLastIsTurned) {
  // [2, 2, 3]: head h has the rows a, 1 − a with a = 0.1 (h + 1), then 0.2 (h + 1).
  Written weights{"weights", {2, 2, 3}, {}};
  for (const float a : {0.1f, 0.2f})
    for (const bool second : {false, true})
      for (int h = 1; h <= 3; ++h)
        weights.numbers.push_back(second ? 1 - a * static_cast<float>(h) : a * static_cast<float>(h));
  const ImportResult dump = opened({weights});
  EXPECT_EQ(dump.model.n_heads, 3u);
  const arma::mat last = given(dump, Stage::weights, 2);
  EXPECT_TRUE(support::is_near(last, arma::mat{{0.3, 0.7}, {0.6, 0.4}}, 1e-6));
  EXPECT_THAT(
      dump.import_report.assumed,
      ElementsAre("that the last axis of weights [2, 2, 3] counts heads, as the one before it sums to 1"));
  EXPECT_THAT(dump.notes, testing::Not(Contains(HasSubstr("do not sum to 1"))));
}

TEST_F(Dump, OfWeightsWhoseRowsDoNotSumToOneSaysSo) {
  Written weights = rows_of_two("weights", {1, 2, 2}, 0.25f);
  weights.numbers[2] = 0.5f;
  EXPECT_THAT(
      opened({weights}).notes,
      Contains("The weights are no weights of a softmax: 1 of 2 rows do not sum to 1 (row 1 of head 0 "
               "sums to 1.25)."));
}

TEST_F(Dump, IsSplitIntoTheHeadsThatAreSaid) {
  for (const formats::TensorShape& shape : {formats::TensorShape{3, 4}, formats::TensorShape{1, 3, 4}}) {
    Written queries = q, keys = k;
    queries.shape = keys.shape = shape;
    const ImportResult dump = opened({queries, keys}, two_heads);
    EXPECT_EQ(dump.model.n_heads, 2u);
    const arma::mat second = given(dump, Stage::keys, 0);
    EXPECT_TRUE(support::is_near(second, arma::mat{{1, 5}, {2, 6}, {3, 7}}, 0));
  }
  EXPECT_THAT(refusal({q, k}, three_heads), HasSubstr("q: expected 3 heads, got [1, 3, 4]"));
  EXPECT_THAT(refusal({rows_of_two("weights", {2, 2, 2})}, three_heads),
              HasSubstr("expected 3 heads, got 2 in [2, 2, 2]"));
}

TEST_F(Dump, WithHeadsAfterTokensIsReadSoOrSaysThatItIsNot) {
  // Two tokens by three heads, as in TransformerLens and flash-attention.
  Written queries{"blocks.0.attn.hook_q", {1, 2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
      keys = queries;
  keys.name = "blocks.0.attn.hook_k";
  const arma::mat second{{3, 4}, {9, 10}};  // the second head
  ImportResult dump = opened({queries, keys});
  EXPECT_EQ(dump.model.n_heads, 3u);
  EXPECT_TRUE(support::is_near(given(dump, Stage::queries, 1), second, 0));
  queries.name = "q", keys.name = "k";
  dump = opened({queries, keys});
  EXPECT_EQ(dump.model.n_heads, 2u);
  EXPECT_THAT(dump.import_report.assumed,
              Contains("q [1, 2, 3, 2] is [sequences, heads, tokens, columns] (--heads would tell)"));
  for (const formats::TensorShape& shape :
       {formats::TensorShape{1, 2, 3, 2}, formats::TensorShape{2, 3, 2}}) {
    queries.shape = keys.shape = shape;
    dump = opened({queries, keys}, three_heads);
    EXPECT_EQ(dump.model.n_heads, 3u);
    EXPECT_TRUE(support::is_near(given(dump, Stage::queries, 1), second, 0));
  }
}

TEST_F(Dump, WithValuesOfAllHeadsSplitsThemAsTheWeightsSay) {
  const ImportResult dump =
      opened({rows_of_two("weights", {1, 2, 2, 2}, 0.25f), {"v", {1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}});
  const arma::mat second = given(dump, Stage::values, 1);
  EXPECT_TRUE(support::is_near(second, arma::mat{{3, 4}, {7, 8}}, 0));
}

TEST_F(Dump, WithoutLayersRefusesToChooseOne) {
  const Choices first{.layer = "0"};
  const std::string expected = "expected no layer to be chosen, as there are none in it, got \"0\"";
  EXPECT_THAT(refusal({q, k}, first), HasSubstr(expected));
  EXPECT_THAT(refusal({{"x", {2, 2}, {1, 2, 3, 4}}}, first), HasSubstr(expected));
}

TEST_F(StagesInAFile, OfFourDimensionsHaveLayersOfWhichOneIsGiven) {
  write(path, {rows_of_two("attn_weights", {3, 2, 2, 2})});
  EXPECT_EQ(layers().size(), 3u);
  const ImportResult second = imported({.layer = "1"});
  EXPECT_EQ(second.model.n_heads, 2u);
  EXPECT_EQ(second.model.n_tokens(), 2u);
  EXPECT_THAT(second.notes, ElementsAre("Given weights [3, 2, 2, 2]: layer 1 of 3."));
  // Row 1 of layer 1, head 1 is the eighth row of all.
  EXPECT_FLOAT_EQ(given(second, Stage::weights, 1)(1, 0), 0.07);
  EXPECT_EQ(given(imported(), Stage::weights, 0)(0, 0), 0) << "the first, unasked";
}

TEST_F(StagesInAFile, OfNoNumbersHaveNoLayersHoweverManyTheyClaim) {
  write(path, {{"w", {std::size_t{1} << 40, 1, 1, 0}, {}}});
  EXPECT_THAT(support::error_of([&] {
                layers({.stages = {{Stage::weights, {"w"}}}});
              }),
              HasSubstr("w: expected at least one number, got ["));
}

TEST(StagesBeyondTheLimits, AreRefusedBeforeTheyAreRead) {
  const auto refusal = [](const char* name, const formats::TensorShape& shape) {
    formats::TensorInfo info;
    info.name = name;
    info.shape = shape;
    const auto read = [&](std::span<const std::size_t> leading, const core::StopToken&) {
      EXPECT_FALSE(leading.empty()) << "all of it was read";
      formats::Tensor part;  // a row sum of 2: these are no weights
      part.shape = {1, 1}, part.numbers = {2};
      return part;
    };
    const formats::TensorFile file("/d.npz", "npz", {{info, read}});
    return support::error_of([&] { import_tensors(support::read_checkpoint(file), {}, core::StopToken()); });
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

TEST_F(StagesInAFile, WithABatchInEveryLayerGiveItsSequences) {
  const ImportResult last = opened({rows_of_two("attentions", {2, 3, 1, 2, 2})}, {.layer = "1"});
  EXPECT_EQ(last.model.sequences.size(), 3u);
  EXPECT_EQ(last.model.n_heads, 1u);
  // Row 1 of layer 1, sequence 2 is the twelfth row.
  EXPECT_FLOAT_EQ(given(last, Stage::weights, 2)(1, 0), 0.11);
}

TEST_F(StagesInAFile, OfALayerEachAreToldApartByTheirNames) {
  write(path, {rows_of_two("model.layers.10.self_attn.attn_weights", {1, 1, 2, 2}, 0.5f),
               rows_of_two("model.layers.2.self_attn.attn_weights", {1, 1, 2, 2}, 0.25f)});
  EXPECT_THAT(layers(), ElementsAre("model.layers.2.self_attn", "model.layers.10.self_attn"));
  EXPECT_EQ(given(imported(), Stage::weights, 0)(1, 0), 0.25);
  EXPECT_EQ(given(imported({.layer = "1"}), Stage::weights, 0)(1, 0), 0.5);
}

TEST_F(StagesInAFile, HaveTheirLayerAnywhereInTheName) {
  for (const char* name : {"attn_weights.4", "attn_layer_4", "layer4_attn", "blocks.4.attn"}) {
    write(path, {rows_of_two(name, {1, 2, 2})});
    const auto found = find_stages(formats::open_tensors(path), {});
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
  EXPECT_THAT(find_stages(formats::open_tensors(path), {}), IsEmpty());
}

TEST_F(StagesInAFile, AreTheLatestOfTheScoresWithTheValues) {
  const Written q{"q", {1, 2, 1}, {1, 2}}, k{"k", {1, 2, 1}, {1, 1}}, v{"v", {1, 2, 1}, {4, 8}};
  const auto model = opened({q, k, v, rows_of_two("weights", {1, 2, 2}, 0.25f)}).model;
  EXPECT_EQ(model.given.stages.size(), 2u);
  // The second row of weights is 1/4, 3/4.
  EXPECT_EQ(attention::attend(model).at(Stage::contexts, 0)(1, 0), 0.25 * 4 + 0.75 * 8);
  EXPECT_EQ(opened({q, k, v}).model.given.stages.size(), 3u);
}

TEST_F(StagesInAFile, OfAHeadEachAreOneStage) {
  std::filesystem::create_directory(directory.path() / "export");
  support::put_bytes(directory.path() / "export" / "weights.head0.csv", "1,0\n0.5,0.5\n");
  support::put_bytes(directory.path() / "export" / "weights.head1.csv", "1,0\n0.25,0.75\n");
  const ImportResult both = import_file(directory.path() / "export", {}, {});
  EXPECT_EQ(both.model.n_heads, 2u);
  EXPECT_EQ(given(both, Stage::weights, 1)(1, 0), 0.25);
}

TEST_F(StagesInAFile, ThatDoNotFitAreRefusedInOneLine) {
  EXPECT_EQ(refusal({rows_of_two("attn_weights", {3, 2, 2, 2})}, {.layer = "3"}),
            path.string() + ": expected a layer of 0 … 2, got \"3\"");
  EXPECT_THAT(refusal({rows_of_two("weights", {3, 2, 2, 2}), {"v", {2, 1, 2, 1}, {1, 2, 3, 4}}}),
              HasSubstr("expected 3 layers, as the other stages have"));
}

}  // namespace
}  // namespace core::importing
