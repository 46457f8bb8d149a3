#pragma once

#include <cstdint>
#include <vector>

#include "core/base/draw_op.hpp"
#include "core/editing/edit.hpp"

namespace core::editing {

/// Where the numbers of a whole matrix come from.
enum class FillRule { zeros, ones, identity, rand, randn, linear, embedding };

/// The most numbers that may be drawn before the ones that are wanted.
constexpr std::size_t most_numbers_before = 10'000'000;

/// What a matrix is filled with; seed and ops before it count for rules that draw.
struct Fill {
  FillRule rule = FillRule::zeros;
  std::uint64_t seed = 123;
  std::vector<random::DrawOp> before;  ///< drawn after the same seed and thrown away
  bool draws() const { return rule > FillRule::identity; }
};

/// Numbers for the matrix at a place, which the model must have, in its shape.
///
/// FillRule::linear gives the first values of the nn.Linear that the matrix belongs to: a bias is drawn after
/// the layer's weight; embeddings are taken for a weight of rows → columns.
arma::mat filled(const attention::Model& model, MatrixPlace place, const Fill& fill);

}  // namespace core::editing
