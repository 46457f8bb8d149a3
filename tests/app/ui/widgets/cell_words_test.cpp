// What the inspector and tooltips say of why a number is what it is, held against the model by rules.
#include "app/ui/widgets/cell_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "core/base/number.hpp"
#include "core/editing/edit.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/explain.hpp"
#include "core/graph/mistakes.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "tests/support/panels.hpp"

namespace {

using app::CellRef;
using app::Frame;
using core::attention::Columns;
using core::attention::Model;
using core::attention::Stage;
using core::attention::Trace;
using testing::HasSubstr;
using testing::StartsWith;

bool says(const std::string& words, const char* part) {
  return words.find(part) != words.npos;
}

/// Of which kind reasons were, so that none of them is held of nothing.
struct Seen {
  std::size_t hidden = 0, dropped = 0, kept = 0, empty_softmax = 0, row_of_nothing = 0, made_of_none = 0;
};

void hold_number(const Frame& frame, const CellRef& cell, double value, const std::string& words,
                 Seen& seen) {
  const Model& model = frame.shown.model;
  const Trace& trace = frame.shown.trace;
  EXPECT_EQ(std::isnan(value), says(words, "not a number")) << words;
  if (!std::isnan(value)) return;
  const bool no_key = arma::accu(arma::mat(trace.mask).row(cell.row)) == 0;
  if (says(words, "may see no key") || says(words, "its row of weights is 0/0")) {
    EXPECT_TRUE(no_key) << words;
    EXPECT_EQ(model.mask.empty_rows, core::attention::EmptyRows::nan) << words;
    EXPECT_EQ(says(words, "this query"), core::attention::info(cell.stage).columns == Columns::tokens)
        << words;
    ++(says(words, "this query") ? seen.empty_softmax : seen.row_of_nothing);
    return;
  }
  if (says(words, "every score of this query is −∞")) {
    const arma::mat scores = trace.heads[cell.head].masked_scores;
    EXPECT_TRUE(arma::all(scores.row(cell.row) == -arma::datum::inf)) << words;
    ++seen.empty_softmax;
    return;
  }
  bool any_odd = false;
  for (const auto& cells : core::explain::operands(model, trace, cell)) {
    const Stage* of = std::get_if<Stage>(&cells.source);
    if (!of) continue;
    const arma::mat numbers = core::attention::info(*of).matrix(trace, cells.head);
    const arma::mat part = numbers.submat(cells.row0, cells.column0, cells.row1 - 1, cells.column1 - 1);
    any_odd = any_odd || !part.is_finite();
  }
  EXPECT_TRUE(any_odd) << core::attention::info(cell.stage).name << ": " << words;
  ++seen.made_of_none;
}

void hold_dropout(const Frame& frame, const CellRef& cell, double value, const std::string& words,
                  Seen& seen) {
  const bool of_dropout = cell.stage == Stage::dropout_mask || cell.stage == Stage::dropped_weights;
  if (!of_dropout) {
    EXPECT_THAT(words, testing::Not(StartsWith("dropped"))) << words;
    EXPECT_THAT(words, testing::Not(StartsWith("kept"))) << words;
    return;
  }
  const auto& head = frame.shown.trace.heads[cell.head];
  const double factor = head.dropout_mask(cell.row, cell.column),
               weight = head.weights(cell.row, cell.column);
  if (words == "dropped") {
    EXPECT_EQ(factor, 0);
    EXPECT_EQ(value, 0);
    ++seen.dropped;
  } else if (words.starts_with("kept")) {
    EXPECT_EQ(words, "kept, × " + core::text::number_text(factor));
    if (cell.stage == Stage::dropped_weights) {
      EXPECT_NEAR(value, weight * factor, 1e-12);
    }
    ++seen.kept;
  } else if (words == "the scores were dropped, not the weights") {
    EXPECT_EQ(value, weight);
  } else if (words.empty()) {
    EXPECT_EQ(factor, 1);
  }
}

void hold_hidden(const Frame& frame, const CellRef& cell, double value, const std::string& words,
                 Seen& seen) {
  if (!words.starts_with("hidden") || cell.stage == Stage::mask) return;
  EXPECT_EQ(frame.shown.trace.mask(cell.row, cell.column), 0) << words;
  if (cell.stage != Stage::masked_scores) {
    EXPECT_EQ(value, 0) << words << ": what counts is not hidden";
  }
  ++seen.hidden;
}

void hold_every_cell(const Frame& frame, Seen& seen) {
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(frame.shown.model)) continue;
    for (std::size_t h = 0; h < (stage.per_head ? frame.shown.model.n_heads : 1); ++h) {
      const auto& numbers = stage.matrix(frame.shown.trace, h);
      for (std::size_t i = 0; i < numbers.n_rows(); ++i)
        for (std::size_t j = 0; j < numbers.n_cols(); ++j) {
          const CellRef cell{stage.stage, h, i, j};
          const std::string words = app::widgets::cell_words(frame, cell).reason;
          SCOPED_TRACE(std::string(stage.name) + " " + std::to_string(i) + ", " + std::to_string(j));
          if (words == "typed over" || words == "given, not computed") continue;
          hold_number(frame, cell, numbers(i, j), words, seen);
          hold_dropout(frame, cell, numbers(i, j), words, seen);
          hold_hidden(frame, cell, numbers(i, j), words, seen);
        }
    }
  }
}

