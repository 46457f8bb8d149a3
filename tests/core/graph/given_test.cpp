#include "core/graph/given.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/graph/attend.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "tests/golden/fixture_model.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

using enum Stage;
using support::is_near;
using testing::ElementsAre;

std::vector<Stage> stages_of(const Model& model) {
  std::vector<Stage> found;
  for (const StageInfo& stage : stages())
    if (stage.present(model)) found.push_back(stage.stage);
  return found;
}

/// Two sequences, two heads, causal, computed by PyTorch.
struct GivenStages : testing::Test {
  support::Fixture fixture = support::read_fixture("v12_batch_mha");
  Model model = golden::model_of(fixture);

  /// Returns a fixture tensor as a given stage, one matrix per sequence and head.
  GivenStage given(Stage stage, const std::string& name) const {
    GivenStage all{stage, {}};
    for (std::size_t s = 0; s < model.sequences.size(); ++s)
      for (std::size_t h = 0; h < model.n_heads; ++h) all.matrices.emplace_back(reference(name, s, h));
    return all;
  }
  arma::mat reference(const std::string& name, std::size_t s, std::size_t h) const {
    const support::Tensor& tensor = fixture.tensors.at(name);
    if (tensor.shape.size() == 4) return tensor.matrix({s, h});
    const arma::mat all = tensor.matrix({s});  // the heads concatenated
    const std::size_t d = all.n_cols / model.n_heads;
    return all.cols(h * d, (h + 1) * d - 1);
  }
};

TEST_F(GivenStages, OfPyTorchGiveWhatPyTorchMakesOfThem) {
  Model other = model;  // with projections that would give something else
  for (Linear* l : {&other.projections->query, &other.projections->key, &other.projections->value})
    l->weight = arma::mat(arma::size(*l->weight), arma::fill::ones);
  set_given_stage(other, given(queries, "Q"));
  set_given_stage(other, given(keys, "K"));
  set_given_stage(other, given(values, "V"));
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const Trace trace = attend(other, s);
    for (std::size_t h = 0; h < model.n_heads; ++h) {
      EXPECT_TRUE(is_near(trace.at(Stage::weights, h), reference("weights", s, h), 1e-12));
      EXPECT_TRUE(is_near(trace.at(Stage::contexts, h), reference("context_heads", s, h), 1e-12));
    }
    EXPECT_TRUE(is_near(trace.at(Stage::output), fixture.tensors.at("output").matrix({s}), 1e-12));
  }
}

TEST_F(GivenStages, ReplaceWhatIsComputedAndLeadOn) {
  for (const auto& [stage, name] :
       {std::pair(scores, "scores"), std::pair(scaled_scores, "scaled"), std::pair(weights, "weights")}) {
    Model other = model;
    other.projections->query.weight =
        arma::mat(arma::size(*model.projections->query.weight));  // has no effect
    set_given_stage(other, given(stage, name));
    const Trace trace = attend(other, 1);
    EXPECT_TRUE(is_near(trace.at(Stage::weights, 1), reference("weights", 1, 1), 1e-12)) << name;
    EXPECT_TRUE(is_near(trace.at(Stage::output), fixture.tensors.at("output").matrix({1}), 1e-12)) << name;
  }
}

TEST_F(GivenStages, HideWhatLiesBeforeThem) {
  set_given_stage(model, given(weights, "weights"));
  EXPECT_THAT(stages_of(model), ElementsAre(embeddings, values, weights, dropout_mask, dropped_weights,
                                            contexts, concatenated, output));
  clear_given_stage(model, weights);
  set_given_stage(model, given(scores, "scores"));
  EXPECT_THAT(stages_of(model),
              ElementsAre(embeddings, values, scores, scaled_scores, mask, masked_scores, weights,
                          dropout_mask, dropped_weights, contexts, concatenated, output));
  clear_given_stage(model, scores);
  set_given_stage(model, given(values, "V"));
  EXPECT_EQ(stages_of(model), stages_of(golden::model_of(fixture)));
}

TEST_F(GivenStages, TakenBackAreComputedAgain) {
  Model other = model;
  set_given_stage(other, given(weights, "weights"));
  EXPECT_NE(other, model);
  clear_given_stage(other, weights);
  EXPECT_EQ(other, model);
}

