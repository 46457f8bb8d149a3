// Files dropped on the matrix editor, on a dialog, or anywhere else.
#include "app/session/command.hpp"
#include "app/session/opening.hpp"

#include <gmock/gmock.h>

#include "app/session/navigation.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace app {
namespace {

using core::editing::MatrixName;
using gui::Program;
using testing::HasSubstr;

struct FilledFromAFile : testing::Test {
  void drop(const std::string& name, const std::string& text, MatrixName matrix) {
    support::put_bytes(directory / name, text);
    support::look(program.store, [=](View& v) { v.look.edited.name = matrix; });
    program.run();
    const auto command =
        command_for_dropped_file(directory / name, program.store.view(), program.store.model(), true);
    ASSERT_NE(command.get_if<FillFromFile>(), nullptr);
    program.store.dispatch(command);
    program.run(3);
  }

  support::TemporaryDirectory directory;
  Program program;
};

TEST_F(FilledFromAFile, AProjectionTakesAMatrixOfItsShapeInOneUndoStep) {
  const auto before = program.store.model();
  drop("w.csv", "1,2,3,4\n5,6,7,8\n9,10,11,12\n", MatrixName::query_weight);
  EXPECT_TRUE(arma::approx_equal(*program.store.model().projections->query.weight,
                                 arma::mat{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}, "absdiff", 0));
  program.store.dispatch(Undo{});
  EXPECT_EQ(program.store.model(), before);
}

TEST_F(FilledFromAFile, EmbeddingsTakeOtherTokensWithTheirNamesAndKeepTheProjections) {
  const auto before = program.store.model();
  drop("x.csv", ",a,b,c\nred,1,2,3\ngreen,4,5,6\n", MatrixName::embeddings);
  const auto& model = program.store.model();
  EXPECT_EQ(model.sequences[0].tokens, (std::vector<std::string>{"red", "green"}));
  EXPECT_TRUE(
      arma::approx_equal(*model.sequences[0].embeddings, arma::mat{{1, 2, 3}, {4, 5, 6}}, "absdiff", 0));
  EXPECT_EQ(model.projections, before.projections);
  program.store.dispatch(Undo{});
  EXPECT_EQ(program.store.model(), before);
}

TEST_F(FilledFromAFile, WithoutNamesAsManyRowsKeepTheTokens) {
  const auto names = program.store.model().sequences[0].tokens;
  drop("x.csv", "1,2,3\n4,5,6\n7,8,9\n1,1,1\n2,2,2\n3,3,3\n", MatrixName::embeddings);
  EXPECT_EQ(program.store.model().sequences[0].tokens, names);
}

TEST_F(FilledFromAFile, AnotherShapeLeavesTheModelAndIsNamed) {
  const auto before = program.store.model();
  drop("w.csv", "1,2\n3,4\n", MatrixName::key_weight);
  EXPECT_THAT(program.store.message().text, HasSubstr("w.csv: expected 3×4 for this matrix, got 2×2"));
  drop("x.csv", "1,2\n3,4\n", MatrixName::embeddings);
  EXPECT_THAT(program.store.message().text, HasSubstr("x.csv: expected 3 columns for this matrix, got 2×2"));
  drop("nan.csv", "1,2,3,4\n5,nan,7,8\n9,10,11,12\n", MatrixName::query_weight);
  EXPECT_TRUE(program.store.message().is_error) << program.store.message().text;
  drop("inf.csv", "1,2,inf\n4,5,6\n", MatrixName::embeddings);
  EXPECT_TRUE(program.store.message().is_error) << program.store.message().text;
  EXPECT_EQ(program.store.model(), before);
}

TEST(Dropped, MeansWhatItIsDroppedOn) {
  const auto model = Program().store.model();
  View view;
  const auto is_opened = [&](const char* name, bool over_editor) {
    return command_for_dropped_file(name, view, model, over_editor).get_if<OpenPath>() != nullptr;
  };
  EXPECT_TRUE(is_opened("w.csv", false));
  EXPECT_FALSE(is_opened("w.csv", true));
  EXPECT_TRUE(is_opened("session.json", true));
  for (const char* name : {"w.pt", "w.pth", "w.bin", "w.pkl", "w.ckpt", "w.safetensors.index.json"})
    EXPECT_FALSE(is_opened(name, true)) << name;
  view.look.tab = Tab::compare;
  EXPECT_TRUE(command_for_dropped_file("w.npz", view, model, false).get_if<CheckTensors>());
  EXPECT_TRUE(command_for_dropped_file("w.npz", view, model, true).get_if<FillFromFile>());
  view.forms.dialog = Dialog::open_reference;
  EXPECT_TRUE(command_for_dropped_file("w.npz", view, model, true).get_if<LoadReference>());
}

}  // namespace
}  // namespace app
