// Shared matrices, rotary positions and the thread pool.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/least_squares.hpp"
#include "core/base/positions.hpp"
#include "core/base/shared_matrix.hpp"
#include "core/base/thread_pool.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

using support::Random;

TEST(SharedMatrix, CopiesItsNumbersOnlyWhenAnotherSharesThem) {
  SharedMatrix a = arma::mat{{1, 2}};
  const double* numbers = a->memptr();
  a.edit()(0, 0) = 3;
  EXPECT_EQ(a->memptr(), numbers);
  const SharedMatrix b = a;
  a.edit()(0, 0) = 4;
  EXPECT_EQ((*b)(0, 0), 3);
  EXPECT_FALSE(a.shares_with(b));
}

TEST(SharedMatrix, ComparesBits) {
  EXPECT_NE(SharedMatrix(arma::mat{{1, 0.0}}), SharedMatrix(arma::mat{{1, -0.0}}));
  EXPECT_EQ(SharedMatrix(arma::mat{{1, NAN}}), SharedMatrix(arma::mat{{1, NAN}}));
  EXPECT_NE(SharedMatrix(arma::mat(1, 2, arma::fill::zeros)),
            SharedMatrix(arma::mat(2, 1, arma::fill::zeros)));
}

TEST(SharedMatrix, SetOneByOneIsWhatAMatrixWouldBe) {
  Random random(3);
  std::vector<SharedMatrix> found{arma::mat(7, 9, arma::fill::zeros)};
  std::vector<arma::mat> expected{*found[0]};
  for (int k = 0; k < 400; ++k) {
    const std::size_t from = random() % found.size(), row = random() % 7, column = random() % 9;
    const double number = static_cast<double>(random() % 1000) - 500;
    SharedMatrix next = found[from];
    arma::mat plain = expected[from];
    next.set(row, column, number);
    plain(row, column) = number;
    if (random() % 8 == 0) *next;  // now and then reads the whole matrix
    ASSERT_EQ(next.at(row, column), number);
    ASSERT_EQ(next.row(row)(column), number);
    ASSERT_EQ(next.column(column)(row), number);
    ASSERT_EQ(next.largest_magnitude(), arma::abs(plain).max());
    found.push_back(next);
    expected.push_back(plain);
  }
  for (std::size_t k = 0; k < found.size(); ++k) {
    for (std::size_t row = 0; row < 7; ++row)
      for (std::size_t column = 0; column < 9; ++column)
        ASSERT_EQ(found[k].at(row, column), expected[k](row, column)) << k;
    ASSERT_TRUE(arma::approx_equal(*found[k], expected[k], "absdiff", 0)) << k;
    const std::size_t other = random() % found.size();
    ASSERT_EQ(found[k] == found[other], arma::approx_equal(expected[k], expected[other], "absdiff", 0))
        << k << ", " << other;
  }
}

