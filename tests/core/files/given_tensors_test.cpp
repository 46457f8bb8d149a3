#include "core/files/given_tensors.hpp"

#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "core/out/numpy.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

using enum attention::Stage;

struct GivenTensors : testing::Test {
  support::TemporaryDirectory dir;
  /// Writes a .npy file of the numbers 0, 1, 2 …
  std::string file(const TensorShape& shape) {
    std::string bytes = npy_header(shape);
    append_rows(bytes, arma::regspace<arma::rowvec>(0, static_cast<double>(count_of(shape).value()) - 1));
    support::put_bytes(dir / "t.npy", bytes);
    return (dir / "t.npy").string();
  }
  std::string error(const std::optional<attention::Model>& start, const std::string& stage,
                    const std::string& source, std::optional<std::size_t> layer = {}) {
    std::string text = support::error_of([&] { given(start, stage, source, layer); });
    if (const auto at = text.find(dir.path().string()); at != text.npos)
      text.erase(at, dir.path().string().size() + 1);
    return text;
  }
  attention::Model given(const std::optional<attention::Model>& start, const std::string& stage,
                         const std::string& source, std::optional<std::size_t> layer = {}) {
    const std::vector<StageFile> tensors{{stage, source, layer}};
    return with_overrides_from_files(start, tensors);
  }
  support::Random random{51};
  attention::Model model = support::model(random, 3, 3, 4, 2);
};

TEST_F(GivenTensors, StartAModelFromTheLayerThatWasChosen) {
  const attention::Model m = given(std::nullopt, "weights", file({4, 2, 3, 5}), 3);
  EXPECT_EQ(m.n_heads, 2u);
  EXPECT_EQ(m.n_tokens(), 3u);
  EXPECT_EQ(m.n_keys(), 5u);
  EXPECT_EQ(attention::attend(m).at(weights, 1)(2, 4), 119);
  EXPECT_EQ(attention::attend(m).at(weights, 0)(0, 1), 91);
}

TEST_F(GivenTensors, MayBeTheLayerThatATupleOrDictNamesByItsNumber) {
  const std::string folder = FIXTURES "/formats/pytorch/attentions/";
  const attention::Model want = given(std::nullopt, "weights", folder + "want.npz");
  for (const char* name : {"tuple.pt", "list.pt", "dict.pt", "model_output.pt"})
    EXPECT_TRUE(given(std::nullopt, "weights", folder + name, 2) == want) << name;
}

TEST_F(GivenTensors, ReplaceAStageOfAModel) {
  const attention::Model m = given(model, "scores", file({2, 3, 3}));
  EXPECT_EQ(attention::attend(m).at(scores, 1)(0, 0), 9);
  EXPECT_TRUE(m.has_embeddings());
}

TEST_F(GivenTensors, CutQueriesOfAllHeadsIntoBands) {
  const attention::Model m = given(model, "queries", file({3, 4}));
  EXPECT_EQ(attention::attend(m).at(queries, 1)(2, 0), 10);
}

TEST_F(GivenTensors, ReplaceTheEmbeddings) {
  const attention::Model m = given(model, "embeddings", file({5, 3}));
  EXPECT_EQ(m.n_tokens(), 5u);
  EXPECT_EQ((*m.sequences[0].embeddings)(4, 2), 14);
  EXPECT_EQ(m.sequences[0].tokens[4], "4");
}

TEST_F(GivenTensors, AreRefusedInOneLine) {
  EXPECT_EQ(error(std::nullopt, "weights", file({2, 2, 3, 3})),
            "t.npy: t: expected one layer chosen, got [2, 2, 3, 3]");
  EXPECT_EQ(error(model, "weights", file({2, 2, 3, 3})),
            "t.npy: t: expected one layer chosen, or 1 sequences, got [2, 2, 3, 3]");
  EXPECT_EQ(
      error(model, "weights", file({7})),
      "t.npy: t: expected [rows, columns], [heads, rows, columns] or [sequences, heads, rows, columns], got [7]");
  EXPECT_EQ(error(model, "weights", file({3, 3, 3})),
            "given.weights: expected 2 matrices, one for each head, got 3");
  EXPECT_EQ(error(model, "queries", file({3, 5})), "t.npy: t: expected columns for 2 heads, got [3, 5]");
  EXPECT_EQ(error(model, "weights", file({3, 3}) + ":w"), "t.npy: expected a tensor w, got t");
  EXPECT_EQ(error(std::nullopt, "embeddings", file({3, 3})),
            "embeddings: expected a session or a preset for them");
}

}  // namespace
}  // namespace core::formats
