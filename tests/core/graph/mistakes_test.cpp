#include "core/graph/mistakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/compare.hpp"
#include "core/graph/given_model.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/first_difference.hpp"
#include "tests/support/random_model.hpp"

namespace core::mistakes {
namespace {

/// Square weights, biases, two heads and dropout: everything can go wrong here.
Model model() {
  support::Random random(31);
  Model m = support::model(random, 5, 4, 4, 2);
  for (attention::Linear* l : {&m.projections->query, &m.projections->key, &m.projections->value})
    l->bias = support::matrix(random, 1, 4);
  m.dropout.rate = 0.5;
  return m;
}

/// Groups of heads, rotary positions, norms, a cap, biases and sinks.
Model of_today() {
  support::Random random(33);
  Model m = support::model(random, 5, 4, 16, 4);
  m.n_kv_heads = 2;
  for (attention::Linear* l : {&m.projections->key, &m.projections->value})
    l->weight = support::matrix(random, 4, 8), l->bias = support::matrix(random, 1, 8);
  attention::Additions& a = m.additions;
  a.normalise = {attention::NormRule::rms, support::matrix(random, 1, 4), support::matrix(random, 1, 4)};
  a.positions.rotary.emplace().base = 500;
  a.positions.rotary->scaling = {positions::ScalingRule::linear, 4};
  a.positions.alibi.emplace();
  a.score_bias = {support::matrix(random, 5, 5)};
  a.score_cap = 1;
  a.sink = support::matrix(random, 1, 4);
  return m;
}

/// The first of some models in which a mistake can be made: most can in the first.
Model right_for(const Mistake& mistake) {
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
  models[7] = of_today();
  const auto found = std::ranges::find_if(models, [&](const Model& m) { return applies(mistake, m); });
  return found == models.end() ? Model() : *found;
}

TEST(Mistakes, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Mistake& mistake : mistakes()) EXPECT_TRUE(names.insert(mistake.name).second) << mistake.name;
  for (const Mistake& mistake : mistakes()) EXPECT_EQ(find_mistake(mistake.name), &mistake);
  EXPECT_EQ(find_mistake("nonsense"), nullptr);
}

TEST(Mistakes, ChangeNoStageBeforeTheFirstThatTheyName) {
  for (const Mistake& mistake : mistakes()) {
    const Model right = right_for(mistake);
    ASSERT_FALSE(right.sequences.empty()) << mistake.name;
    const auto trace = attention::attend(right);
    const Model wrong = mistake.made(right);
    ASSERT_FALSE(attention::check(wrong)) << mistake.name;
    if (wrong.n_heads != right.n_heads) continue;  // other shapes cannot be compared
    const auto stages = compare::compare(right, trace, wrong, attention::attend(wrong));
    const auto* first = support::first_difference(stages);
    ASSERT_NE(first, nullptr) << mistake.name;
    EXPECT_GE(first->stage, mistake.first) << mistake.name;
  }
}

TEST(Mistakes, AreMendedToTheLastBit) {
  for (const Mistake& mistake : mistakes()) {
    const Model right = right_for(mistake);
    const Model wrong = mistake.made(right);
    EXPECT_TRUE(applies(mistake, right)) << mistake.name;
    if (mistake.mended) {
      EXPECT_EQ(mistake.mended(wrong), right) << mistake.name;
    }
    EXPECT_FALSE(mistake.present(right)) << mistake.name;
  }
}

TEST(Mistakes, AreSeenInTheOptionsWhereTheyCanBe) {
  for (const Mistake& mistake : mistakes()) {
    const std::string name = mistake.name;
    const bool in_numbers = name.starts_with("weight_") || name.starts_with("bias_missing") ||
                            name.starts_with("output_") || name.starts_with("window_") ||
                            name.starts_with("documents_") || name.starts_with("rotary_base") ||
                            name == "rotary_other_pairs" || name == "alibi_slopes_reversed" ||
                            (name.ends_with("_missing") && mistake.first > Stage::queries);
    // What these make of a model is another model as good as it was.
    const bool is_an_option = name == "n_heads_other" || name == "causal_unwanted" ||
                              name == "padding_missing" || name == "mask_aligned_last" ||
                              name == "key_missing";
    EXPECT_EQ(mistake.present(mistake.made(right_for(mistake))), !in_numbers && !is_an_option) << name;
  }
}

TEST(Mistakes, ApplyOnlyWhereSomethingCanGoWrong) {
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
    EXPECT_FALSE(applies(*find_mistake(name), m)) << name;
  EXPECT_TRUE(applies(*find_mistake("no_scale"), m));
  EXPECT_TRUE(applies(*find_mistake("softmax_over_queries"), m));
}

TEST(Mistakes, OfTodaysModelsApplyWhereTheyMakeADifference) {
  const auto can = [](const char* name, auto change) {
    Model m = of_today();
    change(m);
    return applies(*find_mistake(name), m);
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

TEST(Mistakes, AdviseByTheDiagonalsOfTheShapeAtHand) {
  const Model cross = right_for(*find_mistake("mask_aligned_first"));
  EXPECT_EQ(remedy_in(*find_mistake("mask_shows_next"), cross),
            "Keep tril(diagonal=3) of queries × keys, not tril(diagonal=4).");
  EXPECT_EQ(remedy_in(*find_mistake("mask_hides_diagonal"), cross),
            "Keep tril(diagonal=3) of queries × keys, not tril(diagonal=2).");
  EXPECT_EQ(remedy_in(*find_mistake("mask_aligned_first"), cross),
            "Shift the diagonal by n_keys − n_queries: keep tril(diagonal=3).");
  for (const Mistake& mistake : mistakes())
    EXPECT_EQ(remedy_in(mistake, cross).find("triu"), std::string::npos) << mistake.name;
  EXPECT_EQ(remedy_in(*find_mistake("mask_shows_next"), model()), find_mistake("mask_shows_next")->remedy);
}

TEST(SwitchMistake, IsAnEditThatCanBeTakenBack) {
  const Model right = model();
  const Model wrong = editing::apply(right, editing::SwitchMistake{"mask_shows_next"});
  EXPECT_EQ(wrong.departures.mask_edge.diagonal, 1);
  EXPECT_EQ(editing::apply(wrong, editing::SwitchMistake{"mask_shows_next", false}), right);
  EXPECT_EQ(editing::describe(editing::SwitchMistake{"no_scale"}), "mistake: no scale");
  EXPECT_EQ(support::error_of([&] { editing::apply(right, editing::SwitchMistake{"nonsense"}); }),
            "mistake nonsense: there is no such mistake");
  EXPECT_EQ(support::error_of([&] {
              editing::apply(right, editing::SwitchMistake{"bias_missing", false});
            }),
            "mistake bias_missing: it can only be undone");
}

}  // namespace
}  // namespace core::mistakes