TEST(SharedMatrix, CopyOfWhichOneNumberWasSetHoldsLittleMemoryOfItsOwn) {
  const SharedMatrix original = arma::mat(100, 100, arma::fill::zeros);
  const auto held = [](const std::vector<SharedMatrix>& matrices) {
    std::map<const void*, std::size_t> pieces;
    for (const SharedMatrix& m : matrices)
      m.visit_memory([&](const void* address, std::size_t bytes) { pieces[address] = bytes; });
    std::size_t all = 0;
    for (const auto& [address, bytes] : pieces) all += bytes;
    return all;
  };
  std::vector<SharedMatrix> copies{original};
  for (std::size_t k = 0; k < 50; ++k) {
    copies.push_back(copies.back());
    copies.back().set(k, k, 1);
  }
  EXPECT_GE(held({original}), 80'000u);
  EXPECT_LE(held(copies), 2 * held({original}));
  EXPECT_EQ(copies.back()->at(3, 3), 1);
  EXPECT_GE(held({copies.back()}), 160'000u);  // a matrix that was read whole also holds its own numbers
}

TEST(SharedMatrix, KnowsWhetherItIsFiniteAfterEveryEdit) {
  SharedMatrix a = arma::mat{{1, 2}, {3, 4}};
  EXPECT_TRUE(a.is_finite());
  SharedMatrix b = a;
  b.set(1, 1, NAN);
  EXPECT_FALSE(b.is_finite());
  EXPECT_TRUE(a.is_finite());
  SharedMatrix c = b;
  c.set(1, 1, 5);
  EXPECT_TRUE(c.is_finite());
  a.edit()(0, 0) = INFINITY;
  EXPECT_FALSE(a.is_finite());
  SharedMatrix d = a;
  d.set(0, 0, 1);
  EXPECT_TRUE(d.is_finite());
}

TEST(SharedMatrix, RefusesACellThatItDoesNotHave) {
  SharedMatrix a = arma::mat{{1, 2}};
  EXPECT_THROW(a.set(1, 0, 3), std::out_of_range);
  EXPECT_THROW(a.set(0, 2, 3), std::out_of_range);
  EXPECT_EQ(a, SharedMatrix(arma::mat{{1, 2}}));
}

TEST(SharedMatrix, CanBeReadByTwoThreadsAtOnce) {
  SharedMatrix a = arma::mat(200, 200, arma::fill::zeros);
  for (int round = 0; round < 50; ++round) {
    SharedMatrix b = a;
    b.set(7, 7, round);
    double one = 0, other = 0;
    std::thread reader([&, copy = b] { one = arma::accu(*copy) + (copy.is_finite() ? 0 : 1); });
    other = arma::accu(*b) + (b.is_finite() ? 0 : 1);
    reader.join();
    ASSERT_EQ(one, round);
    ASSERT_EQ(other, round);
    a = b;
  }
}

TEST(KnownDifference, IsTheCellThatWasSet) {
  SharedMatrix a = arma::mat{{1, 2}, {3, 4}};
  SharedMatrix b = a;
  EXPECT_FALSE(known_difference(a, b));
  b.set(1, 0, 7);
  ASSERT_TRUE(known_difference(a, b));
  EXPECT_EQ(known_difference(a, b)->row, 1u);
  EXPECT_EQ(known_difference(b, a)->column, 0u);
  EXPECT_EQ((*b)(1, 0), 7);
  EXPECT_EQ((*a)(1, 0), 3);
}

TEST(KnownDifference, IsNothingWhenThereAreSeveralOrNobodyKnows) {
  SharedMatrix a = arma::mat{{1, 2}}, b = a, c = a;
  b.set(0, 0, 7);
  b.edit()(0, 1) = 8;
  EXPECT_FALSE(known_difference(a, b));
  c.set(0, 0, 7);
  c.set(0, 1, 9);
  EXPECT_FALSE(known_difference(a, c));
  c.set(0, 0, 1);
  ASSERT_TRUE(known_difference(a, c));
  EXPECT_EQ(known_difference(a, c)->column, 1u);
  SharedMatrix d = c;
  d.set(0, 0, 3);
  c.edit()(0, 1) = 3;
  EXPECT_FALSE(known_difference(c, d));
  EXPECT_FALSE(known_difference(SharedMatrix(arma::mat{{1, 2}}), d));
}

}  // namespace
}  // namespace core::attention

