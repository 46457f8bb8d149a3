#include "core/editing/history.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/validation.hpp"
#include "tests/core/editing/random_edit.hpp"

namespace core::editing {
namespace {

using attention::Model;

Model small_model() {
  Random random(7);
  return support::model(random, 4, 3, 4, 2);
}

/// Returns a model with 100 × 100 embeddings, 80 kB in each undo step.
Model wide_model() {
  Random random(7);
  return support::model(random, 100, 100, 2, 1);
}

/// Applies the edit as the store does: record, then replace.
void take(Model& model, History& history, const Edit& edit) {
  Model next = editing::apply(model, edit);  // not std::apply, which ADL finds through the variant
  history.record(model, target(edit), describe(edit));
  model = std::move(next);
}

SetCell cell(std::size_t row, std::size_t column, double value) {
  return {{MatrixName::embeddings, 0}, row, column, value};
}

TEST(History, LeadsTenThousandRandomEditsBackAndForthBitForBit) {
  Random random(20);
  const Model first = small_model();
  Model model = first;
  History history(std::size_t{4} << 30);
  std::array<int, std::variant_size_v<Edit>> accepted{}, rejected{};
  int steps = 0;
  for (int k = 0; k < 10000; ++k) {
    const std::size_t kind = below(random, std::variant_size_v<Edit>);
    const Edit edit = random_edit(random, model, kind);
    ASSERT_EQ(edit.index(), kind);
    const Model before = model;
    try {
      take(model, history, edit);
    } catch (const Error& error) {
      ++rejected[kind];
      ASSERT_EQ(model, before) << error.what();
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      continue;
    }
    ++accepted[kind];
    ++steps;
    history.end_gesture();
    ASSERT_FALSE(attention::check(model).has_value()) << describe(edit);
    if (k % 20 == 0) attend(model, model.sequences.size() - 1);
  }
  for (std::size_t kind = 0; kind < accepted.size(); ++kind) EXPECT_GT(accepted[kind], 30) << "kind " << kind;
  EXPECT_GT(std::accumulate(rejected.begin(), rejected.end(), 0), 1000);

  const Model last = model;
  int undone = 0;
  for (; history.can_undo(); ++undone) model = history.undo(model);
  EXPECT_EQ(undone, steps);
  EXPECT_EQ(model, first);
  int redone = 0;
  for (; history.can_redo(); ++redone) model = history.redo(model);
  EXPECT_EQ(redone, steps);
  EXPECT_EQ(model, last);
}

TEST(History, RetracesRandomWalksOfUndoAndRedo) {
  Random random(21);
  Model model = small_model();
  History history;
  std::vector<Model> expected{model};  // the model at each step
  std::size_t at = 0;
  for (int k = 0; k < 2000; ++k) {
    const std::size_t choice = below(random, 5);
    if (choice == 0 && history.can_undo()) {
      model = history.undo(model);
      --at;
    } else if (choice == 1 && history.can_redo()) {
      model = history.redo(model);
      ++at;
    } else if (choice > 1) {
      history.end_gesture();
      take(model, history, cell(below(random, 4), below(random, 3), number(random)));
      expected.resize(++at);
      expected.push_back(model);
    }
    ASSERT_EQ(model, expected[at]);
    ASSERT_EQ(history.can_undo(), at > 0);
    ASSERT_EQ(history.can_redo(), at + 1 < expected.size());
  }
}

TEST(History, TakesAGestureAsOneStepAndEveryOtherEditAsItsOwn) {
  struct Case {
    std::vector<Edit> edits;
    bool ends;  ///< whether the gesture ends before the last edit
    std::size_t n_steps;
  };
  for (const auto& [edits, ends, n_steps] :
       {Case{{cell(1, 2, 5), cell(1, 2, 6), cell(1, 2, 7)}, false, 1},
        Case{{cell(1, 2, 5), cell(1, 2, 6), cell(1, 2, 7)}, true, 2},
        Case{{cell(1, 2, 5), cell(1, 1, 6)}, false, 2},                                 // another target
        Case{{InsertToken{0, ""}, InsertToken{0, ""}}, false, 2},                       // without a target
        Case{{SwitchMaskCell{1, 0, false}, SwitchMaskCell{2, 0, false}}, false, 1}}) {  // a stroke
    const Model first = small_model();
    Model model = first;
    History history;
    for (std::size_t k = 0; k < edits.size(); ++k) {
      if (ends && k + 1 == edits.size()) history.end_gesture();
      take(model, history, edits[k]);
    }
    std::size_t undone = 0;
    for (; history.can_undo(); ++undone) model = history.undo(model);
    EXPECT_EQ(undone, n_steps) << describe(edits.front());
    EXPECT_EQ(model, first);
  }
}

TEST(History, EndsTheGestureWithUndoAndRedoForgetsWhatWasUndoneAndNamesItsSteps) {
  Model model = small_model();
  History history;
  EXPECT_EQ(history.undo_description(), "");
  take(model, history, cell(1, 2, 5));
  const Model second = model;
  model = history.undo(model);
  EXPECT_EQ(history.redo_description(), "change of X[1,2]");
  model = history.redo(model);
  take(model, history, cell(1, 2, 6));
  model = history.undo(model);
  EXPECT_EQ(model, second);
  ASSERT_TRUE(history.can_redo());
  take(model, history, SetCausal{false});
  EXPECT_FALSE(history.can_redo());
  EXPECT_EQ(history.undo_description(), "causal mask");
  history.clear();
  EXPECT_FALSE(history.can_undo());
  EXPECT_EQ(history.bytes(), 0u);
}

TEST(History, StaysWithinItsBudgetAndDropsTheOldestFirst) {
  constexpr std::size_t budget = 1'000'000;
  Model model = wide_model();
  History history(budget);
  std::vector<Model> models;
  for (std::size_t k = 0; k < 100; ++k) {
    models.push_back(model);
    take(model, history, SetBlock{{}, k, k, arma::mat{7}});  // copies the matrix
    ASSERT_LE(history.bytes(), budget);
  }
  std::size_t kept = 0;
  for (; history.can_undo(); ++kept) {
    model = history.undo(model);
    ASSERT_EQ(model, models[models.size() - 1 - kept]);
    ASSERT_LE(history.bytes(), budget);
  }
  EXPECT_GE(kept, 10u);  // 80 kB of embeddings and some 4 kB of names each
  EXPECT_LE(kept, 12u);
  EXPECT_EQ(history.n_forgotten(), models.size() - kept);
  EXPECT_EQ(history.n_applied(), history.n_forgotten()) << "what is undone is not done";
}

TEST(History, CountsSharedMatricesOnceAndOneNumberWithoutItsMatrix) {
  for (const bool is_number : {true, false}) {
    Model model = wide_model();
    History history(2'000'000);  // copies would take 8 MB
    std::vector<Model> models;
    for (std::size_t k = 0; k < 100; ++k) {
      models.push_back(model);
      take(model, history, is_number ? Edit(cell(k, k, 7)) : SwitchMaskCell{k, 0, false});
      history.end_gesture();
    }
    for (std::size_t k = 100; k-- > 0;) {
      ASSERT_TRUE(history.can_undo()) << k;
      model = history.undo(model);
      ASSERT_EQ(model, models[k]) << k;
    }
  }
}

TEST(History, KeepsOneStepEvenBeyondTheBudget) {
  const Model first = wide_model();
  Model model = first;
  History history(1);
  take(model, history, cell(0, 0, 7));
  const Model second = model;
  take(model, history, cell(1, 1, 7));
  EXPECT_EQ(history.undo(model), second);
  EXPECT_FALSE(history.can_undo());
  EXPECT_EQ(history.redo(second), model);
}

TEST(History, GivesBackEveryByteWhenItsStepsAreReplaced) {
  Model model = small_model();
  History history;
  take(model, history, cell(1, 2, 5));
  const std::size_t bytes = history.bytes();
  for (int k = 0; k < 10; ++k) {
    model = history.undo(model);
    take(model, history, cell(1, 2, k));
  }
  EXPECT_EQ(history.bytes(), bytes);
}

}  // namespace
}  // namespace core::editing
