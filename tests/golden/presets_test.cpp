// Presets against the fixtures of their notebooks, and against the numbers that the chapter prints.
#include <gtest/gtest.h>

#include "core/base/draw_op.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/visible.hpp"
#include "tests/golden/fixture_model.hpp"
#include "tests/support/matchers.hpp"

namespace golden {
namespace {

using core::attention::Stage;

using core::attention::Trace;
using support::is_near;

constexpr double four_decimals =
    5.1e-5;  // as chapter 3 of "Build a Large Language Model (From Scratch)" prints

const arma::mat first_head{{-0.4519, 0.2216},  {-0.5874, 0.0058},  {-0.6300, -0.0632},
                           {-0.5675, -0.0843}, {-0.5526, -0.0981}, {-0.5299, -0.1081}};

Trace trace_of(const char* name, std::size_t sequence = 0) {
  return core::attention::attend(core::editing::find_preset(name)->make(), sequence);
}

TEST(ChapterPreset, GivesThePublishedContextsAndOutputs) {
  const arma::mat second_head{{0.4772, 0.1063}, {0.5891, 0.3257}},
      multi_head{{0.3190, 0.4858}, {0.2943, 0.3897}, {0.2856, 0.3593},
                 {0.2693, 0.3873}, {0.2639, 0.3928}, {0.2575, 0.4028}};
  for (const std::size_t sequence : {0, 1}) {
    EXPECT_TRUE(
        is_near(trace_of("chapter-causal-class", sequence).at(Stage::output), first_head, four_decimals));
    const arma::mat two_heads = trace_of("chapter-two-heads", sequence).at(Stage::output);
    EXPECT_TRUE(is_near(two_heads.head_cols(2), first_head, four_decimals));
    EXPECT_TRUE(is_near(two_heads.submat(0, 2, 1, 3), second_head, four_decimals));
    EXPECT_TRUE(
        is_near(trace_of("chapter-multi-head", sequence).at(Stage::output), multi_head, four_decimals));
  }
}

TEST(ChapterPreset, DroppedWeightsLoseTheSecondRowAndKeepTheThird) {
  const arma::mat dropped = trace_of("chapter-dropped-weights").at(Stage::dropped_weights, 0);
  EXPECT_TRUE(is_near(dropped.row(1), arma::zeros(1, 6), 0));
  EXPECT_TRUE(is_near(dropped.row(2), arma::rowvec{0.7599, 0.6194, 0.6206, 0, 0, 0}, four_decimals));
}

TEST(ChapterPreset, RawScoresAndWeightsOfTheSecondWordAreThePublishedOnes) {
  const Trace trace = trace_of("001-dot-product");
  EXPECT_TRUE(is_near(trace.at(Stage::scores, 0).row(1),
                      arma::rowvec{0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865}, four_decimals));
  EXPECT_TRUE(is_near(trace.at(Stage::weights, 0).row(1),
                      arma::rowvec{0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581}, four_decimals));
}

namespace attention = core::attention;
namespace notebooks = core::editing::notebooks;

attention::Model preset(const std::string& name) {
  const auto* found = core::editing::find_preset(name);
  if (!found) throw std::runtime_error(name + ": there is no such preset");
  return found->make();
}

/// Expects inputs equal to the last bit, every stage within its tolerance, and the printed numbers.
void expect_case(const std::string& id, const attention::Model& model) {
  const auto fixture = support::read_fixture(id);
  expect_same_inputs(model, model_of(fixture));
  expect_stages(fixture, model);
  expect_printed(fixture, model);
}

struct Pair {
  const char* preset;
  const char* fixture;
};

TEST(NotebookPreset, EqualsItsFixtureInEveryStage) {
  for (const Pair& pair : {Pair{"000-causal", "s000_causal"},
                           {"001-dot-product", "s001_raw_dot_product"},
                           {"002-full", "s002_qkv"},
                           {"002-as-printed", "s002_printed_stale"},
                           {"003-causal-class", "s003_causal_class"},
                           {"004-self-attention", "s004_self_attention_v2"},
                           {"004-renormalise", "s004_causal_renormalise"},
                           {"004-causal", "s004_causal_neg_inf"},
                           {"004-causal-dropout", "s004_causal_dropout"}}) {
    SCOPED_TRACE(pair.preset);
    expect_case(pair.fixture, preset(pair.preset));
  }
}

TEST(NotebookClasses, EqualTheirFixturesAtTheSmallSize) {
  constexpr notebooks::ClassSize small{16, 4, 2, 123};
  expect_case("s001_attention_small", notebooks::attention_class(small, false));
  expect_case("s001_attention_mask_small", notebooks::attention_class(small, true));
  expect_case("s001_mha_correct_small",
              notebooks::multi_head_class(small, attention::CombineRule::concatenate));
  expect_case("s001_mha_as_written_small",
              notebooks::multi_head_class(small, attention::CombineRule::reshape_without_transpose));
}

/// Appends the numbers of a matrix, row by row.
void append(std::vector<double>& numbers, const arma::mat& m) {
  const arma::mat by_rows = m.t();
  numbers.insert(numbers.end(), by_rows.begin(), by_rows.end());
}

std::map<std::string, std::vector<double>> flattened(const attention::Model& model) {
  std::map<std::string, std::vector<double>> all;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const attention::Trace trace = attention::attend(model, s);
    arma::mat q, k, v;
    for (std::size_t h = 0; h < trace.n_heads(); ++h) {
      q = arma::join_rows(q, *trace.at(Stage::queries, h));
      k = arma::join_rows(k, *trace.at(Stage::keys, h));
      v = arma::join_rows(v, *trace.at(Stage::values, h));
      append(all["weights"], trace.at(Stage::weights, h));
    }
    append(all["Q"], q);
    append(all["K"], k);
    append(all["V"], v);
    append(all["output"], trace.at(Stage::output));
  }
  return all;
}

TEST(NotebookPreset, EqualsTheSamplesOfItsFullSize) {
  for (const Pair& pair : {Pair{"001-attention", "s001_attention_full"},
                           {"001-attention-mask", "s001_attention_mask_full"},
                           {"001-multi-head", "s001_mha_correct_full"},
                           {"001-multi-head-as-written", "s001_mha_as_written_full"}}) {
    SCOPED_TRACE(pair.preset);
    const auto found = flattened(preset(pair.preset));
    const auto samples = support::read_fixture(pair.fixture).samples;
    ASSERT_EQ(samples.size(), found.size());
    for (const auto& [name, sample] : samples) {
      SCOPED_TRACE(name);
      const std::vector<double>& numbers = found.at(name);
      ASSERT_EQ(numbers.size(),
                arma::prod(arma::uvec(std::vector<arma::uword>(sample.shape.begin(), sample.shape.end()))));
      ASSERT_EQ(sample.first.size(), 12u);
      ASSERT_EQ(sample.last.size(), 4u);
      const arma::rowvec row(numbers);
      EXPECT_TRUE(is_near(row.head(12), arma::rowvec(sample.first), sample.tolerance));
      EXPECT_TRUE(is_near(row.tail(4), arma::rowvec(sample.last), sample.tolerance));
      EXPECT_NEAR(arma::sum(row), sample.sum, sample.sum_tolerance);
      EXPECT_NEAR(arma::dot(row, row), sample.sum_of_squares, sample.sum_tolerance);
    }
  }
}

void expect_average(const char* name, const char* id) {
  SCOPED_TRACE(name);
  const auto tensors = support::read_fixture(id).tensors;
  const attention::Model model = preset(name);
  ASSERT_EQ(model.sequences.size(), 4u);
  for (std::size_t s = 0; s < 4; ++s) {
    const attention::Trace trace = attention::attend(model, s);
    EXPECT_TRUE(is_near(trace.at(Stage::embeddings), tensors.at("inputs").matrix({s}), 0));
    EXPECT_TRUE(is_near(trace.at(Stage::mask), tensors.at("mask").matrix(), 0));
    EXPECT_TRUE(
        is_near(trace.at(Stage::weights, 0), tensors.at("weights").matrix(), tensors.at("weights").absolute));
    EXPECT_TRUE(
        is_near(trace.at(Stage::output), tensors.at("output").matrix({s}), tensors.at("output").absolute));
  }
}

TEST(Averaging, ByATriangleDividedByItsRowSumsEqualsVersionOne) {
  expect_average("002-average", "s002_v1_uniform");
  // The notebook sums rows of the mask itself; here the mask multiplies weights of 1/8.
  const auto sums = support::read_fixture("s002_v1_uniform").tensors.at("row_sums").matrix();
  const attention::Trace trace = attention::attend(preset("002-average"));
  EXPECT_TRUE(is_near(arma::sum(*trace.at(Stage::mask), 1), sums, 0));
  EXPECT_TRUE(is_near(*trace.at(Stage::row_sums, 0) * 8, sums, 1e-12));
}

TEST(Averaging, BySoftmaxOfZerosEqualsVersionTwo) {
  expect_average("002-softmax-zeros", "s002_v2_softmax_zeros");
  const auto masked = support::read_fixture("s002_v2_softmax_zeros").tensors.at("masked").matrix();
  EXPECT_TRUE(is_near(attention::attend(preset("002-softmax-zeros")).at(Stage::masked_scores, 0), masked, 0));
}

TEST(MaskedScores, EqualTheDrawnMatrixMaskedAndNormalized) {
  const auto tensors = support::read_fixture("s003_masked_scores_weights").tensors;
  const auto trace = attention::attend(preset("003-masked-scores"));
  EXPECT_TRUE(is_near(trace.at(Stage::scores), tensors.at("scores").matrix(), 0));
  EXPECT_TRUE(
      is_near(trace.at(Stage::masked_scores), tensors.at("masked").matrix(), tensors.at("masked").absolute));
  EXPECT_TRUE(
      is_near(trace.at(Stage::weights), tensors.at("weights").matrix(), tensors.at("weights").absolute));
  EXPECT_TRUE(is_near(arma::sum(*trace.at(Stage::weights), 1).t(), tensors.at("row_sums").matrix(), 1e-12));
  EXPECT_TRUE(is_near(trace.at(Stage::output), trace.at(Stage::weights), 0));  // one-hot values
}

TEST(TenOnes, UnderDropoutAreWhatTheReferenceKept) {
  const auto file = support::read_generator_file("seed123");
  const auto op = std::find_if(file.ops.begin(), file.ops.end(),
                               [](const auto& o) { return o.name == "dropout_p0.5_10"; });
  ASSERT_NE(op, file.ops.end());
  arma::rowvec expected(10);
  for (std::size_t k = 0; k < 10; ++k) expected(k) = op->kept_bits.at(k) == '1' ? op->kept_value : 0;
  const auto trace = attention::attend(preset("003-dropout"));
  EXPECT_TRUE(is_near(trace.at(Stage::embeddings), arma::ones(1, 10), 0));
  EXPECT_TRUE(is_near(trace.at(Stage::output), expected, 0));
}

TEST(Library, GivesEachBookItsRelevance) {
  const auto demo = support::read_text_demo("s002_library");
  const attention::Model model = preset("002-library");
  std::vector<std::string> tokens = demo.keys;
  tokens.push_back(demo.query);
  EXPECT_EQ(model.sequences[0].tokens, tokens);
  std::vector<double> weights = demo.weights;
  weights.push_back(0);  // the question itself
  ASSERT_EQ(weights.size(), 6u);
  EXPECT_TRUE(is_near(attention::attend(model).at(Stage::weights, 0).row(5), arma::rowvec(weights), 1e-15));
}

}  // namespace
}  // namespace golden
