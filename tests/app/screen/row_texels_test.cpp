#include "app/screen/row_texels.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/pictures.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::render::ColorMap;
using app::render::has_rows;
using app::render::Part;
using app::render::Picture;
using app::render::RowTexels;
using app::render::Texels;
using core::attention::fast::HeadChange;

/// Weights as the engine keeps them, and the same as a matrix.
struct Weights {
  std::size_t n;
  std::vector<double> cells, largest, sums;
  arma::mat visible;

  Weights(support::Random& random, std::size_t n_tokens)
      : n(n_tokens), cells(n * n), largest(n), sums(n), visible(support::zeros_and_ones(random, n, n)) {
    for (double& cell : cells) cell = support::number(random);
    for (double& number : largest) number = support::number(random);
    for (double& sum : sums) sum = 4 + std::abs(support::number(random));
  }
  arma::mat matrix() const {
    arma::mat m(n, n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) m(i, j) = std::exp(cells[i * n + j] - largest[i]) / sums[i];
    return m;
  }
  Picture picture(int pixels) const {
    Picture p;
    p.cells.rows = {cells.data(), n, n, n, largest.data(), sums.data(), support::exponentials};
    p.map = ColorMap::weights, p.low = 0, p.high = 1;
    p.cells.visible = &visible;
    p.part.right = p.part.bottom = static_cast<double>(n);
    p.width = p.height = pixels;
    return p;
  }
};

bool equal(const Texels& a, const Texels& b) {
  return a.rows == b.rows && a.columns == b.columns && a.pooling.rows == b.pooling.rows &&
         a.pooling.columns == b.pooling.columns && a.data == b.data;
}

Texels of_the_matrix(const Weights& w, const Picture& p) {
  return support::texels_of_matrix(w.matrix(), p);
}

TEST(RowTexels, AreThoseOfTheSameMatrix) {
  support::Random random(41);
  const Weights w(random, 37);
  for (const int pixels : {37, 100, 12, 5}) {
    core::ThreadPool threads(3);
    RowTexels rows(threads);
    rows.renew(w.picture(pixels), nullptr);
    EXPECT_TRUE(equal(rows.texels(), of_the_matrix(w, w.picture(pixels)))) << pixels;
  }
}

TEST(RowTexels, AreAfterEditsThoseOfTheEditedMatrix) {
  support::Random random(42);
  for (const int pixels : {60, 13}) {
    Weights w(random, 37);
    core::ThreadPool threads(3);
    RowTexels rows(threads);
    Picture last = w.picture(pixels);
    rows.renew(last, nullptr);
    for (int edit = 0; edit < 30; ++edit) {
      const std::size_t token = support::below(random, w.n);
      const HeadChange change{false, {token}, token, token};
      for (std::size_t k = 0; k < w.n; ++k) {
        w.cells[token * w.n + k] = support::number(random);
        w.cells[k * w.n + token] = support::number(random);
      }
      for (std::size_t i = token; i < w.n; ++i) w.sums[i] *= 1.1;
      Picture now = w.picture(pixels);
      now.cells.version = last.cells.version + 1;
      now.cells.change = &change;
      rows.renew(now, &last);
      now.cells.change = nullptr;
      last = now;
      ASSERT_TRUE(equal(rows.texels(), of_the_matrix(w, now))) << pixels << " " << edit;
    }
  }
}

TEST(RowTexels, AreAllMadeAnewWhenAVersionWasMissed) {
  support::Random random(43);
  Weights w(random, 20);
  core::ThreadPool threads(3);
  RowTexels rows(threads);
  const Picture first = w.picture(10);
  rows.renew(first, nullptr);
  for (double& cell : w.cells) cell -= 1;
  const HeadChange small{false, {3}, {}, w.n};
  Picture later = w.picture(10);
  later.cells.version = first.cells.version + 2, later.cells.change = &small;
  rows.renew(later, &first);
  EXPECT_TRUE(equal(rows.texels(), of_the_matrix(w, later)));
}

TEST(RowTexels, FollowTheRangeAndTheMaskWhileTheNumbersStay) {
  support::Random random(44);
  Weights w(random, 20);
  core::ThreadPool threads(3);
  RowTexels rows(threads);
  const Picture first = w.picture(10);
  rows.renew(first, nullptr);
  Picture wider = first;
  wider.high = 2;
  rows.renew(wider, &first);
  EXPECT_TRUE(equal(rows.texels(), of_the_matrix(w, wider)));
  w.visible.zeros();
  Picture masked = wider;
  masked.cells.flags_version = 1;
  rows.renew(masked, &wider);
  EXPECT_TRUE(equal(rows.texels(), of_the_matrix(w, masked)));
}

TEST(RowTexels, TellWeightsFromTheScoresOfWhichTheyAreMade) {
  support::Random random(47);
  const Weights w(random, 20);
  const Picture weights = w.picture(10);
  Picture scores = weights;
  scores.cells.rows = {w.cells.data(), w.n, w.n, w.n};
  core::ThreadPool threads(3);
  RowTexels fresh(threads);
  fresh.renew(scores, nullptr);
  RowTexels rows(threads);
  rows.renew(weights, nullptr);
  EXPECT_FALSE(equal(rows.texels(), fresh.texels()));
  rows.renew(scores, &weights);
  EXPECT_TRUE(equal(rows.texels(), fresh.texels()));
  rows.renew(weights, &scores);
  EXPECT_TRUE(equal(rows.texels(), of_the_matrix(w, weights)));
}

TEST(RowTexels, SayWhereTheyLookOtherwise) {
  support::Random random(46);
  Weights w(random, 20);
  for (double& cell : w.cells) cell = 0.5;
  for (double& number : w.largest) number = 1;
  for (double& sum : w.sums) sum = 1;
  w.visible.ones();
  core::ThreadPool threads(3);
  RowTexels rows(threads);
  const Picture first = w.picture(10);
  EXPECT_EQ(rows.renew(first, nullptr), (std::vector{Part{0, 0, 10, 10}}));
  Picture second = first;
  ++second.cells.version;
  const HeadChange row{false, {7}, {}, w.n};
  second.cells.change = &row;
  EXPECT_TRUE(rows.renew(second, &first).empty()) << "the same numbers";
  Picture third = second;
  ++third.cells.version;
  w.cells[7 * w.n + 4] = w.cells[7 * w.n + 9] = 0.75;
  EXPECT_EQ(rows.renew(third, &second), (std::vector{Part{0, 0, 8, 8}})) << "the tile of both cells";
}

TEST(RowTexels, AreForWholePicturesOnly) {
  support::Random random(45);
  const Weights w(random, 20);
  Picture p = w.picture(10);
  EXPECT_TRUE(has_rows(p));
  p.part.left = 1;
  EXPECT_FALSE(has_rows(p));
  EXPECT_FALSE(has_rows(Picture{}));
}

}  // namespace
