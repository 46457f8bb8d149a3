#include "core/graph/stage_matrix.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace core::attention {
namespace {

/// A stage of 2 × 3 cells, 10·row + column + offset, that counts how often it is computed.
struct Source {
  std::atomic<int> made{0};
  double offset = 0;

  LazyStage maker() {
    return {2, 3,
            [this] {
              ++made;
              return arma::mat{{offset, offset + 1, offset + 2}, {offset + 10, offset + 11, offset + 12}};
            },
            [this](std::size_t i, std::size_t j) {
              return offset + 10 * static_cast<double>(i) + static_cast<double>(j);
            }};
  }
};

TEST(StageMatrix, IsMadeOnceAndOnlyWhenItIsRead) {
  Source source;
  const StageMatrix stage(source.maker());
  EXPECT_EQ(stage.n_rows(), 2u);
  EXPECT_EQ(stage.n_cols(), 3u);
  EXPECT_EQ(stage(1, 2), 12);
  EXPECT_TRUE(arma::approx_equal(stage.row(1), arma::rowvec{10, 11, 12}, "absdiff", 0));
  EXPECT_EQ(source.made, 0);
  EXPECT_EQ(arma::accu(*stage), 36);
  EXPECT_EQ(stage->max(), 12);
  EXPECT_EQ(source.made, 1);
}

TEST(StageMatrix, RowIsWorkedOutAtOnceWhereTheMakerCan) {
  Source source;
  LazyStage maker = source.maker();
  maker.one_cell = {};
  maker.one_row = [](std::size_t i, double* row) {
    for (std::size_t j = 0; j < 3; ++j) row[j] = static_cast<double>(100 * i + j);
  };
  const StageMatrix stage(maker);
  EXPECT_TRUE(arma::approx_equal(stage.row(1), arma::rowvec{100, 101, 102}, "absdiff", 0));
  EXPECT_EQ(source.made, 0);
}

TEST(StageMatrix, CopyKeepsItsNumbersWhenTheSourceChanges) {
  Source source;
  StageMatrix stage(source.maker());
  const StageMatrix copy = stage;
  source.offset = 100;
  stage.invalidate();
  EXPECT_EQ(copy(0, 1), 1);
  EXPECT_EQ((*copy)(0, 1), 1);
  EXPECT_EQ(stage(0, 1), 101);
  EXPECT_EQ((*stage)(0, 1), 101);
}

TEST(StageMatrix, MovedOneStillAsksItsMaker) {
  Source source;
  StageMatrix first(source.maker());
  StageMatrix second = std::move(first);
  source.offset = 7;
  EXPECT_EQ((*second)(0, 0), 7);
}

TEST(StageMatrix, GivesAwayWhatWasMadeAndMakesItAgain) {
  Source source;
  const StageMatrix stage(source.maker());
  EXPECT_FALSE(stage.release()) << "nothing was made yet";
  EXPECT_EQ(stage->max(), 12);
  const auto given = stage.release();
  ASSERT_TRUE(given);
  EXPECT_EQ(given->max(), 12);
  EXPECT_FALSE(stage.is_materialized());
  source.offset = 100;
  EXPECT_EQ((*stage)(0, 1), 101);
  EXPECT_EQ(source.made, 2);
  EXPECT_FALSE(StageMatrix(arma::mat{{1, 2}}).release());
}

TEST(StageMatrix, OfPlainNumbersKeepsThemWhenRenewed) {
  StageMatrix stage = arma::mat{{1, 2}};
  stage.invalidate();
  EXPECT_TRUE(stage.is_materialized());
  EXPECT_EQ(stage(0, 1), 2);
}

TEST(StageMatrix, IsMadeOnceForReadersOnSeveralThreads) {
  Source source;
  const StageMatrix stage(source.maker());
  double sums[2] = {};
  std::thread other([&] { sums[1] = arma::accu(*stage); });
  sums[0] = arma::accu(*stage);
  other.join();
  EXPECT_EQ(sums[0], 36);
  EXPECT_EQ(sums[1], 36);
  EXPECT_EQ(source.made, 1);
}

}  // namespace
}  // namespace core::attention
