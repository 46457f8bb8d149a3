// The inspector; its explanations of numbers and those of tooltips, checked against the model.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "app/ui/panels/inspector/inspector_panel.hpp"
#include "app/ui/panels/stages/stages_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "core/base/number.hpp"
#include "core/editing/edit.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/explain.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/words.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::CellRef;
using app::Key;
using core::attention::Stage;
using core::editing::MatrixName;
using gui::Panels;

/// Draws the strip at the left and the inspector at the right, as in the window.
void draw_strip_and_inspector(const app::Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const auto draw = [&](const char* name, float left, float right, auto panel) {
    support::in_window(name, {left, 0}, {right, size.y}, [&] { panel(frame); });
  };
  draw("stages", 0, size.x - 400, app::panels::draw_stages);
  draw("inspector", size.x - 400, size.x, app::panels::draw_inspector);
}

struct Inspector : testing::Test {
  Panels ui{draw_strip_and_inspector, {1600, 1400}};

  void click_cell(Stage stage, std::size_t row, std::size_t column) {
    const auto& info = core::attention::info(stage);
    const auto trace = core::attention::attend(ui.model());
    const arma::mat& numbers = trace.at(info.stage, ui.view().look.head);
    const auto rect = ui.landmarks().find(std::string("strip/") + info.name);
    ASSERT_TRUE(rect) << info.name;
    const float width = (rect->max.x - rect->min.x) / static_cast<float>(numbers.n_cols);
    const float height = (rect->max.y - rect->min.y) / static_cast<float>(numbers.n_rows);
    ui.play(support::click({rect->min.x + (static_cast<float>(column) + 0.5f) * width,
                            rect->min.y + (static_cast<float>(row) + 0.5f) * height}));
  }
  void follow(const std::string& operand) { ui.click("inspector/" + operand); }
  void expect_pinned(const CellRef& cell) {
    ASSERT_TRUE(ui.view().selection.pinned);
    EXPECT_STREQ(core::attention::info(ui.view().selection.pinned->stage).name,
                 core::attention::info(cell.stage).name);
    EXPECT_EQ(ui.view().selection.pinned, cell);
  }
};

TEST_F(Inspector, HidesAndShowsACellOfTheMaskByHand) {
  click_cell(Stage::weights, 3, 1);
  follow("mask");
  ASSERT_EQ(ui.model().mask.cells.size(), 1u);
  EXPECT_EQ(ui.model().mask.cells.front(), (core::attention::MaskCell{3, 1, false}));
  EXPECT_EQ(core::attention::attend(ui.model()).at(Stage::weights, 0)(3, 1), 0);
  follow("mask");
  EXPECT_TRUE(ui.model().mask.cells.empty());
  click_cell(Stage::scores, 0, 5);
  follow("mask");
  EXPECT_EQ(ui.model().mask.cells.front(), (core::attention::MaskCell{0, 5, true}));
  click_cell(Stage::queries, 2, 0);
  EXPECT_FALSE(ui.has("inspector/mask")) << "it is not between tokens";
}

TEST_F(Inspector, FollowsOperandsUpstreamToTheEmbeddingsAndBack) {
  click_cell(Stage::weights, 1, 0);
  expect_pinned({Stage::weights, 0, 1, 0});
  follow("step/3/line/1/a");  // exp(s_11 − max)
  expect_pinned({Stage::masked_scores, 0, 1, 1});
  follow("step/1/line/0/a");  // the score before division by √d
  expect_pinned({Stage::scores, 0, 1, 1});
  follow("step/0/line/1/b");  // the second number of the key
  expect_pinned({Stage::keys, 0, 1, 1});
  follow("step/0/line/2/a");  // the third of the embedding
  expect_pinned({Stage::embeddings, 0, 1, 2});

  ui.key(Key::backspace);
  expect_pinned({Stage::keys, 0, 1, 1});
  ui.click("inspector/back");
  expect_pinned({Stage::scores, 0, 1, 1});
  ui.key(Key::backspace);
  ui.key(Key::backspace);
  expect_pinned({Stage::weights, 0, 1, 0});
  ui.run();
  EXPECT_FALSE(ui.has("inspector/back"));
  ui.key(Key::backspace);
  expect_pinned({Stage::weights, 0, 1, 0});
  ui.key(Key::escape);
  EXPECT_FALSE(ui.view().selection.pinned);
}

