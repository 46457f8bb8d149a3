#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/draw_op.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/visible.hpp"
#include "tests/golden/fixture_model.hpp"
#include "tests/support/matchers.hpp"

namespace golden {
namespace {

namespace attention = core::attention;
namespace notebooks = core::editing::notebooks;
using support::is_near;

attention::Model preset(const std::string& name) {
  const auto* found = core::editing::find_preset(name);
  if (!found) throw std::runtime_error(name + ": there is no such preset");
  return found->make();
}

/// Inputs to the last bit, every stage within its tolerance, and the printed numbers.
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
              notebooks::multi_head_class(small, attention::MergeRule::concatenate));
  expect_case("s001_mha_as_written_small",
              notebooks::multi_head_class(small, attention::MergeRule::reshape_without_transpose));
}

/// Numbers of all sequences and heads, row after row.
void append(std::vector<double>& numbers, const arma::mat& m) {
  const arma::mat by_rows = m.t();
  numbers.insert(numbers.end(), by_rows.begin(), by_rows.end());
}

std::map<std::string, std::vector<double>> flattened(const attention::Model& model) {
  std::map<std::string, std::vector<double>> all;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const attention::Trace trace = attention::attend(model, s);
    arma::mat q, k, v;
    for (const auto& head : trace.heads) {
      q = arma::join_rows(q, *head.queries);
      k = arma::join_rows(k, *head.keys);
      v = arma::join_rows(v, *head.values);
      append(all["weights"], head.weights);
    }
    append(all["Q"], q);
    append(all["K"], k);
    append(all["V"], v);
    append(all["output"], trace.output);
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
    EXPECT_TRUE(is_near(trace.embeddings, tensors.at("inputs").matrix({s}), 0));
    EXPECT_TRUE(is_near(trace.mask, tensors.at("mask").matrix(), 0));
    EXPECT_TRUE(
        is_near(trace.heads[0].weights, tensors.at("weights").matrix(), tensors.at("weights").absolute));
    EXPECT_TRUE(is_near(trace.output, tensors.at("output").matrix({s}), tensors.at("output").absolute));
  }
}

TEST(Averaging, ByATriangleDividedByItsRowSumsEqualsVersionOne) {
  expect_average("002-average", "s002_v1_uniform");
  // The notebook sums rows of the mask itself; here the mask multiplies weights of 1/8, eight times as small.
  const auto sums = support::read_fixture("s002_v1_uniform").tensors.at("row_sums").matrix();
  const attention::Trace trace = attention::attend(preset("002-average"));
  EXPECT_TRUE(is_near(arma::sum(*trace.mask, 1), sums, 0));
  EXPECT_TRUE(is_near(*trace.heads[0].row_sums * 8, sums, 1e-12));
}

TEST(Averaging, BySoftmaxOfZerosEqualsVersionTwo) {
  expect_average("002-softmax-zeros", "s002_v2_softmax_zeros");
  const auto masked = support::read_fixture("s002_v2_softmax_zeros").tensors.at("masked").matrix();
  EXPECT_TRUE(is_near(attention::attend(preset("002-softmax-zeros")).heads[0].masked_scores, masked, 0));
}

TEST(MaskedScores, EqualTheDrawnMatrixMaskedAndNormalised) {
  const auto tensors = support::read_fixture("s003_masked_scores_weights").tensors;
  const auto trace = attention::attend(preset("003-masked-scores"));
  const auto& head = trace.heads.front();
  EXPECT_TRUE(is_near(head.scores, tensors.at("scores").matrix(), 0));
  EXPECT_TRUE(is_near(head.masked_scores, tensors.at("masked").matrix(), tensors.at("masked").absolute));
  EXPECT_TRUE(is_near(head.weights, tensors.at("weights").matrix(), tensors.at("weights").absolute));
  EXPECT_TRUE(is_near(arma::sum(*head.weights, 1).t(), tensors.at("row_sums").matrix(), 1e-12));
  EXPECT_TRUE(is_near(trace.output, head.weights, 0));  // one-hot values
}

TEST(TenOnes, UnderDropoutAreWhatTheReferenceKept) {
  const auto file = support::read_generator_file("seed123");
  const auto op = std::find_if(file.ops.begin(), file.ops.end(),
                               [](const auto& o) { return o.name == "dropout_p0.5_10"; });
  ASSERT_NE(op, file.ops.end());
  arma::rowvec expected(10);
  for (std::size_t k = 0; k < 10; ++k) expected(k) = op->kept_bits.at(k) == '1' ? op->kept_value : 0;
  const auto trace = attention::attend(preset("003-dropout"));
  EXPECT_TRUE(is_near(trace.embeddings, arma::ones(1, 10), 0));
  EXPECT_TRUE(is_near(trace.output, expected, 0));
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
  EXPECT_TRUE(is_near(attention::attend(model).heads[0].weights.row(5), arma::rowvec(weights), 1e-15));
}

TEST(CausalMask, ShowsEachNextTokenPairItsContext) {
  const auto demo = support::read_text_demo("s001_next_token");
  ASSERT_EQ(demo.pairs.size(), 4u);
  attention::Model model;
  model.sequences = {{demo.tokens, arma::mat(demo.tokens.size(), 1, arma::fill::ones)}};
  const arma::mat visible = attention::visible_cells(model, 0);
  for (std::size_t i = 0; i < demo.pairs.size(); ++i) {
    std::vector<std::string> seen;
    for (std::size_t j = 0; j < demo.tokens.size(); ++j)
      if (visible(i, j) == 1) seen.push_back(demo.tokens[j]);
    EXPECT_EQ(seen, demo.pairs[i].context);
    EXPECT_EQ(demo.tokens[i + 1], demo.pairs[i].target);
  }
}

}  // namespace
}  // namespace golden
