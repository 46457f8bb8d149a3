#include "core/model/products.hpp"

#include <cblas.h>

#include <algorithm>

namespace core::transformer {

void multiply(const Operand& a, const Operand& b, std::size_t n_rows, std::size_t depth,
              std::size_t n_columns, float factor, float* target, std::size_t target_stride) {
  const auto turned = [](const Operand& operand) { return operand.transposed ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasColMajor, turned(a), turned(b), static_cast<blasint>(n_rows),
              static_cast<blasint>(n_columns), static_cast<blasint>(depth), factor, a.numbers,
              static_cast<blasint>(a.stride), b.numbers, static_cast<blasint>(b.stride), 0, target,
              static_cast<blasint>(target_stride));
}

arma::fmat product(const arma::fmat& x, const arma::fmat& weight, ThreadPool& pool) {
  arma::fmat result(x.n_rows, weight.n_cols, arma::fill::none);
  if (result.empty()) return result;
  constexpr std::size_t narrowest = 64;
  const std::size_t n_parts = std::clamp<std::size_t>(weight.n_cols / narrowest, 1,
                                                      x.n_rows > 1 ? 4 * pool.n_threads() : pool.n_threads());
  pool.run(n_parts, x.n_elem * weight.n_cols, [&](std::size_t part) {
    const std::size_t from = weight.n_cols * part / n_parts, to = weight.n_cols * (part + 1) / n_parts;
    if (from == to) return;
    if (x.n_rows == 1) {  // a product of matrices would copy the weights first, which are all the work
      cblas_sgemv(CblasColMajor, CblasTrans, static_cast<blasint>(weight.n_rows),
                  static_cast<blasint>(to - from), 1, weight.colptr(from),
                  static_cast<blasint>(weight.n_rows), x.memptr(), 1, 0, result.colptr(from), 1);
      return;
    }
    multiply({x.memptr(), x.n_rows}, {weight.colptr(from), weight.n_rows}, x.n_rows, x.n_cols, to - from, 1,
             result.colptr(from), result.n_rows);
  });
  return result;
}

}  // namespace core::transformer