TEST_F(GivenStages, ShareTheirNumbersWithTheModel) {
  const GivenStage stage = given(weights, "weights");
  set_given_stage(model, stage);
  const Trace trace = attend(model, 1);
  EXPECT_EQ(&*trace.at(Stage::weights, 1), &*stage.matrices[model.n_heads + 1]);
  EXPECT_EQ(&*Trace(trace).at(Stage::weights, 1), &*stage.matrices[model.n_heads + 1]);
}

TEST(GivenAlone, WeightsShowNothingThatWouldLeadToThem) {
  const Model model = model_of({{weights, {arma::mat{{1, 0}, {0.25, 0.75}}, arma::mat{{0.5, 0.5}, {0, 1}}}}});
  EXPECT_THAT(stages_of(model), ElementsAre(weights, dropout_mask, dropped_weights));
  EXPECT_EQ(model.n_heads, 2u);
  const Trace trace = attend(model);
  EXPECT_EQ(trace.at(Stage::weights, 0)(1, 1), 0.75);
  EXPECT_TRUE(arma::approx_equal(*trace.at(Stage::mask), arma::ones(2, 2), "absdiff", 0));
}

TEST(GivenAlone, WeightsAndValuesGiveContexts) {
  const arma::mat w{{1, 0, 0}, {0.5, 0.5, 0}, {0.25, 0.25, 0.5}}, v{{4, 0}, {0, 8}, {2, 2}};
  const Trace trace = attend(model_of({{weights, {w}}, {values, {v}}}));
  EXPECT_TRUE(is_near(trace.at(Stage::output), arma::mat{{4, 0}, {2, 4}, {2, 3}}, 1e-15));
}

TEST(GivenAlone, ScoresAreNotScaledByAWidthThatNobodyKnows) {
  Model model = model_of({{scores, {arma::mat{{0, std::log(3.0)}}}}});
  EXPECT_TRUE(is_near(attend(model).at(Stage::weights, 0), arma::mat{{0.25, 0.75}}, 1e-15));
  model.scale.rule = ScaleRule::inverse_sqrt_d_head;
  EXPECT_EQ(check(model)->path + ": " + check(model)->message,
            "scale: expected \"none\" or a number, as what is given does not tell d_head");
}

TEST(GivenAlone, ValuesOrQueriesDoNotSuffice) {
  EXPECT_EQ(support::error_of([] {
              model_of({{values, {arma::mat(2, 2)}}});
            }),
            "given: expected weights, scores, or queries and keys: what is given does not lead to weights");
  EXPECT_EQ(support::error_of([] { model_of({}); }),
            "given: expected at least one stage of at least one matrix");
}

/// The last four of six tokens as queries over all six keys, as with a KV cache.
struct FewerQueries : testing::Test {
  support::Random random{21};
  Model full = support::model(random, 6, 3, 4, 2);
  Trace all = attend(full);

  Model last_four(bool causal) const {
    GivenStage q{queries, {}}, k{keys, {}}, v{values, {}};
    for (std::size_t h = 0; h < all.n_heads(); ++h) {
      q.matrices.emplace_back(arma::mat(all.at(queries, h)->tail_rows(4)));
      k.matrices.emplace_back(*all.at(keys, h));
      v.matrices.emplace_back(*all.at(values, h));
    }
    Model model = model_of({q, k, v});
    model.mask.causal = causal;
    model.scale = full.scale;
    return model;
  }
};

TEST_F(FewerQueries, SeeWhatTheLastRowsOfAllTokensSee) {
  const Trace trace = attend(last_four(true));
  for (std::size_t h = 0; h < 2; ++h) {
    EXPECT_TRUE(is_near(trace.at(Stage::weights, h), all.at(Stage::weights, h)->tail_rows(4), 1e-15));
    EXPECT_TRUE(is_near(trace.at(Stage::contexts, h), all.at(Stage::contexts, h)->tail_rows(4), 1e-15));
  }
}

TEST_F(FewerQueries, HaveShapesOfTheirOwn) {
  const Model model = last_four(false);
  EXPECT_EQ(model.n_tokens(), 4u);
  EXPECT_EQ(model.n_keys(), 6u);
  EXPECT_EQ(model.sequences[0].keys().size(), 6u);
  const Trace trace = attend(model);
  for (const StageInfo& stage : stages()) {
    if (!stage.present(model)) continue;
    const arma::mat& m = trace.at(stage.stage, 0);
    EXPECT_EQ((StageShape{m.n_rows, m.n_cols}), shape_of(model, stage.stage)) << stage.name;
    EXPECT_EQ(row_tokens(stage, model.sequences[0]).size(), m.n_rows) << stage.name;
  }
}