struct CellWords : testing::Test {
  Seen seen;
  bool holds = false;                      ///< in the frames that are drawn now
  std::function<void(const Frame&)> also;  ///< done in them
  gui::Panels ui{[this](const Frame& frame) {
    if (holds) hold_every_cell(frame, seen);
    if (also) also(frame);
  }};

  void hold(Model model) {
    if (core::attention::check(model)) return;
    holds = false;
    ui.show(std::move(model));
    ui.run(2);
    holds = true;
    ui.run();
    holds = false;
  }
};

Model with_a_blind_query(Model model) {
  for (std::size_t j = 0; j < model.n_keys(); ++j) model.mask.cells.push_back({1, j, false});
  std::erase_if(model.mask.cells, [&](const auto& cell) { return model.mask.causal && cell.column > 1; });
  return model;
}

TEST_F(CellWords, AreSoForEveryMaskMethodWithRowsThatSeeNothing) {
  using core::attention::EmptyRows;
  using core::attention::MaskMethod;
  for (const char* name : {"004-causal-dropout", "multi-head"})
    for (const auto method : {MaskMethod::negative_infinity, MaskMethod::renormalise,
                              MaskMethod::zero_after_softmax, MaskMethod::large_negative})
      for (const auto empty : {EmptyRows::nan, EmptyRows::zeros}) {
        SCOPED_TRACE(std::string(name) + " method " + std::to_string(static_cast<int>(method)));
        Model model = core::editing::find_preset(name)->make();
        model.mask.method = method, model.mask.empty_rows = empty;
        model.dropout.rate = 0.5, model.dropout.training = true;
        hold(model);
        hold(with_a_blind_query(model));
      }
  EXPECT_GT(seen.hidden, 100u);
  EXPECT_GT(seen.dropped, 10u);
  EXPECT_GT(seen.kept, 10u);
  EXPECT_GT(seen.empty_softmax, 0u);
  EXPECT_GT(seen.row_of_nothing, 0u);
}

TEST_F(CellWords, AreSoWhereNumbersAreNoneOrBoundless) {
  for (const double odd : {arma::datum::nan, arma::datum::inf, -arma::datum::inf})
    for (const Stage stage : {Stage::queries, Stage::scores, Stage::masked_scores, Stage::weights}) {
      SCOPED_TRACE(core::attention::info(stage).name);
      const Model model = core::editing::find_preset("multi-head")->make();
      hold(core::editing::apply(model, core::editing::TypeOver{{stage, 0, 0, 1, 0}, odd}));
    }
  EXPECT_GT(seen.made_of_none, 10u);
}

TEST_F(CellWords, AreSoOfEveryMistakeUnderDropout) {
  for (const auto& mistake : core::mistakes::mistakes()) {
    Model model = core::editing::find_preset("multi-head")->make();
    model.dropout.rate = 0.5, model.dropout.training = true;
    if (!core::mistakes::applies(mistake, model)) continue;
    SCOPED_TRACE(mistake.name);
    hold(mistake.made(model));
  }
  EXPECT_GT(seen.dropped, 10u);
}

TEST_F(CellWords, DoNotCallAWeightHiddenThatWasTypedThere) {
  const Model model = core::editing::find_preset("004-causal")->make();
  hold(core::editing::apply(model, core::editing::TypeOver{{Stage::masked_scores, 0, 0, 0, 3}, 0.5}));
  EXPECT_GT(seen.hidden, 0u);
}

TEST_F(CellWords, NameTokensThatAreNumberedAloneOnce) {
  Model model = core::editing::find_preset("004-causal")->make();
  const auto heading = [&](Stage stage, std::size_t row, std::size_t column) {
    std::string words;
    ui.show(model);
    also = [&](const Frame& frame) {
      words = app::widgets::cell_words(frame, {stage, 0, row, column}).heading;
    };
    ui.run(2);
    also = nullptr;
    return words;
  };
  EXPECT_EQ(heading(Stage::weights, 1, 0), "journey 1 → Your 0");
  EXPECT_EQ(heading(Stage::queries, 1, 0), "journey 1, column 0");
  model.sequences[0].tokens = core::attention::numbered_tokens(model.n_tokens());
  EXPECT_EQ(heading(Stage::weights, 1, 0), "query 1 → key 0");
  EXPECT_EQ(heading(Stage::queries, 1, 0), "row 1, column 0");
}

/// What the token view says beside a key that a query does not see.
TEST_F(CellWords, SayBrieflyWhatHidesAKey) {
  Model model = core::editing::find_preset("004-causal")->make();
  const auto said = [&](std::size_t query, std::size_t key) {
    std::string words;
    ui.show(model);
    also = [&](const Frame& frame) { words = app::widgets::why_hidden(frame, query, key); };
    ui.run(2);
    also = nullptr;
    return words;
  };
  EXPECT_EQ(said(1, 3), "hidden: later than " + model.sequences[0].tokens[1]);
  model.mask.window.left = 1;
  EXPECT_EQ(said(4, 0), "hidden: outside its window");
  model.mask.hidden_keys = {{2}};
  EXPECT_EQ(said(2, 2), "hidden: padding");
  model.mask.cells = {{3, 3, false}};
  EXPECT_EQ(said(3, 3), "hidden by hand");
  model.mask.documents = {0, 0, 0, 0, 1, 1};
  EXPECT_EQ(said(4, 3), "hidden: another document");
}

}  // namespace