TEST_F(Inspector, ForgetsTheWayBackWhenAnotherCellIsPinned) {
  click_cell(Stage::weights, 1, 0);
  follow("step/0/line/0/a");
  EXPECT_TRUE(ui.has("inspector/back"));
  click_cell(Stage::scores, 2, 2);
  EXPECT_FALSE(ui.has("inspector/back"));
  click_cell(Stage::scores, 2, 2);
  EXPECT_FALSE(ui.view().selection.pinned);
}

TEST_F(Inspector, PutsTheEditCursorOnALearnedNumber) {
  ui.look([&](auto& v) { v.look.head = 1; });
  click_cell(Stage::keys, 2, 1);
  follow("step/0/line/1/b");
  expect_pinned({Stage::keys, 1, 2, 1});
  EXPECT_EQ(ui.view().look.edited.name, MatrixName::key_weight);
  ASSERT_TRUE(ui.view().selection.cursor);
  EXPECT_EQ(ui.view().selection.cursor->row, 1u);
  EXPECT_EQ(ui.view().selection.cursor->column, 3u);  // the second head has columns 2 and 3
  ui.click("inspector/copy");
  EXPECT_THAT(ui.asked<app::CopyText>().at(0).text,
              testing::StartsWith("keys, head 1, row 2 (starts), column 1"));
  click_cell(Stage::embeddings, 4, 2);
  ui.click("inspector/edit");
  EXPECT_EQ(ui.view().look.edited.name, MatrixName::embeddings);
  EXPECT_EQ(ui.view().selection.cursor->row, 4u);
  EXPECT_EQ(ui.view().selection.cursor->column, 2u);
}

TEST_F(Inspector, NamesTheShapesOfSharedHeadsAndAllThatTheScoresPassThrough) {
  const auto words = [&] {
    std::string all;
    support::TextReader reader;
    for (const support::DrawnText& t : reader.texts()) all += t.text + "\n";
    return all;
  };
  ui.screen.has_fonts = true;
  ui.load("modern-grouped");
  ui.run(3);
  const std::size_t kv = ui.model().kv_heads(), heads = ui.model().n_heads;
  ASSERT_LT(kv, heads);
  EXPECT_THAT(words(), testing::HasSubstr(std::to_string(heads) + " × (6, "));
  EXPECT_THAT(words(), testing::HasSubstr("K, V"));
  EXPECT_THAT(words(), testing::HasSubstr(std::to_string(kv) + " × (6, "));
  for (const auto& [preset, part] : {std::pair("modern-rotary", "RoPE"),
                                     {"modern-alibi", "ALiBi"},
                                     {"modern-cap", "tanh"},
                                     {"modern-sink", "sink"}}) {
    ui.load(preset);
    ui.run(3);
    const app::Rect box = ui.rect("inspector/formula");
    std::string inside;
    support::TextReader reader;
    for (const support::DrawnText& t : reader.texts())
      if (t.min.x > box.min.x && t.max.x < box.max.x + 1 && t.min.y > box.min.y && t.max.y < box.max.y)
        inside += t.text + " ";
    EXPECT_THAT(inside, testing::HasSubstr(part)) << preset;
    EXPECT_THAT(inside, testing::HasSubstr("softmax")) << preset;
  }
}

TEST_F(Inspector, FoldsALongSumAndUnfoldsItOnAClick) {
  support::Random random(3);
  ui.show(support::model(random, 4, 40, 4, 2));
  click_cell(Stage::values, 0, 0);
  const auto lines = [&] {
    return std::count_if(ui.landmarks().all().begin(), ui.landmarks().all().end(), [](const auto& mark) {
      return mark.first.starts_with("inspector/step/0/line/") && mark.first.ends_with("/a");
    });
  };
  EXPECT_EQ(lines(), 6);
  ui.click("inspector/step/0/more");
  EXPECT_EQ(lines(), 40);
  ui.click("inspector/step/0/more");
  EXPECT_EQ(lines(), 6);
}

TEST_F(Inspector, GoesToTheSameCellOfAnotherHeadAndDownstream) {
  click_cell(Stage::weights, 3, 2);
  follow("head/1");
  expect_pinned({Stage::weights, 1, 3, 2});
  EXPECT_EQ(ui.view().look.head, 1u);
  follow("leads/0");
  expect_pinned({Stage::dropped_weights, 1, 3, 2});
  follow("leads/0");
  EXPECT_EQ(ui.view().selection.pinned->stage, Stage::contexts);
  EXPECT_EQ(ui.view().selection.pinned->row, 3u);
  EXPECT_EQ(ui.view().selection.trail.size(), 3u);
}