TEST(MoreQueriesThanKeys, AreTheLastKeysOrTheFirst) {
  Model model = model_of({{scores, {arma::mat(3, 2, arma::fill::zeros)}}});
  EXPECT_TRUE(is_near(attend(model).at(Stage::weights, 0), arma::mat(3, 2).fill(0.5), 0));
  model.mask.causal = true;
  const arma::mat last = attend(model).at(Stage::weights, 0);
  EXPECT_TRUE(last.row(0).has_nan()) << "it stands before the first key";
  EXPECT_TRUE(is_near(last.rows(1, 2), arma::mat("1 0; 0.5 0.5"), 0));
  model.mask.align = MaskAlignment::first;
  EXPECT_TRUE(is_near(attend(model).at(Stage::weights, 0), arma::mat("1 0; 0.5 0.5; 0.5 0.5"), 0));
}

TEST(ShapesOfStages, AreThoseOfTheTrace) {
  support::Random random(22);
  const Model model = support::model(random, 5, 3, 4, 2);
  const Trace trace = attend(model);
  for (const StageInfo& stage : stages()) {
    if (!stage.present(model)) continue;
    const arma::mat& m = trace.at(stage.stage, 1);
    EXPECT_EQ((StageShape{m.n_rows, m.n_cols}), shape_of(model, stage.stage)) << stage.name;
  }
}

