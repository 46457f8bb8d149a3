#include <gtest/gtest.h>

#include "core/base/random.hpp"
#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"

namespace {

using namespace core::editing;
using gui::Panels;

struct EditPanel : testing::Test {
  Panels ui{gui::draw_side_panels};
  const arma::mat& x() const { return ui.model().sequences[0].embeddings; }
  void fill(const char* how) {
    ui.click("edit/fill");
    ui.click(std::string("edit/fill/") + how);
  }
};

TEST_F(EditPanel, HasATabForEachMatrixOfTheModel) {
  for (const char* name : {"X", "W_q", "W_k", "W_v", "W_o", "b_o"})
    EXPECT_TRUE(ui.has(std::string("edit/tab/") + name)) << name;
  for (const char* name : {"b_q", "b_k", "b_v"})
    EXPECT_FALSE(ui.has(std::string("edit/tab/") + name)) << name;
  ui.change([](auto& m) { m.projections.reset(), m.n_heads = 1; });
  ui.run();
  EXPECT_FALSE(ui.has("edit/tab/W_q"));
}

TEST_F(EditPanel, EditsTheChosenMatrix) {
  ui.click("edit/tab/W_k");
  EXPECT_EQ(ui.view().look.edited.name, MatrixName::key_weight);
  const double before = (*ui.model().projections->key.weight)(2, 3);
  ui.drag("edit/cell/2/3", 10, 0);
  EXPECT_NEAR((*ui.model().projections->key.weight)(2, 3) - before, 0.1, 1e-8);
}

TEST_F(EditPanel, ShowsXWhenTheChosenMatrixIsGone) {
  ui.click("edit/tab/b_o");
  ui.change([](auto& m) { m.projections.reset(), m.n_heads = 1; });
  ui.run();
  EXPECT_TRUE(ui.has("edit/cell/5/2"));
  EXPECT_TRUE(ui.has("edit/add_token"));
}

TEST_F(EditPanel, AddsATokenOfZerosAtTheEnd) {
  ui.click("edit/add_token");
  EXPECT_EQ(ui.model().n_tokens(), 7u);
  EXPECT_EQ(arma::accu(arma::abs(x().row(6))), 0);
  EXPECT_EQ(ui.model().sequences[0].tokens[6], "6");
}

TEST_F(EditPanel, FillsWithWhatTheMenuSays) {
  fill("ones");
  EXPECT_EQ(arma::accu(x()), 18);
  fill("identity");
  EXPECT_EQ(arma::accu(x()), 3);
  EXPECT_EQ(arma::trace(x().rows(0, 2)), 3);
  fill("zeros");
  EXPECT_EQ(arma::accu(arma::abs(x())), 0);
}

TEST_F(EditPanel, DrawsRandomNumbersRowByRowAsPyTorchDoes) {
  ui.look([&](auto& v) { v.forms.fill.fill.seed = 7; });
  fill("rand");
  const auto rand = core::random::Generator(7).rand(18);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(x()(i / 3, i % 3), static_cast<double>(rand[i]));
  ui.click("edit/random");
  const auto normal = core::random::Generator(7).normal(18);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(x()(i / 3, i % 3), static_cast<double>(normal[i]));
  EXPECT_EQ(ui.view().forms.fill.fill.seed, 8u) << "each press takes the next seed";
}

TEST_F(EditPanel, FillsAProjectionWithTheTransposedWeightOfLinear) {
  ui.click("edit/tab/W_q");
  fill("linear");
  const auto weight = core::random::Generator(123).linear_weight(3, 4);  // 4 × 3, row after row
  const arma::mat& w = ui.model().projections->query.weight;
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(w(i % 3, i / 3), static_cast<double>(weight[i]));
}

TEST_F(EditPanel, KeepsEverythingWithinItsRegionInASmallWindow) {
  ImGui::GetIO().DisplaySize = {1280, 800};
  for (const MatrixName name : {MatrixName::embeddings, MatrixName::query_weight}) {
    ui.look([&](auto& v) { v.look.edited.name = name; });
    ui.run(3);
    for (const auto& [mark, rect] : ui.landmarks().all())
      if (mark.starts_with("edit/")) {
        EXPECT_LE(rect.max.x, 256) << mark;
        EXPECT_LE(rect.max.y, 800 - 28) << mark;
      }
  }
}

}  // namespace