namespace core::positions {
namespace {

Scaling scaling_of(ScalingRule rule, double factor, double original) {
  Scaling scaling;
  scaling.rule = rule, scaling.factor = factor, scaling.original = original;
  return scaling;
}

/// Expected values: ROPE_INIT_FUNCTIONS of transformers 5, in float32.
TEST(RotaryScaling, HasTheFrequenciesOfTransformers) {
  const auto expect = [](const Scaling& scaling, double base, std::int64_t length,
                         const std::vector<double>& expected) {
    Rotary rotary;
    rotary.base = base, rotary.scaling = scaling;
    const std::vector<double> got = frequencies(at_length(rotary, 16, length), 16);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t p = 0; p < got.size(); ++p)
      EXPECT_NEAR(got[p] / expected[p], 1, 2e-6) << "pair " << p << ", " << length << " tokens";
  };
  Scaling yarn = scaling_of(ScalingRule::yarn, 4, 32);
  yarn.high = yarn_beta_fast;
  expect(yarn, 10000, 9,
         {1.0, 0.197642356, 0.0250000004, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012,
          7.90569466e-05});
  yarn.factor = 32, yarn.original = 4096, yarn.truncate = false;  // as gpt-oss
  expect(yarn, 150000, 9,
         {1.0, 0.225418001, 0.0508132726, 0.00679495931, 0.000456483918, 1.8188337e-05, 4.09997847e-06,
          9.24208962e-07});
  yarn.factor = 40, yarn.truncate = true, yarn.high = 16, yarn.low = 2;
  expect(yarn, 10000, 9,
         {1.0, 0.316227764, 0.100000001, 0.0316227786, 0.00674999924, 0.00110679714, 2.49999994e-05,
          7.90569447e-06});
  const Scaling dynamic = scaling_of(ScalingRule::dynamic, 4, 128);
  for (const std::int64_t length : {100, 128})
    expect(dynamic, 10000, length,
           {1.0, 0.316227764, 0.100000001, 0.0316227786, 0.00999999978, 0.00316227786, 0.00100000005,
            0.000316227786});
  expect(dynamic, 10000, 200,
         {1.0, 0.267223001, 0.0714081228, 0.0190818924, 0.00509912008, 0.00136260199, 0.000364118576,
          9.730085e-05});
  Scaling longrope = scaling_of(ScalingRule::longrope, 1, 32);
  longrope.factors = arma::mat{{1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0}, {1, 2, 3, 4, 6, 8, 12, 16}};
  expect(longrope, 10000, 32,
         {1.0, 0.301169306, 0.0909090936, 0.0263523124, 0.0076923077, 0.00210818532, 0.000588235271,
          0.000158113893});
  expect(longrope, 10000, 33,
         {1.0, 0.158113882, 0.0333333351, 0.00790569466, 0.00166666671, 0.000395284733, 8.33333324e-05,
          1.97642366e-05});
  EXPECT_NEAR(yarn_attention_factor(4), 1.138629436111989, 1e-15);
  EXPECT_NEAR(yarn_attention_factor(40, 0.707) / yarn_attention_factor(40, 0.5), 1.064468903941252, 1e-15);
}

TEST(RotaryScaling, LengthensQueriesAndKeysByTheAttentionFactor) {
  Rotary rotary;
  rotary.scaling = scaling_of(ScalingRule::yarn, 4, 32);
  rotary.dimensions = 2;
  const arma::rowvec query{3, 4, 1}, key{1, 0, 2};
  const double plain = rotary_dot(rotary, query, key, 2, 2).score;
  EXPECT_NEAR(plain, 3 + 2, 1e-12);
  rotary.scaling.attention = 1.5;
  EXPECT_NEAR(rotary_dot(rotary, query, key, 2, 2).score, 2.25 * 3 + 2, 1e-12) << "the last column stays";
  EXPECT_NEAR(arma::norm(rotate(arma::mat(query), 7, rotary).head_cols(2)), 7.5, 1e-12);
  rotary.scaling.rule = ScalingRule::linear;
  EXPECT_EQ(attention_factor(rotary), 1);
}

TEST(RotaryDot, TurnsAsThePaperSays) {
  Rotary rotary;
  rotary.base = 100;
  const arma::rowvec query{1, 0, 0, 2}, key{0, 1, 1, 0};
  // Pairs (0, 2) at 1 radian and (1, 3) at 0.1 radian per position; distance 3 − 1.
  const RotaryDot now = rotary_dot(rotary, query, key, 3, 1);
  ASSERT_EQ(now.pairs.size(), 2u);
  EXPECT_EQ(now.pairs[1].columns.second, 3u);
  EXPECT_DOUBLE_EQ(now.pairs[0].query_angle, 3);
  EXPECT_DOUBLE_EQ(now.pairs[1].key_angle, 0.1);
  // q = (1, 0), k = (0, 1): R(3)q · R(1)k = cos(3 − 1 − π/2) = sin(2); q = (0, 2), k = (1, 0): −2·sin(0.2).
  EXPECT_NEAR(now.pairs[0].share, 0.9092974268256817, 1e-15);
  EXPECT_NEAR(now.pairs[1].share, -0.39733866159012243, 1e-15);
  EXPECT_NEAR(now.score, 0.9092974268256817 - 0.39733866159012243, 1e-15);
  EXPECT_EQ(now.unrotated, 0);
}

TEST(RotaryDot, DependsOnTheDistanceAlone) {
  Rotary rotary;
  rotary.dimensions = 4, rotary.pairs = Pairs::neighbors;
  const arma::rowvec query{0.5, -1, 2, 0.25, 3}, key{1, 0.75, -0.5, 2, 0.5};
  const double score = rotary_dot(rotary, query, key, 7, 2).score;
  EXPECT_NEAR(rotary_dot(rotary, query, key, 105, 100).score, score, 1e-12);
  EXPECT_GT(std::fabs(rotary_dot(rotary, query, key, 8, 2).score - score), 0.01);
  EXPECT_EQ(rotary_dot(rotary, query, key, 7, 2).unrotated, 1.5) << "the last column stays";
}

TEST(RotaryDot, OfARotatedRowIsThatOfTheEngine) {
  for (const bool halves : {true, false}) {
    Rotary rotary;
    rotary.pairs = halves ? Pairs::halves : Pairs::neighbors;
    rotary.scaling = {ScalingRule::linear, 2};
    const arma::rowvec query{0.5, -1, 2, 0.25}, key{1, 0.75, -0.5, 2};
    const double score = arma::dot(rotate(arma::mat(query), 5, rotary), rotate(arma::mat(key), 3, rotary));
    EXPECT_NEAR(rotary_dot(rotary, query, key, 5, 3).score, score, 1e-14);
  }
}

}  // namespace
}  // namespace core::positions

