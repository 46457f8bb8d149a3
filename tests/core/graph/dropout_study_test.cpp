#include "core/graph/dropout.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/attend.hpp"
#include "tests/support/json_fixture.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

/// Returns a batch of two sequences with two heads and a dropout rate of 0.5.
Model dropped_model(DropoutStream stream = DropoutStream::mt19937) {
  support::Random random(5);
  Model m = support::model(random, 5, 3, 4, 2, 2);
  m.dropout.rate = 0.5;
  m.dropout.stream = stream;
  return m;
}

DropoutStudy study_of(const Model& model, std::size_t sequence, std::size_t head) {
  return DropoutStudy(model, sequence, head, attend(model, sequence).at(Stage::weights, head));
}

TEST(DropoutStudy, FirstMaskIsTheModelsOwnInEveryHeadSequenceAndStream) {
  for (const DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl})
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t h = 0; h < 2; ++h) {
        const Model m = dropped_model(stream);
        DropoutStudy study = study_of(m, s, h);
        study.advance(1);
        const Trace trace = attend(m, s);
        EXPECT_TRUE(arma::approx_equal(study.mean(), *trace.at(Stage::dropped_weights, h), "absdiff", 0));
      }
}

TEST(DropoutStudy, SecondMaskGoesOnWhereTheWholeFirstCallLeftOff) {
  const Model m = dropped_model();
  DropoutStudy study = study_of(m, 1, 0);
  study.advance(2);
  // A batch of four draws the two calls' numbers in one go: its sequence 3 is sequence 1 of the second call.
  Model twice = m;
  twice.sequences.insert(twice.sequences.end(), m.sequences.begin(), m.sequences.end());
  const arma::mat w = attend(m, 1).at(Stage::weights, 0);
  const arma::mat expected =
      (w % sampled_dropout_masks(twice, 1)[0] + w % sampled_dropout_masks(twice, 3)[0]) / 2;
  EXPECT_TRUE(arma::approx_equal(study.mean(), expected, "absdiff", 0));
}

TEST(DropoutStudy, MeanApproachesTheWeights) {
  DropoutStudy study = study_of(dropped_model(), 0, 1);
  study.advance(4096);
  // A kept weight of at most 1 has standard deviation at most 1 after doubling; 5/√N is five of the mean's.
  EXPECT_LT(study.distances().back(), 5 / std::sqrt(4096.0));
  EXPECT_GT(study.distances().front(), 0.1);
}

TEST(DropoutStudy, SumsTheRowsOfEachMask) {
  const Model m = dropped_model();
  DropoutStudy study = study_of(m, 0, 0);
  study.advance(3);
  ASSERT_EQ(study.row_sums().size(), 3u);
  const arma::vec expected = arma::sum(*attend(m, 0).at(Stage::dropped_weights, 0), 1);  // of the first mask
  EXPECT_TRUE(arma::approx_equal(study.row_sums()[0], expected, "absdiff", 0));
}

TEST(DropoutStudy, InPortionsEqualsOneGo) {
  DropoutStudy portions = study_of(dropped_model(DropoutStream::mkl), 1, 1);
  DropoutStudy once = portions;
  for (const std::size_t count : {1, 7, 0, 12}) portions.advance(count);
  once.advance(20);
  EXPECT_EQ(portions.distances(), once.distances());
}

TEST(DropoutStudy, InEvaluationDropsNothing) {
  Model m = dropped_model();
  m.dropout.training = false;
  DropoutStudy study = study_of(m, 0, 0);
  study.advance(4);
  EXPECT_LT(study.distances().back(), 1e-15);  // but for the rounding of a sum of four
}

TEST(DroppedOnes, KeepWhatPyTorchKeepsOfTen) {
  const support::GeneratorFile file = support::read_generator_file("seed123");
  std::size_t compared = 0;
  for (const support::Draws& op : file.ops) {
    if (op.name != "dropout_p0.5_10" && op.name != "dropout_mkl_p0.5_10") continue;
    Dropout dropout;
    dropout.rate = 0.5;
    dropout.seed = file.seed;
    dropout.stream = op.name == "dropout_p0.5_10" ? DropoutStream::mt19937 : DropoutStream::mkl;
    const arma::rowvec ones = dropped_ones(dropout, 10);
    ASSERT_EQ(op.kept_bits.size(), 10u);
    for (std::size_t k = 0; k < 10; ++k)
      EXPECT_EQ(ones[k], op.kept_bits[k] == '1' ? 2.0 : 0.0) << op.name << k;
    ++compared;
  }
  EXPECT_EQ(compared, 2u);
}

}  // namespace
}  // namespace core::attention
