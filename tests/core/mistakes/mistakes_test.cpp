#include "core/mistakes/mistakes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "core/attention/attend.hpp"
#include "core/compare/compare.hpp"
#include "core/editing/edit.hpp"
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

/// The same where that mistake can be made: some need a mask with more than the causal rule.
Model model_for(const Mistake& mistake) {
  Model m = model();
  const std::string_view name = mistake.name;
  if (name.starts_with("window_")) m.mask.window.left = 2;
  if (name.starts_with("documents_")) m.mask.documents = {0, 0, 1, 1, 1};
  return m;
}

TEST(Mistakes, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Mistake& mistake : mistakes()) EXPECT_TRUE(names.insert(mistake.name).second) << mistake.name;
  for (const Mistake& mistake : mistakes()) EXPECT_EQ(find_mistake(mistake.name), &mistake);
  EXPECT_EQ(find_mistake("nonsense"), nullptr);
}

TEST(Mistakes, ChangeNoStageBeforeTheFirstThatTheyName) {
  for (const Mistake& mistake : mistakes()) {
    const Model right = model_for(mistake);
    const auto trace = attention::attend(right);
    const Model wrong = mistake.made(right);
    ASSERT_FALSE(attention::check(wrong)) << mistake.name;
    const auto stages = compare::compare(right, trace, wrong, attention::attend(wrong));
    const auto* first = support::first_difference(stages);
    ASSERT_NE(first, nullptr) << mistake.name;
    EXPECT_GE(first->stage, mistake.first) << mistake.name;
  }
}

TEST(Mistakes, AreMendedToTheLastBit) {
  for (const Mistake& mistake : mistakes()) {
    const Model right = model_for(mistake);
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
    const Model right = model_for(mistake);
    const std::string name = mistake.name;
    const bool in_numbers = name.starts_with("weight_") || name.starts_with("bias_") ||
                            name.starts_with("output_") || name.starts_with("window_") ||
                            name.starts_with("documents_");
    EXPECT_EQ(mistake.present(mistake.made(right)), !in_numbers) << name;
  }
}

TEST(Mistakes, ApplyOnlyWhereSomethingCanGoWrong) {
  Model m;
  m.sequences = {{attention::numbered_tokens(3), arma::mat("1 2 3; 4 5 6; 7 8 0")}};
  m.mask.causal = false;
  for (const char* name :
       {"no_mask", "mask_transposed", "mask_hides_diagonal", "mask_finite", "dropout_off", "dropout_unscaled",
        "dropout_before_softmax", "weight_untransposed:query", "bias_missing", "heads_interleaved",
        "merge_without_transpose", "output_projection_missing", "scale_sqrt_d_model", "window_missing",
        "window_off_by_one", "documents_missing"})
    EXPECT_FALSE(applies(*find_mistake(name), m)) << name;
  EXPECT_TRUE(applies(*find_mistake("no_scale"), m));
  EXPECT_TRUE(applies(*find_mistake("softmax_over_queries"), m));
}

TEST(SwitchMistake, IsAnEditThatCanBeTakenBack) {
  const Model right = model();
  const Model wrong = editing::apply(right, editing::SwitchMistake{"mask_shows_next"});
  EXPECT_EQ(wrong.departures.mask_diagonal, 1);
  EXPECT_EQ(editing::apply(wrong, editing::SwitchMistake{"mask_shows_next", false}), right);
  EXPECT_EQ(editing::describe(editing::SwitchMistake{"no_scale"}), "mistake: no_scale");
  EXPECT_EQ(support::error_of([&] { editing::apply(right, editing::SwitchMistake{"nonsense"}); }),
            "mistake nonsense: there is no such mistake");
  EXPECT_EQ(support::error_of([&] {
              editing::apply(right, editing::SwitchMistake{"bias_missing", false});
            }),
            "mistake bias_missing: it can only be undone");
}

}  // namespace
}  // namespace core::mistakes