namespace core {
namespace {

TEST(ThreadPool, DoesEveryTaskOnceHoweverManyThereAreAndHoweverFastTheyFollow) {
  for (const std::size_t n_threads : {1, 2, 3, 8}) {
    ThreadPool pool(n_threads);
    for (std::size_t round = 0; round < 3000; ++round) {
      std::vector<int> times(round % 17, 0);
      pool.run(times.size(), [&](std::size_t task) { ++times.at(task); });
      EXPECT_EQ(times, std::vector<int>(round % 17, 1)) << n_threads << " threads, round " << round;
    }
  }
}

TEST(ThreadPool, DoesSmallWorkOnTheThreadOfItsCaller) {
  ThreadPool pool(4);
  pool.run(
      100, ThreadPool::min_parallel_multiplications - 1,
      [caller = std::this_thread::get_id()](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ThreadPool, ThrowsToItsCallerWhatATaskThrewOnceNoneIsUnderWayAndGoesOn) {
  for (const std::size_t n_threads : {1, 2, 4}) {
    ThreadPool pool(n_threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> begun{0}, under_way{0};
      const auto task = [&](std::size_t) {
        ++under_way;
        const bool fails = ++begun == 5;
        if (!fails) std::this_thread::sleep_for(std::chrono::microseconds(20));
        --under_way;
        if (fails) throw std::bad_alloc();
      };
      EXPECT_THROW(pool.run(100'000, task), std::bad_alloc);
      EXPECT_EQ(under_way, 0);
      EXPECT_LT(begun, 100'000) << "the others are not begun";
    }
    std::vector<int> times(50, 0);
    pool.run(times.size(), [&](std::size_t k) { ++times[k]; });
    EXPECT_EQ(times, std::vector<int>(50, 1));
  }
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::vector<int>> times(4, std::vector<int>(40, 0));
  {
    std::vector<std::jthread> callers;
    for (auto& own : times)
      callers.emplace_back([&pool, &own] {
        for (int round = 0; round < 2000; ++round) pool.run(own.size(), [&](std::size_t k) { ++own[k]; });
      });
  }
  for (const auto& own : times) EXPECT_EQ(own, std::vector<int>(40, 2000));
}

TEST(ThreadPool, ServesATaskThatHasTasksItself) {
  ThreadPool pool(3);
  std::vector<std::vector<int>> times(10, std::vector<int>(10, 0));
  pool.run(times.size(),
           [&](std::size_t i) { pool.run(times[i].size(), [&, i](std::size_t j) { ++times[i][j]; }); });
  EXPECT_EQ(times, std::vector<std::vector<int>>(10, std::vector<int>(10, 1)));
}

}  // namespace
}  // namespace core

namespace core {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity(),
                 undefined = std::numeric_limits<double>::quiet_NaN();

arma::mat hilbert(std::size_t n) {
  arma::mat h(n, n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) h(i, j) = 1.0 / static_cast<double>(i + j + 1);
  return h;
}

TEST(LeastSquares, LeaveAResidualThatNoColumnExplains) {
  // A line through (0, 1), (1, 3), (2, 4), (3, 4): 1.5 + x, by the normal equations; and its double.
  const arma::mat a{{1, 0}, {1, 1}, {1, 2}, {1, 3}}, b{{1, 2}, {3, 6}, {4, 8}, {4, 8}};
  const auto x = least_squares(a, b);
  ASSERT_TRUE(x);
  EXPECT_TRUE(arma::approx_equal(*x, arma::mat{{1.5, 3}, {1, 2}}, "absdiff", 1e-14));
  arma::arma_rng::set_seed(1);
  const arma::mat tall(200, 12, arma::fill::randn), y(200, 3, arma::fill::randn);
  const auto solved = least_squares(tall, y);
  ASSERT_TRUE(solved);
  EXPECT_LT(arma::abs(tall.t() * (tall * *solved - y)).max(), 1e-12);
}

TEST(LeastSquares, SolveWhatIsSquareWithTheErrorThatItsConditionAllows) {
  const arma::mat h = hilbert(8), ones(8, 1, arma::fill::ones);
  const auto x = least_squares(h, h * ones);
  ASSERT_TRUE(x);
  EXPECT_LT(arma::abs(*x - ones).max(), 1e-5);  // condition 1.5e10
  const auto huge = least_squares(arma::mat{{3e200, 0}, {4e200, 1e-200}}, arma::vec{3e200, 4e200});
  EXPECT_FALSE(huge) << "its columns are too unequal";
  EXPECT_TRUE(least_squares(arma::vec{3e200, 4e200}, arma::vec{3e200, 4e200}));
}

TEST(LeastSquares, AreNoneOfDependentTooFewOrMeaninglessNumbers) {
  EXPECT_FALSE(least_squares(arma::mat{{1, 2}, {2, 4}, {3, 6}}, arma::vec{1, 2, 3}));
  EXPECT_FALSE(least_squares(arma::mat(arma::rowvec{1, 2}), arma::vec{1}));
  EXPECT_FALSE(least_squares(arma::vec{0, 0}, arma::vec{1, 1}));
  EXPECT_FALSE(least_squares(arma::vec{1, undefined}, arma::vec{1, 1}));
  EXPECT_FALSE(least_squares(arma::vec{1, 1}, arma::vec{endless, 1}));
  EXPECT_FALSE(least_squares(hilbert(14), arma::mat(14, 1, arma::fill::ones)));
}

TEST(ConditionNumber, IsTheRatioOfTheSingularValues) {
  EXPECT_EQ(condition_number(arma::diagmat(arma::vec{4, -0.5, 2})), 8);
  EXPECT_NEAR(condition_number(arma::mat{{1, 1}, {0, 1}}), 2.618033988749895,
              1e-14);                                                    // the golden ratio squared
  EXPECT_NEAR(condition_number(hilbert(5)) / 476607.25024259, 1, 1e-9);  // Todd 1954
  EXPECT_EQ(condition_number(arma::mat{{1, 0}, {1, 0}}), endless);
}

}  // namespace
}  // namespace core