TEST(TypedCell, CountsForAllThatFollows) {
  support::Random random(23);
  Model model = support::model(random, 3, 3, 4, 2);
  const Trace before = attend(model);
  model.given.cells = {{{scores, 0, 1, 2, 0}, 7.5}};
  const Trace after = attend(model);
  EXPECT_EQ(after.at(Stage::scores, 1)(2, 0), 7.5);
  EXPECT_EQ(after.at(Stage::scores, 1)(2, 1), before.at(Stage::scores, 1)(2, 1));
  EXPECT_NEAR(after.at(Stage::scaled_scores, 1)(2, 0), 7.5 / std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(arma::accu(after.at(Stage::weights, 1).row(2)), 1, 1e-15);
  EXPECT_TRUE(is_near(after.at(Stage::weights, 0), before.at(Stage::weights, 0), 0));
  EXPECT_TRUE(is_near(after.at(Stage::weights, 1).row(1), before.at(Stage::weights, 1).row(1), 0));
}

TEST(TypedCell, CanStandInAnyStageButTheModelsOwnNumbers) {
  support::Random random(24);
  Model model = support::model(random, 3, 3, 4, 2);
  model.mask.method = MaskMethod::renormalize;
  const SharedMatrix ones = arma::mat(1, 2, arma::fill::ones);
  model.additions.normalize = QueryKeyNorm{NormRule::rms, ones, ones};
  model.additions.positions.rotary.emplace();
  model.additions.positions.alibi.emplace();
  model.additions.softcap = 3;
  for (const StageInfo& stage : stages()) {
    const std::size_t head = stage.per_head ? 1 : 0;
    model.given.cells = {{{stage.stage, 0, head, 1, 0}, 0.125}};
    if (stage.stage == embeddings || stage.stage == key_embeddings || stage.stage == mask) {
      EXPECT_TRUE(check(model).has_value()) << stage.name;
      continue;
    }
    EXPECT_EQ(attend(model).at(stage.stage, head)(1, 0), 0.125) << stage.name;
  }
}

TEST(TypedCell, BelongsToOneSequence) {
  support::Random random(25);
  Model model = support::model(random, 3, 3, 4, 2, 2);
  model.given.cells = {{{weights, 1, 0, 0, 0}, 0.5}};
  EXPECT_EQ(attend(model, 0).at(Stage::weights, 0)(0, 0), 1);
  EXPECT_EQ(attend(model, 1).at(Stage::weights, 0)(0, 0), 0.5);
}

TEST(HeadSwitchedOff, CountsAsZeroWhenHeadsAreMerged) {
  support::Random random(26);
  Model model = support::model(random, 3, 3, 4, 2);
  const Trace before = attend(model);
  model.heads_off = {0};
  const Trace after = attend(model);
  EXPECT_TRUE(is_near(after.at(Stage::contexts, 0), before.at(Stage::contexts, 0), 0));
  EXPECT_TRUE(is_near((*after.at(Stage::concatenated)).head_cols(2), arma::zeros(3, 2), 0));
  EXPECT_TRUE(is_near((*after.at(Stage::concatenated)).tail_cols(2),
                      (*before.at(Stage::concatenated)).tail_cols(2), 0));
  const arma::mat rest =
      (*before.at(Stage::concatenated)).tail_cols(2) * model.projections->output->weight->tail_rows(2);
  EXPECT_TRUE(
      is_near(after.at(Stage::output), rest + arma::repmat(**model.projections->output->bias, 3, 1), 1e-14));
  EXPECT_EQ(graph::formula(graph::attention(model), model, Stage::concatenated, false), "1 head on");
}

/// Returns check()'s "path: message" after a change to a model of three tokens, two heads, d_head = 2.
template <class Change>
std::string problem_of_given(Change change) {
  support::Random random(27);
  Model model = support::model(random, 3, 3, 4, 2);
  change(model);
  const auto found = check(model);
  return found ? found->path + ": " + found->message : "";
}

GivenStage zeros(Stage stage, std::size_t count, std::size_t rows, std::size_t columns) {
  return {stage, std::vector<SharedMatrix>(count, arma::mat(rows, columns, arma::fill::zeros))};
}

TEST(CheckGiven, NamesAStageThatDoesNotFit) {
  const auto given = [](GivenStage stage) {
    return problem_of_given([&](Model& m) { m.given.stages = {stage}; });
  };
  EXPECT_EQ(given(zeros(weights, 2, 3, 3)), "");
  EXPECT_EQ(given(zeros(weights, 3, 3, 3)), "given.weights: expected 2 matrices, one for each head, got 3");
  EXPECT_EQ(given(zeros(weights, 2, 4, 3)), "given.weights[0]: expected 3×3 (n_tokens × n_keys), got 4×3");
  EXPECT_EQ(given(zeros(queries, 2, 3, 3)), "given.queries: expected 2 columns, as the keys have, got 3");
  EXPECT_EQ(given(zeros(values, 2, 3, 5)),
            "given.values: expected 2 columns, as the heads' rows of the output projection have, got 5");
  EXPECT_EQ(
      given(zeros(contexts, 2, 3, 2)),
      "given.contexts: expected one of queries, keys, values, scores, scaled_scores, masked_scores, weights, dropout_mask");
  GivenStage uneven = zeros(scores, 2, 3, 3);
  uneven.matrices[1] = arma::mat(3, 2);
  EXPECT_EQ(given(uneven), "given.scores[1]: expected 3×3 (n_tokens × n_keys), got 3×2");
}

TEST(CheckGiven, NamesKeysWithoutNames) {
  const auto cross = [](Model& m) { m.given.stages = {zeros(weights, 2, 3, 5)}; };
  EXPECT_EQ(problem_of_given(cross), "key_tokens: expected 5 tokens, one for each key, got 0");
  EXPECT_EQ(problem_of_given([&](Model& m) { set_given_stage(m, zeros(weights, 2, 3, 5)); }), "");
}

TEST(CheckGiven, NamesACellThatDoesNotFit) {
  const auto typed = [](GivenCellAddress place) {
    return problem_of_given([&](Model& m) { m.given.cells = {{place, 1}}; });
  };
  EXPECT_EQ(typed({weights, 0, 1, 2, 2}), "");
  EXPECT_EQ(
      typed({weights, 0, 2, 0, 0}),
      "given.cells[0]: expected a cell of 1 sequences, 2 heads, 3×3 weights, got sequence 0, head 2, row 0, column 0");
  EXPECT_EQ(typed({row_sums, 0, 0, 0, 0}),
            "given.cells[0]: expected a stage that the model has, got row_sums");
  EXPECT_EQ(problem_of_given([](Model& m) {
              m.given.cells = {{{scores, 0, 0, 1, 0}, 1}, {{scores, 0, 0, 0, 0}, 1}};
            }),
            "given.cells[1]: expected each cell once, sorted by stage, sequence, head, row and column");
}

TEST(CheckGiven, NamesHeadsThatCannotBeSwitched) {
  EXPECT_EQ(problem_of_given([](Model& m) { m.heads_off = {2}; }),
            "heads_off[0]: expected a head below 2, got 2");
  EXPECT_EQ(problem_of_given([](Model& m) {
              m.heads_off = {1, 0};
            }),
            "heads_off[1]: expected each head once, sorted");
}

}  // namespace
}  // namespace core::attention
