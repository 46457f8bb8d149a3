// The strip's sentence about a line of stages, checked against the numbers by rules.
#include "core/graph/words.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/editing/edit.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::explain {
namespace {

using attention::Model;
using attention::Stage;
using attention::Trace;
using testing::HasSubstr;
using testing::Not;

bool says(const std::string& words, const char* part) {
  return words.find(part) != words.npos;
}

double worst_sum(const arma::mat& numbers, int along) {
  return arma::abs(arma::vectorise(arma::sum(numbers, along)) - 1).max();
}

/// Expects every sentence to be true of the numbers, and no true one to be missing.
void expect_true_sentences(const Model& model, const Trace& trace, std::size_t head) {
  const arma::mat weights = trace.at(Stage::weights, head), dropped = trace.at(Stage::dropped_weights, head);
  const std::string second = describe_line({graph::attention(model), model, trace}, head, 2),
                    third = describe_line({graph::attention(model), model, trace}, head, 3);
  const bool numbers = !weights.has_nan();
  EXPECT_EQ(says(third, "some weights are not numbers"), !numbers) << third;
  EXPECT_EQ(says(third, "a row sums to 1"), numbers && worst_sum(weights, 1) <= 1e-6) << third;
  EXPECT_EQ(says(third, "a column sums to 1, not a row"),
            numbers && worst_sum(weights, 1) > 1e-6 && worst_sum(weights, 0) <= 1e-6)
      << third;
  if (says(third, "dropout removes some")) {
    EXPECT_GT(arma::accu((dropped == 0) % (weights != 0)), 0u) << third;
  }
  if (says(third, "rescales")) {
    EXPECT_GT(arma::accu(dropped > weights * (1 + 1e-9)), 0u) << third;
  }
  // Any effect of dropout must be named.
  const bool drops = model.dropout.active() && !model.given.find(Stage::dropout_mask) && numbers &&
                     model.dropout.place == attention::DropoutPlace::weights;
  if (drops) {
    EXPECT_EQ(says(third, "dropout removes some"), arma::accu((dropped == 0) % (weights != 0)) > 0) << third;
    EXPECT_EQ(says(third, "rescales"), arma::accu(arma::abs(dropped) > arma::abs(weights) * (1 + 1e-9)) > 0)
        << third;
  }
  if (!model.dropout.active() && !model.given.find(Stage::dropout_mask)) {
    EXPECT_FALSE(says(third, "dropout")) << third;
  }
  if (says(third, "dropout fell on the scores")) {
    EXPECT_TRUE(arma::approx_equal(dropped, weights, "absdiff", 0) || weights.has_nan()) << third;
  }
  if (attention::info(Stage::masked_scores).present(model)) {
    const arma::mat masked = trace.at(Stage::masked_scores, head);
    for (std::size_t i = 0; i < masked.n_rows; ++i)
      for (std::size_t j = 0; j < masked.n_cols; ++j) {
        const bool hidden = masked(i, j) < -1e8;
        const auto place = attention::aligned_query_position(model, i), key = static_cast<std::int64_t>(j);
        if (says(second, "the future is masked")) {
          EXPECT_EQ(hidden, key > place) << second;
        }
        if (says(second, "the past is masked")) {
          EXPECT_EQ(hidden, key < place) << second;
        }
        if (!says(second, "masked")) {
          EXPECT_FALSE(hidden) << second;
        }
      }
  }
  for (const Stage stage : {Stage::queries, Stage::keys, Stage::values, Stage::scores, Stage::weights})
    if (model.given.find(stage)) {
      const int line = attention::info(stage).line;
      EXPECT_THAT(describe_line({graph::attention(model), model, trace}, head, line), HasSubstr("given"));
    }
  if (model.given.stages.empty()) {
    for (const int line : {1, 2, 3}) {
      EXPECT_THAT(describe_line({graph::attention(model), model, trace}, head, line),
                  Not(HasSubstr("given")));
    }
  }
}

/// Expects the reasons for masked keys to be true: "comes after" and "comes before" the query.
void expect_true_reasons(const Model& model, const Trace& trace) {
  if (!attention::info(Stage::mask).present(model)) return;  // no mask to explain
  for (std::size_t i = 0; i < trace.at(Stage::mask).n_rows(); ++i)
    for (std::size_t j = 0; j < trace.at(Stage::mask).n_cols(); ++j) {
      const std::string words = describe_visibility(model, 0, i, j);
      const bool visible = trace.at(Stage::mask)(i, j) != 0;
      EXPECT_NE(visible, words.starts_with("masked")) << words;
      const auto place = attention::aligned_query_position(model, i), key = static_cast<std::int64_t>(j);
      if (says(words, "comes after query") && !says(words, "shifted")) {
        EXPECT_GT(key, place) << words;
      }
      if (says(words, "comes before query")) {
        EXPECT_LT(key, place) << words;
      }
    }
}

void hold(const Model& model) {
  if (attention::check(model)) return;
  const Trace trace = attention::attend(model, 0);
  for (std::size_t head = 0; head < model.n_heads; ++head) expect_true_sentences(model, trace, head);
  expect_true_reasons(model, trace);
}

const char* const presets[]{"004-causal", "multi-head", "004-causal-dropout", "modern-grouped",
                            "modern-window"};

TEST(LineWords, HoldForEveryMaskMethodWithAndWithoutACausalMask) {
  for (const char* name : presets)
    for (const bool causal : {true, false})
      for (const auto method :
           {attention::MaskMethod::negative_infinity, attention::MaskMethod::renormalize,
            attention::MaskMethod::zero_after_softmax, attention::MaskMethod::large_negative}) {
        const auto* preset = editing::find_preset(name);
        if (!preset) continue;
        SCOPED_TRACE(std::string(name) + " method " + std::to_string(static_cast<int>(method)));
        Model model = preset->make();
        model.mask.causal = causal, model.mask.method = method;
        hold(model);
        model.mask.cells = {{0, 0, false}};
        hold(model);
      }
}

TEST(LineWords, HoldForEveryMistake) {
  std::size_t injected = 0;
  for (const char* name : presets)
    for (const bugs::Bug* bug : bugs::offered_bugs()) {
      const auto* preset = editing::find_preset(name);
      if (!preset || !bugs::has_effect(*bug, preset->make())) continue;
      SCOPED_TRACE(std::string(name) + " " + bug->name);
      hold(bugs::injected(*bug, preset->make()));
      ++injected;
    }
  EXPECT_GT(injected, 40u);
}

TEST(LineWords, HoldForGivenStagesAndTypedCells) {
  for (const Stage stage : {Stage::queries, Stage::keys, Stage::values, Stage::scores, Stage::scaled_scores,
                            Stage::masked_scores, Stage::weights, Stage::dropout_mask}) {
    SCOPED_TRACE(attention::info(stage).name);
    Model model = editing::find_preset("multi-head")->make();
    const Trace trace = attention::attend(model, 0);
    attention::GivenStage given{stage, {}};
    for (std::size_t h = 0; h < model.n_heads; ++h)
      given.matrices.emplace_back(arma::mat(trace.at(stage, h)) * 0.5);
    hold(editing::apply(model, editing::OverrideStage{given}));
    const auto typed = editing::apply(model, editing::OverrideValue{{stage, 0, 0, 0, 1}, 0.7});
    hold(typed);
    EXPECT_THAT(describe_line({graph::attention(typed), typed, attention::attend(typed, 0)}, 0,
                              attention::info(stage).line),
                HasSubstr("1 number is overridden"));
  }
}

TEST(LineWords, HoldUnderDropoutOfEveryKind) {
  std::size_t injected = 0;
  for (const char* name : presets)
    for (const double rate : {0.0, 0.1, 0.5, 0.9, 1.0})
      for (const bool training : {true, false}) {
        const auto* preset = editing::find_preset(name);
        if (!preset) continue;
        SCOPED_TRACE(std::string(name) + " at " + std::to_string(rate));
        Model model = preset->make();
        model.dropout.given.clear();
        model.dropout.rate = rate, model.dropout.training = training;
        hold(model);
        for (const bugs::Bug* bug : bugs::offered_bugs())
          if (bugs::has_effect(*bug, model)) hold(bugs::injected(*bug, model)), ++injected;
      }
  EXPECT_GT(injected, 100u);
}

TEST(LineWords, HoldWhereAQuerySeesNoKey) {
  for (const auto empty : {attention::EmptyRows::nan, attention::EmptyRows::zeros})
    for (const auto method :
         {attention::MaskMethod::negative_infinity, attention::MaskMethod::renormalize,
          attention::MaskMethod::zero_after_softmax, attention::MaskMethod::large_negative}) {
      Model model = editing::find_preset("004-causal")->make();
      model.mask.method = method, model.mask.empty_rows = empty;
      model.mask.cells = {{0, 0, false}};
      hold(model);
    }
}

TEST(LineWords, NameWhatAMaskThatIsTransposedHides) {
  const Model plain = editing::find_preset("004-causal")->make();
  EXPECT_EQ(describe_line({graph::attention(plain), plain, attention::attend(plain, 0)}, 0, 2),
            "Dot products of queries and keys; the future is masked");
  Model model = plain;
  model.mask.edge.transposed = true;
  EXPECT_EQ(describe_line({graph::attention(model), model, attention::attend(model, 0)}, 0, 2),
            "Dot products of queries and keys; the past is masked");
  EXPECT_EQ(describe_visibility(model, 0, 1, 0),
            "masked: key 0 comes before query 1, as the mask is transposed");
}

TEST(LineWords, SayOfAColumnSoftmaxThatColumnsSumToOne) {
  Model model = editing::find_preset("004-causal")->make();
  model.mask.causal = false;
  model = injected(*bugs::find_offered_bug("softmax_over_queries"), model);
  EXPECT_EQ(describe_line({graph::attention(model), model, attention::attend(model, 0)}, 0, 3),
            "Scores become weights; a column sums to 1, not a row");
}

}  // namespace
}  // namespace core::explain