using app::Frame;
using core::attention::Columns;
using core::attention::Model;
using core::attention::Trace;
using testing::HasSubstr;
using testing::StartsWith;

bool says(const std::string& words, const char* part) {
  return words.find(part) != words.npos;
}

/// Number of explanations of each kind, so that no check is empty.
struct Seen {
  std::size_t hidden = 0, dropped = 0, kept = 0, empty_softmax = 0, row_of_nothing = 0, made_of_none = 0;
};

void hold_number(const Frame& frame, const CellRef& cell, double value, const std::string& words,
                 Seen& seen) {
  const Model& model = frame.displayed.model;
  const Trace& trace = frame.displayed.trace;
  EXPECT_EQ(std::isnan(value), says(words, "NaN")) << words;
  if (!std::isnan(value)) return;
  const bool no_key = arma::accu(arma::mat(trace.at(Stage::mask)).row(cell.row)) == 0;
  if (says(words, "attends to no key") || says(words, "its row of weights is 0/0")) {
    EXPECT_TRUE(no_key) << words;
    EXPECT_EQ(model.mask.empty_rows, core::attention::EmptyRows::nan) << words;
    EXPECT_EQ(says(words, "this query"), core::attention::info(cell.stage).columns == Columns::tokens)
        << words;
    ++(says(words, "this query") ? seen.empty_softmax : seen.row_of_nothing);
    return;
  }
  if (says(words, "every score of this query is −∞")) {
    const arma::mat scores = trace.at(Stage::masked_scores, cell.head);
    EXPECT_TRUE(arma::all(scores.row(cell.row) == -arma::datum::inf)) << words;
    ++seen.empty_softmax;
    return;
  }
  bool any_odd = false;
  for (const auto& cells : core::explain::operands({core::graph::attention(model), model, trace}, cell)) {
    const Stage* of = std::get_if<Stage>(&cells.source);
    if (!of) continue;
    const arma::mat numbers = trace.at(*of, cells.head);
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
  const core::attention::Trace& trace = frame.displayed.trace;
  const double factor = trace.at(Stage::dropout_mask, cell.head)(cell.row, cell.column),
               weight = trace.at(Stage::weights, cell.head)(cell.row, cell.column);
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
  } else if (words == "dropout was applied to the scores, not the weights") {
    EXPECT_EQ(value, weight);
  } else if (words.empty()) {
    EXPECT_EQ(factor, 1);
  }
}

void hold_hidden(const Frame& frame, const CellRef& cell, double value, const std::string& words,
                 Seen& seen) {
  if (!words.starts_with("masked") || cell.stage == Stage::mask) return;
  EXPECT_EQ(frame.displayed.trace.at(Stage::mask)(cell.row, cell.column), 0) << words;
  if (cell.stage != Stage::masked_scores) {
    EXPECT_EQ(value, 0) << words << ": what counts is not hidden";
  }
  ++seen.hidden;
}

void hold_every_cell(const Frame& frame, Seen& seen) {
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(frame.displayed.model)) continue;
    for (std::size_t h = 0; h < stage.count(frame.displayed.model.n_heads); ++h) {
      const auto& numbers = frame.displayed.trace.at(stage.stage, h);
      for (std::size_t i = 0; i < numbers.n_rows(); ++i)
        for (std::size_t j = 0; j < numbers.n_cols(); ++j) {
          const CellRef cell{stage.stage, h, i, j};
          const std::string words = app::widgets::describe_cell(frame, cell).reason;
          SCOPED_TRACE(std::string(stage.name) + " " + std::to_string(i) + ", " + std::to_string(j));
          if (words == "overridden" || words == "overridden, not computed") continue;
          hold_number(frame, cell, numbers(i, j), words, seen);
          hold_dropout(frame, cell, numbers(i, j), words, seen);
          hold_hidden(frame, cell, numbers(i, j), words, seen);
        }
    }
  }
}

struct CellWords : testing::Test {
  Seen seen;
  bool holds = false;                      ///< whether frames check every cell
  std::function<void(const Frame&)> also;  ///< called in every frame
  gui::Panels ui{[this](const Frame& frame) {
    if (holds) hold_every_cell(frame, seen);
    if (also) also(frame);
  }};

  void hold(Model model) {
    if (core::attention::check(model)) return;
    holds = false;
    ui.show(std::move(model));
    holds = true;
    ui.run();
    holds = false;
  }
};

