#include "core/attention/fast/projecting.hpp"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <cmath>

namespace core::attention::fast {
namespace {

constexpr std::size_t small = 4096;  // below so many multiplications a call of BLAS costs more than it saves

/// y = weightᵀ·xᵀ + bias for tokens first … end − 1: d_out numbers a token, token after token.
void project_tokens(const arma::mat& x, const Linear& linear, std::size_t first, std::size_t end, double* y) {
  const arma::mat& w = linear.weight;
  const std::size_t n = end - first, d_in = w.n_rows, d_out = w.n_cols;
  if (n * d_in * d_out < small) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < d_out; ++k) {
        double sum = 0;
        for (std::size_t c = 0; c < d_in; ++c) sum += x.at(first + i, c) * w.at(c, k);
        y[i * d_out + k] = sum;
      }
  } else {
    cblas_dgemm(CblasColMajor, CblasTrans, CblasTrans, int(d_out), int(n), int(d_in), 1, w.memptr(),
                int(d_in), x.memptr() + first, int(x.n_rows), 0, y, int(d_out));
  }
  if (!linear.bias) return;
  const double* bias = (*linear.bias)->memptr();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < d_out; ++k) y[i * d_out + k] += bias[k];
}

}  // namespace

const Linear* projection(const Model& model, Projected what) {
  if (!model.projections) return nullptr;
  const Projections& p = *model.projections;
  return what == Projected::queries ? &p.query : what == Projected::keys ? &p.key : &p.value;
}

std::vector<double> projected_row(const Model& model, std::size_t sequence, Projected what, std::size_t t) {
  const arma::mat& x = model.sequences[sequence].embeddings;
  std::vector<double> row(model.d_out());
  if (const Linear* linear = projection(model, what))
    project_tokens(x, *linear, t, t + 1, row.data());
  else
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = x.at(t, c);
  return row;
}

std::vector<double> kept_row(Heads& all, Projected what, std::size_t t) {
  std::vector<double> row;
  for (std::size_t h = 0; h < all.heads.size(); ++h)
    for (std::size_t c = 0; c < all.d_head; ++c)
      row.push_back(what == Projected::queries ? all.query(h, t)[c]
                    : what == Projected::keys  ? all.key(h, t, c)
                                               : all.value(h, t)[c]);
  return row;
}

void put_row(Heads& all, Projected what, std::size_t t, const double* row) {
  for (std::size_t h = 0; h < all.heads.size(); ++h, row += all.d_head) {
    if (what == Projected::queries)
      std::copy_n(row, all.d_head, all.query(h, t));
    else if (what == Projected::values)
      std::copy_n(row, all.d_head, all.value(h, t));
    else
      for (std::size_t c = 0; c < all.d_head; ++c) all.key(h, t, c) = row[c];
  }
}

bool project_all(Heads& all, const Model& model, std::size_t sequence, ThreadPool& threads) {
  const arma::mat& x = model.sequences[sequence].embeddings;
  const std::size_t n = all.n_tokens;
  const std::size_t shares = n * all.d_out < small ? 1 : threads.n_threads();
  const std::size_t block = std::min<std::size_t>(512, (n + shares - 1) / shares),
                    n_blocks = (n + block - 1) / block;
  std::atomic<bool> finite{true};
  const auto project_block = [&](std::size_t task) {
    const auto what = static_cast<Projected>(task % 3);
    const std::size_t first = task / 3 * block, end = std::min(n, first + block);
    std::vector<double> rows((end - first) * all.d_out);
    if (const Linear* linear = projection(model, what))
      project_tokens(x, *linear, first, end, rows.data());
    else
      for (std::size_t c = 0; c < all.d_out; ++c)
        for (std::size_t i = first; i < end; ++i) rows[(i - first) * all.d_out + c] = x.at(i, c);
    for (std::size_t i = first; i < end; ++i) put_row(all, what, i, rows.data() + (i - first) * all.d_out);
    if (what == Projected::values && !all.kernels->finite(rows.data(), rows.size())) finite = false;
  };
  if (shares == 1)
    for (std::size_t task = 0; task < 3 * n_blocks; ++task) project_block(task);
  else
    threads.run(3 * n_blocks, project_block);
  return finite;
}

void multiply_rows(const double* rows, std::size_t n, const Linear& linear, double* y, std::size_t stride) {
  const arma::mat& w = linear.weight;
  const std::size_t d_in = w.n_rows, d_out = w.n_cols;
  if (n * d_in * d_out < small) {
    for (std::size_t k = 0; k < d_out; ++k)
      for (std::size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::size_t c = 0; c < d_in; ++c) sum += rows[i * d_in + c] * w.at(c, k);
        y[k * stride + i] = sum;
      }
  } else {
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, int(n), int(d_out), int(d_in), 1, rows, int(d_in),
                w.memptr(), int(d_in), 0, y, int(stride));
  }
  if (!linear.bias) return;
  for (std::size_t k = 0; k < d_out; ++k)
    for (std::size_t i = 0; i < n; ++i) y[k * stride + i] += (*linear.bias)->at(k);
}

void keep_blas_to_one_thread() {
  openblas_set_num_threads(1);
}

}  // namespace core::attention::fast
