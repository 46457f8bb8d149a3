#pragma once

#include <armadillo>

#include "core/base/thread_pool.hpp"

namespace core::transformer {

/// x·W, its columns shared among threads: n_tokens × d_out in float32.
arma::fmat product(const arma::fmat& x, const arma::fmat& weight, ThreadPool& pool);

/// target(rows × columns, with target_stride between columns) = factor · op(a)·op(b), of matrices that lie
/// column after column with a stride each; on the caller's thread.
struct Operand {
  const float* numbers;
  std::size_t stride;
  bool transposed = false;
};
void multiply(const Operand& a, const Operand& b, std::size_t n_rows, std::size_t depth,
              std::size_t n_columns, float factor, float* target, std::size_t target_stride);

}  // namespace core::transformer