Model with_fully_masked_query(Model model) {
  for (std::size_t j = 0; j < model.n_keys(); ++j) model.mask.cells.push_back({1, j, false});
  std::erase_if(model.mask.cells, [&](const auto& cell) { return model.mask.causal && cell.column > 1; });
  return model;
}

TEST_F(CellWords, AreSoForEveryMaskMethodWithRowsThatSeeNothing) {
  using core::attention::EmptyRows;
  using core::attention::MaskMethod;
  for (const char* name : {"004-causal-dropout", "multi-head"})
    for (const auto method : {MaskMethod::negative_infinity, MaskMethod::renormalize,
                              MaskMethod::zero_after_softmax, MaskMethod::large_negative})
      for (const auto empty : {EmptyRows::nan, EmptyRows::zeros}) {
        SCOPED_TRACE(std::string(name) + " method " + std::to_string(static_cast<int>(method)));
        Model model = core::editing::find_preset(name)->make();
        model.mask.method = method, model.mask.empty_rows = empty;
        model.dropout.rate = 0.5, model.dropout.training = true;
        hold(model);
        hold(with_fully_masked_query(model));
      }
  EXPECT_GT(seen.hidden, 100u);
  EXPECT_GT(seen.dropped, 10u);
  EXPECT_GT(seen.kept, 10u);
  EXPECT_GT(seen.empty_softmax, 0u);
  EXPECT_GT(seen.row_of_nothing, 0u);
}

TEST_F(CellWords, AreSoWhereNumbersAreNoneBoundlessOrTypedWhereTheyAreHidden) {
  const Model causal = core::editing::find_preset("004-causal")->make();
  hold(core::editing::apply(causal, core::editing::OverrideValue{{Stage::masked_scores, 0, 0, 0, 3}, 0.5}));
  for (const double odd : {arma::datum::nan, arma::datum::inf, -arma::datum::inf})
    for (const Stage stage : {Stage::queries, Stage::scores, Stage::masked_scores, Stage::weights}) {
      SCOPED_TRACE(core::attention::info(stage).name);
      const Model model = core::editing::find_preset("multi-head")->make();
      hold(core::editing::apply(model, core::editing::OverrideValue{{stage, 0, 0, 1, 0}, odd}));
    }
  EXPECT_GT(seen.made_of_none, 10u);
}

TEST_F(CellWords, AreSoOfEveryMistakeUnderDropout) {
  for (const auto* bug : core::bugs::offered_bugs()) {
    Model model = core::editing::find_preset("multi-head")->make();
    model.dropout.rate = 0.5, model.dropout.training = true;
    if (!core::bugs::has_effect(*bug, model)) continue;
    SCOPED_TRACE(bug->name);
    hold(injected(*bug, model));
  }
  EXPECT_GT(seen.dropped, 10u);
}

TEST_F(CellWords, NameTokensAndSayBrieflyWhatHidesAKey) {
  Model model = core::editing::find_preset("004-causal")->make();
  const auto said = [&](const std::function<std::string(const Frame&)>& question) {
    std::string words;
    ui.show(model);
    also = [&](const Frame& frame) { words = question(frame); };
    ui.run(2);
    also = nullptr;
    return words;
  };
  const auto heading = [&](Stage stage) {
    return said([&](const Frame& frame) {
      return app::widgets::describe_cell(frame, {stage, 0, 1, 0}).heading;
    });
  };
  const auto hidden = [&](std::size_t query, std::size_t key) {
    return said([&](const Frame& frame) { return app::widgets::masked_reason(frame, query, key); });
  };
  EXPECT_EQ(heading(Stage::weights), "‘journey’ 1 → ‘Your’ 0");
  EXPECT_EQ(heading(Stage::queries), "‘journey’ 1, column 0");
  EXPECT_EQ(hidden(1, 3), "masked: later than journey");
  model.sequences[0].tokens = core::attention::numbered_tokens(model.n_tokens());
  EXPECT_EQ(heading(Stage::weights), "query 1 → key 0");
  EXPECT_EQ(heading(Stage::queries), "row 1, column 0");
  model.mask.window.left = 1;
  EXPECT_EQ(hidden(4, 0), "masked: outside its sliding window");
  model.mask.hidden_keys = {{2}};
  EXPECT_EQ(hidden(2, 2), "masked: padding");
  model.mask.cells = {{3, 3, false}};
  EXPECT_EQ(hidden(3, 3), "masked by hand");
  model.mask.documents = {0, 0, 0, 0, 1, 1};
  EXPECT_EQ(hidden(4, 3), "masked: other document");
}

}  // namespace
