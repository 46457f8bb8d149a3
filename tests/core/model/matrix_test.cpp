// Products of rows with matrices in every encoding, against sums in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/model/matrix.hpp"

namespace core::transformer {
namespace {

/// Returns a weight that every encoding holds exactly.
float weight_at(std::size_t output, std::size_t k) {
  return static_cast<float>(static_cast<int>((output * 31 + k * 17) % 255) - 127) / 64;
}

std::uint16_t half_bits(float number) {  // for numbers n / 64 with |n| < 128
  if (number == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::abs(number), &exponent);
  return static_cast<std::uint16_t>((number < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                                    static_cast<int>(fraction * 2048) % 1024);
}

/// Returns a row of a matrix as stored in a file.
std::vector<unsigned char> row_of(Encoding encoding, std::size_t output, std::size_t depth) {
  std::vector<unsigned char> row(row_bytes(encoding, depth));
  for (std::size_t k = 0; k < depth; ++k) {
    const float number = weight_at(output, k);
    const auto bits = std::bit_cast<std::uint32_t>(number);
    const auto bf16 = static_cast<std::uint16_t>(bits >> 16);
    const std::uint16_t f16 = half_bits(number), scale = half_bits(1 / 64.0f);
    if (encoding == Encoding::f32) std::memcpy(&row[4 * k], &number, 4);
    if (encoding == Encoding::f16) std::memcpy(&row[2 * k], &f16, 2);
    if (encoding == Encoding::bf16) std::memcpy(&row[2 * k], &bf16, 2);
    if (encoding != Encoding::q8_0) continue;
    std::memcpy(&row[k / 32 * 34], &scale, 2);
    row[k / 32 * 34 + 2 + k % 32] = static_cast<unsigned char>(static_cast<int>(number * 64));
  }
  return row;
}

/// Returns the numbers of weight_at() as a matrix in an encoding.
Matrix matrix_in(Encoding encoding, std::size_t depth, std::size_t n_outputs) {
  Matrix matrix(encoding, depth, n_outputs);
  for (std::size_t k = 0; k < matrix.n_panels(); ++k) {
    std::vector<unsigned char> rows;
    const std::size_t count = std::min(panel_width, n_outputs - k * panel_width);
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = row_of(encoding, k * panel_width + i, depth);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    matrix.set_outputs(k, rows.data(), count);
  }
  return matrix;
}

class Products : public testing::TestWithParam<Encoding> {};

/// For any number of rows, outputs and threads, a row alone or among others.
TEST_P(Products, AreThoseOfTheNumbersThatTheFileHolds) {
  constexpr std::size_t depth = 608;
  for (const std::size_t n_outputs : {7, 32, 150}) {
    const Matrix matrix = matrix_in(GetParam(), depth, n_outputs);
    std::vector<float> output(depth);
    matrix.read_output(n_outputs - 1, output.data());
    for (std::size_t k = 0; k < depth; ++k) ASSERT_EQ(output[k], weight_at(n_outputs - 1, k)) << k;
    ThreadPool one(1), two(2);
    RowBuffer alone(1, n_outputs);
    std::vector<float> bias(matrix.n_panels() * panel_width, 0.5f);
    for (const std::size_t n_rows : {1, 2, 5, 13, 40}) {
      RowBuffer x(n_rows, depth), y(n_rows, n_outputs), same(n_rows, n_outputs);
      for (std::size_t i = 0; i < n_rows; ++i)
        for (std::size_t k = 0; k < depth; ++k) x.row(i)[k] = std::sin(static_cast<float>(i * 97 + k));
      multiply(x, matrix, {bias.data()}, y.row(0), y.stride(), one);
      multiply(x, matrix, {bias.data()}, same.row(0), same.stride(), two);
      multiply(x.view().rows(n_rows - 1, 1), matrix, {bias.data()}, alone.row(0), alone.stride(), two);
      for (std::size_t j = 0; j < n_outputs; ++j) {
        double sum = 0.5;
        for (std::size_t k = 0; k < depth; ++k) sum += double(x.row(n_rows - 1)[k]) * weight_at(j, k);
        EXPECT_NEAR(y.row(n_rows - 1)[j], sum, 2e-4) << n_rows << " " << j;
        if (GetParam() != Encoding::q8_0) {
          EXPECT_EQ(alone.row(0)[j], y.row(n_rows - 1)[j]);
        }
        EXPECT_NEAR(alone.row(0)[j], sum, 2e-4);
        for (std::size_t i = 0; i < n_rows; ++i) ASSERT_EQ(same.row(i)[j], y.row(i)[j]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, Products,
                         testing::Values(Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0),
                         [](const auto& of) {
                           return std::string(std::array{"f32", "f16", "bf16", "q8_0"}[int(of.param)]);
                         });

/// For every register width and encoding.
TEST(Kernels, AgreeWithEachOther) {
  constexpr std::size_t depth = 96, n_rows = 14, n_panels = 3;
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0}) {
    const Matrix matrix = matrix_in(encoding, depth, n_panels * panel_width);
    RowBuffer x(n_rows, depth);
    for (std::size_t i = 0; i < n_rows; ++i)
      for (std::size_t k = 0; k < depth; ++k) x.row(i)[k] = std::cos(static_cast<float>(i * 31 + k));
    std::vector<arma::fmat> products, activated, weights;
    for (const ModelKernels* kernels : supported_kernels()) {
      RowBuffer y(n_rows, n_panels * panel_width);
      kernels->product({x.row(0), x.stride(), n_rows, matrix.panel(0), encoding, depth, nullptr, y.row(0),
                        y.stride(), 0, n_panels});
      products.push_back(y.view().matrix());
      for (std::size_t i = 0; i < n_rows; ++i)
        kernels->activate(y.row(i), nullptr, y.width(), formats::checkpoints::Activation::gelu_erf);
      activated.push_back(y.view().matrix());
      for (std::size_t i = 0; i < n_rows; ++i) kernels->softmax(y.row(i), i, 40 + i, y.width(), 0.25f);
      weights.push_back(y.view().matrix());
      EXPECT_NEAR(arma::accu(weights.back()), n_rows, 1e-4) << kernels->name;
    }
    for (const auto* all : {&products, &activated, &weights})
      for (const arma::fmat& each : *all)
        EXPECT_TRUE(arma::approx_equal(each, all->front(), "absdiff", 2e-4)) << int(encoding);
  }
}

/// Infinite, subnormal and other numbers of float16.
TEST(Kernels, WidenEveryFloat16) {
  std::vector<std::uint16_t> halves(panel_width * 2048);
  for (std::size_t k = 0; k < halves.size(); ++k) halves[k] = static_cast<std::uint16_t>(k);
  std::vector<float> widened(halves.size());
  for (const ModelKernels* kernels : supported_kernels()) {
    kernels->widen(reinterpret_cast<const unsigned char*>(halves.data()), Encoding::f16, 0, 2048,
                   widened.data());
    for (std::size_t k = 0; k < halves.size(); ++k) {
      const int exponent = (k >> 10) & 31, fraction = k & 1023;
      const float sign = k & 0x8000 ? -1 : 1;
      const float expected = exponent == 31 ? sign * (fraction ? NAN : INFINITY)
                             : exponent     ? sign * std::ldexp(1024.0f + fraction, exponent - 25)
                                            : sign * std::ldexp(static_cast<float>(fraction), -24);
      const bool is_same = std::isnan(expected) ? std::isnan(widened[k]) : widened[k] == expected;
      ASSERT_TRUE(is_same) << kernels->name << " " << k << ": " << widened[k] << " for " << expected;
    }
  }
}

TEST(SharedRows, GrowWithoutChangingWhatOthersShare) {
  const auto row = [](float number) { return RowBuffer(arma::fmat(1, 3).fill(number)); };
  SharedRows first;
  first.append(row(1)), first.append(row(2));
  SharedRows left = first, right = first;
  left.append(row(3)), right.append(row(4)), left.append(row(5));
  const arma::fmat expected_left{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {5, 5, 5}},
      expected_right{{1, 1, 1}, {2, 2, 2}, {4, 4, 4}};
  EXPECT_TRUE(arma::approx_equal(left.matrix(), expected_left, "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(right.matrix(), expected_right, "absdiff", 0));
  EXPECT_EQ(first.n_rows(), 2u);
}

}  // namespace
}  // namespace core::transformer
