#include "core/graph/injected_bugs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/compare.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/first_difference.hpp"
#include "tests/support/random_model.hpp"

namespace core::bugs {
namespace {

/// Returns a model with square weights, biases, two heads and dropout, where most mistakes can be made.
Model model() {
  support::Random random(31);
  Model m = support::model(random, 5, 4, 4, 2);
  for (attention::Linear* l : {&m.projections->query, &m.projections->key, &m.projections->value})
    l->bias = support::matrix(random, 1, 4);
  m.dropout.rate = 0.5;
  return m;
}

/// Returns a model with GQA, RoPE, QK norm, softcap, biases and sinks.
Model modern_model() {
  support::Random random(33);
  Model m = support::model(random, 5, 4, 16, 4);
  m.n_kv_heads = 2;
  for (attention::Linear* l : {&m.projections->key, &m.projections->value})
    l->weight = support::matrix(random, 4, 8), l->bias = support::matrix(random, 1, 8);
  attention::Additions& a = m.additions;
  a.normalize = {attention::NormRule::rms, support::matrix(random, 1, 4), support::matrix(random, 1, 4)};
  a.positions.rotary.emplace().base = 500;
  a.positions.rotary->scaling = {positions::ScalingRule::linear, 4};
  a.positions.alibi.emplace();
  a.score_bias = {support::matrix(random, 5, 5)};
  a.softcap = 1;
  a.sink = support::matrix(random, 1, 4);
  return m;
}

/// Returns the first of some models to which the bug applies; most apply to the first.
Model right_for(const Bug& bug) {
  std::vector<Model> models(8, model());
  models[1].mask.causal = false;
  for (std::size_t i = 0; i < 5; ++i) models[2].mask.cells.push_back({i, 1, false});
  support::Random random(32);
  const auto given = [&](Stage stage, std::size_t n) {
    return attention::GivenStage{stage, {support::matrix(random, n, 3), support::matrix(random, n, 3)}};
  };
  models[3] = attention::model_of({given(Stage::queries, 4), given(Stage::keys, 7), given(Stage::values, 7)});
  models[3].mask.causal = true;
  models[3].n_heads = 2;
  models[4] = models[3];
  models[4].mask.align = attention::MaskAlignment::first;
  models[5].mask.window.left = 2;
  models[6].mask.documents = {0, 0, 1, 1, 1};
  models[7] = modern_model();
  const auto found = std::ranges::find_if(models, [&](const Model& m) { return has_effect(bug, m); });
  return found == models.end() ? Model() : *found;
}

TEST(InjectedBugs, AreFoundByNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Bug* bug : offered_bugs()) {
    EXPECT_TRUE(names.insert(bug->name).second) << bug->name;
    EXPECT_EQ(find_offered_bug(bug->name), bug);
  }
  EXPECT_EQ(find_offered_bug("nonsense"), nullptr);
  EXPECT_EQ(find_offered_bug("blocks_not_rescaled:sum"), nullptr);
  EXPECT_EQ(cause_of(*find_bug("blocks_not_rescaled:sum")), "blocks_not_rescaled");
}

TEST(InjectedBugs, ChangeNoStageBeforeTheFirstThatTheyName) {
  for (const Bug* bug : offered_bugs()) {
    const Model right = right_for(*bug);
    ASSERT_FALSE(right.sequences.empty()) << bug->name;
    const auto trace = attention::attend(right);
    const Model wrong = injected(*bug, right);
    ASSERT_FALSE(attention::check(wrong)) << bug->name;
    if (wrong.n_heads != right.n_heads) continue;  // other shapes cannot be compared
    const auto stages = compare::compare(right, trace, wrong, attention::attend(wrong));
    const auto* first = support::first_difference(stages);
    ASSERT_NE(first, nullptr) << bug->name;
    EXPECT_GE(first->stage, bug->texts.first) << bug->name;
  }
}

TEST(InjectedBugs, AreSeenAndMendedToTheLastBit) {
  const std::set<std::string> as_good{"n_heads_other", "causal_unwanted", "mask_aligned_last"};
  for (const Bug* bug : offered_bugs()) {
    const Model right = right_for(*bug), wrong = injected(*bug, right);
    EXPECT_TRUE(has_effect(*bug, right)) << bug->name;
    EXPECT_FALSE(is_injected(*bug, right)) << bug->name;
    // These mistakes turn one valid model into another.
    EXPECT_NE(is_injected(*bug, wrong), as_good.contains(bug->name)) << bug->name;
    EXPECT_EQ(is_fixable(*bug), std::string_view(bug->name) != "n_heads_other");
    if (is_fixable(*bug)) {
      EXPECT_EQ(without_bug(*bug, wrong), right) << bug->name;
    }
  }
}

TEST(InjectedBugs, InTheCodeLeaveAllElseOfTheModelAsItIs) {
  for (const Bug* bug : offered_bugs()) {
    if (bug->is_option()) continue;
    Model wrong = injected(*bug, right_for(*bug));
    ASSERT_EQ(wrong.bugs.size(), 1u) << bug->name;
    EXPECT_TRUE(wrong.has_bug(bug->name));
    wrong.bugs.clear();
    EXPECT_EQ(wrong, right_for(*bug)) << bug->name;
  }
}

TEST(InjectedBugs, StandInTheOrderOfTheTableHoweverTheyWereMade) {
  const auto both = [](const char* first, const char* second) {
    return injected(*find_offered_bug(second), injected(*find_offered_bug(first), model()));
  };
  EXPECT_EQ(both("scale_twice", "heads_interleaved"), both("heads_interleaved", "scale_twice"));
  const Model all = injected(*find_offered_bug("bias_missing"), model());
  EXPECT_EQ(both("bias_missing:key", "bias_missing"), all) << "what no longer does anything is left out";
  EXPECT_EQ(both("bias_missing", "bias_missing:key"), all);
  EXPECT_EQ(both("softmax_over_queries", "last_block_dropped"),
            injected(*find_offered_bug("softmax_over_queries"), model()));
}

TEST(InjectedBugs, OfOffsetsAddUp) {
  const Model late = with_query_offset(modern_model(), 3);
  EXPECT_EQ(query_offset(late), 3);
  EXPECT_EQ(with_query_offset(late, 0), modern_model());
  EXPECT_EQ(query_offset(injected(*find_offered_bug("rotary_off_by_one:earlier"), late)), 2);
}

TEST(InjectedBugs, ApplyOnlyWhereSomethingCanGoWrong) {
  Model m;
  m.sequences = {{attention::numbered_tokens(3), arma::mat("1 2 3; 4 5 6; 7 8 0")}};
  m.mask.causal = false;
  for (const char* name : {"no_mask",
                           "mask_transposed",
                           "mask_hides_diagonal",
                           "mask_finite",
                           "dropout_off",
                           "dropout_unscaled",
                           "dropout_before_softmax",
                           "weight_untransposed:query",
                           "bias_missing",
                           "heads_interleaved",
                           "merge_without_transpose",
                           "output_projection_missing",
                           "scale_sqrt_d_model",
                           "window_missing",
                           "window_off_by_one",
                           "documents_missing",
                           "padding_missing",
                           "mask_aligned_first",
                           "groups_tiled",
                           "rotary_missing",
                           "rotary_other_pairs",
                           "rotary_queries_only",
                           "rotary_on_values",
                           "rotary_off_by_one",
                           "rotary_base",
                           "rotary_scaling_missing",
                           "rotary_backwards",
                           "norm_missing",
                           "norm_after_rotation",
                           "cap_missing",
                           "cap_before_scale",
                           "bias_missing:positions",
                           "bias_missing:scores",
                           "bias_before_scale",
                           "alibi_slopes_reversed",
                           "sink_missing"})
    EXPECT_FALSE(has_effect(*find_offered_bug(name), m)) << name;
  EXPECT_TRUE(has_effect(*find_offered_bug("no_scale"), m));
  EXPECT_TRUE(has_effect(*find_offered_bug("softmax_over_queries"), m));
}

TEST(InjectedBugs, OfTodaysModelsApplyWhereTheyMakeADifference) {
  const auto can = [](const char* name, auto change) {
    Model m = modern_model();
    change(m);
    return has_effect(*find_offered_bug(name), m);
  };
  const auto nothing = [](Model&) {};
  EXPECT_TRUE(can("groups_tiled", nothing));
  EXPECT_FALSE(can("groups_tiled", [](Model& m) { m.n_kv_heads = 1; })) << "all heads ask the one group";
  EXPECT_FALSE(can("groups_tiled", [](Model& m) { m.n_kv_heads = 4; })) << "each head asks its own";
  EXPECT_FALSE(can("rotary_other_pairs", [](Model& m) { m.additions.positions.rotary->dimensions = 2; }))
      << "there is but one pair";
  EXPECT_FALSE(can("rotary_base", [](Model& m) { m.additions.positions.rotary->base = 10000; }));
  EXPECT_FALSE(can("rotary_base", [](Model& m) {
    m.additions.positions.rotary->inverse_frequencies = arma::mat(1, 2, arma::fill::ones);
  }));
  EXPECT_FALSE(can("norm_after_rotation", [](Model& m) { m.additions.positions.rotary.reset(); }));
  EXPECT_FALSE(can("cap_before_scale", [](Model& m) { m.scale.rule = attention::ScaleRule::none; }));
  EXPECT_FALSE(can("alibi_slopes_reversed", [](Model& m) {
    m.additions.positions.alibi->slopes = arma::mat(1, 4, arma::fill::ones);
  }));
}

TEST(InjectedBugs, AdviseByTheDiagonalsOfTheShapeAtHand) {
  const Model cross = right_for(*find_offered_bug("mask_aligned_first"));
  EXPECT_EQ(fix_in(*find_offered_bug("mask_shows_next"), cross),
            "Keep tril(diagonal=3) of queries × keys, not tril(diagonal=4).");
  EXPECT_EQ(fix_in(*find_offered_bug("mask_hides_diagonal"), cross),
            "Keep tril(diagonal=3) of queries × keys, not tril(diagonal=2).");
  EXPECT_EQ(fix_in(*find_offered_bug("mask_aligned_first"), cross),
            "Shift the diagonal by n_keys − n_queries: keep tril(diagonal=3).");
  for (const Bug* bug : offered_bugs())
    EXPECT_EQ(fix_in(*bug, cross).find("triu"), std::string::npos) << bug->name;
  EXPECT_EQ(fix_in(*find_offered_bug("mask_shows_next"), model()),
            find_offered_bug("mask_shows_next")->texts.fix);
}

TEST(SwitchMistake, IsAnEditThatCanBeTakenBack) {
  const Model right = model();
  const Model wrong = editing::apply(right, editing::SwitchMistake{"mask_shows_next"});
  EXPECT_EQ(wrong.mask.edge.diagonal, 1);
  EXPECT_EQ(editing::apply(wrong, editing::SwitchMistake{"mask_shows_next", false}), right);
  EXPECT_EQ(editing::describe(editing::SwitchMistake{"no_scale"}), "bug: no scale");
  EXPECT_EQ(support::error_of([&] { editing::apply(right, editing::SwitchMistake{"nonsense"}); }),
            "mistake nonsense: there is no such mistake");
  EXPECT_EQ(support::error_of([&] {
              editing::apply(right, editing::SwitchMistake{"n_heads_other", false});
            }),
            "mistake n_heads_other: it can only be undone");
}

}  // namespace
}  // namespace core::bugs

namespace core::attention {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Three tokens, two heads, d_head = 2.
struct MistakenModel : testing::Test {
  support::Random random{21};
  Model model = support::model(random, 3, 3, 4, 2);

  void make(const char* name) { model = injected(*bugs::find_bug(name), model); }

  /// Sets the dropout rate to 0.5 with this mask in head 0; head 1 drops nothing.
  void drop_by(const arma::mat& mask) {
    model.dropout.rate = 0.5;
    model.dropout.given = {mask, arma::mat(3, 3, arma::fill::ones)};
  }
};

TEST_F(MistakenModel, SoftmaxOverQueriesMakesColumnsSumToOne) {
  model.mask.causal = false;
  make("softmax_over_queries");
  const Trace trace = attend(model);
  const arma::mat e = arma::exp(arma::mat(trace.at(Stage::scaled_scores, 1)));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(trace.at(Stage::weights, 1)(i, j), e(i, j) / (e(0, j) + e(1, j) + e(2, j)), 1e-15);
}

TEST_F(MistakenModel, SwappedScoresAreTheTransposedOnes) {
  const arma::mat before = attend(model).at(Stage::scores, 0);
  make("query_key_swapped");
  EXPECT_TRUE(
      arma::approx_equal(arma::mat(attend(model).at(Stage::scores, 0)), before.t(), "absdiff", 1e-15));
}

TEST_F(MistakenModel, SwappedProjectionsReadEachOthersWeights) {
  const Trace before = attend(model);
  make("query_key_swapped:projections");
  const Trace after = attend(model);
  EXPECT_TRUE(arma::approx_equal(*after.at(Stage::queries, 1), *before.at(Stage::keys, 1), "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(*after.at(Stage::keys, 1), *before.at(Stage::queries, 1), "absdiff", 0));
  const graph::Graph graph = graph::attention(model);
  EXPECT_NE(graph::formula(graph, model, graph::all_queries, true).find("W_k"), std::string::npos)
      << graph::formula(graph, model, graph::all_queries, true);
}

TEST(CausalMask, ShowsEachQueryItselfAndEarlierKeys) {
  support::Random random{23};
  const Model model = support::model(random, 3, 3, 4, 2);
  EXPECT_TRUE(arma::approx_equal(visibility_matrix(model, 0), arma::mat{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}},
                                 "absdiff", 0));
}

TEST_F(MistakenModel, DiagonalMovesTheEdgeOfTheCausalMask) {
  model.mask.edge.diagonal = 1;
  EXPECT_TRUE(
      arma::approx_equal(visibility_matrix(model, 0), arma::mat("1 1 0; 1 1 1; 1 1 1"), "absdiff", 0));
  model.mask.edge.diagonal = -1;
  EXPECT_TRUE(
      arma::approx_equal(visibility_matrix(model, 0), arma::mat("0 0 0; 1 0 0; 1 1 0"), "absdiff", 0));
}

TEST_F(MistakenModel, TransposedMaskShowsWhatComesAfter) {
  model.mask.edge.transposed = true;
  model.mask.edge.diagonal = 1;
  EXPECT_TRUE(
      arma::approx_equal(visibility_matrix(model, 0), arma::mat("1 1 1; 1 1 1; 0 1 1"), "absdiff", 0));
  model.mask.cells = {{0, 0, false}};
  EXPECT_EQ(visibility_matrix(model, 0)(0, 0), 0);
}

TEST_F(MistakenModel, LargeNegativeIsWhatHiddenCellsHold) {
  model.mask.method = MaskMethod::large_negative;
  model.mask.large_negative = -1e4;
  EXPECT_EQ(attend(model).at(Stage::masked_scores, 0)(0, 2), -1e4);
}

TEST_F(MistakenModel, DroppedScoreBeforeTheMaskIsZeroAndNotHidden) {
  drop_by(arma::mat("0 1 1; 1 0 1; 1 1 1"));
  model.dropout.place = DropoutPlace::scaled_scores;
  const Trace trace = attend(model);
  const arma::mat s = trace.at(Stage::scaled_scores, 0), m = trace.at(Stage::masked_scores, 0),
                  w = trace.at(Stage::weights, 0);
  EXPECT_EQ(m(1, 0), 2 * s(1, 0));
  EXPECT_EQ(m(1, 1), 0);
  EXPECT_EQ(m(1, 2), -infinity);
  EXPECT_NEAR(w(1, 0), std::exp(2 * s(1, 0)) / (std::exp(2 * s(1, 0)) + 1), 1e-15);
  EXPECT_TRUE(arma::approx_equal(arma::mat(trace.at(Stage::dropped_weights, 0)), w, "absdiff", 0));
}

TEST_F(MistakenModel, DroppedMinusInfinityIsNaN) {
  drop_by(arma::mat("1 1 0; 1 1 1; 1 1 1"));
  model.dropout.place = DropoutPlace::masked_scores;
  const Trace trace = attend(model);
  EXPECT_TRUE(std::isnan(trace.at(Stage::weights, 0)(0, 0)));
  const arma::mat s = trace.at(Stage::scaled_scores, 0);
  EXPECT_NEAR(trace.at(Stage::weights, 0)(1, 0), 1 / (1 + std::exp(2 * (s(1, 1) - s(1, 0)))), 1e-15);
}

TEST_F(MistakenModel, DropoutThatDoesNotRescaleKeepsWeights) {
  drop_by(arma::mat("1 1 1; 0 1 1; 1 1 1"));
  model.dropout.rescale = false;
  const Trace trace = attend(model);
  EXPECT_EQ(trace.at(Stage::dropped_weights, 0)(1, 0), 0);
  EXPECT_EQ(trace.at(Stage::dropped_weights, 0)(2, 1), trace.at(Stage::weights, 0)(2, 1));
}

TEST_F(MistakenModel, InterleavedHeadOwnsEveryNthColumn) {
  make("heads_interleaved");
  const arma::mat q = *model.sequences[0].embeddings * *model.projections->query.weight;
  const arma::mat queries = attend(model).at(Stage::queries, 1);
  EXPECT_TRUE(arma::approx_equal(queries, arma::mat(arma::join_rows(q.col(1), q.col(3))), "absdiff", 0));
}

TEST_F(MistakenModel, InterleavedMergeTakesAColumnOfEachHeadInTurn) {
  make("heads_interleaved:combined");
  const Trace trace = attend(model);
  const arma::mat all = trace.at(Stage::concatenated);
  for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(all(2, c), trace.at(Stage::contexts, c % 2)(2, c / 2)) << c;
}

TEST_F(MistakenModel, EveryComputedStageOfAPrecisionIsOnItsGrid) {
  for (const Precision precision : {Precision::float32, Precision::float16, Precision::bfloat16}) {
    model.arithmetic.precision = precision;
    const Trace trace = attend(model);
    const auto on_grid = [&](const arma::mat& m) {
      return arma::all(arma::vectorise(m == rounded(precision, m)));
    };
    for (std::size_t h = 0; h < trace.n_heads(); ++h)
      for (const Stage stage :
           {Stage::queries, Stage::scores, Stage::scaled_scores, Stage::weights, Stage::contexts})
        EXPECT_TRUE(on_grid(trace.at(stage, h))) << info(stage).name;
    EXPECT_TRUE(on_grid(trace.at(Stage::output)));
  }
}

TEST(Rounding, GivesTheNumbersThatIeeeNames) {
  EXPECT_EQ(rounded(Precision::float16, 0.1), 0x1.998p-4);
  EXPECT_EQ(rounded(Precision::float16, 65519.9), 65504);
  EXPECT_EQ(rounded(Precision::float16, 65520), infinity);
  EXPECT_EQ(rounded(Precision::float16, -1e9), -infinity);
  EXPECT_EQ(rounded(Precision::float16, 0x1p-24), 0x1p-24);  // the smallest subnormal
  EXPECT_EQ(rounded(Precision::float16, 0x1p-25), 0);        // a tie, to even
  EXPECT_EQ(rounded(Precision::float16, 2049), 2048);        // a tie, to even
  EXPECT_EQ(rounded(Precision::float16, 2051), 2052);
  EXPECT_EQ(rounded(Precision::bfloat16, 1e9), 998244352);
  EXPECT_EQ(rounded(Precision::bfloat16, 3.14159265), 3.140625);
  EXPECT_EQ(rounded(Precision::float64, 0.1), 0.1);
}

TEST(Rounding, ToFloat32IsWhatTheProcessorDoes) {
  support::Random random(22);
  for (int k = 0; k < 1000; ++k) {
    const double x = std::ldexp(support::number(random), static_cast<int>(support::below(random, 320)) - 160);
    EXPECT_EQ(rounded(Precision::float32, x), static_cast<double>(static_cast<float>(x))) << x;
  }
}

}  // namespace
}  // namespace core::attention
