#include "core/attention/fast/projecting.hpp"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/attention/fast/panels.hpp"
#include "core/attention/matrices.hpp"

namespace core::attention::fast {
namespace {

/// Puts a tile of queries, keys or values in the heads that own its columns.
void put_tile(Heads& all, Projected what, const ProductTile& tile) {
  const auto numbers = [&](std::size_t column) { return tile.numbers + column * tile.stride; };
  for (std::size_t column = 0; column < tile.n_columns;) {
    const std::size_t h = (tile.first_column + column) / all.d_head,
                      c = (tile.first_column + column) % all.d_head;
    const std::size_t n = std::min(all.d_head - c, tile.n_columns - column);  // in this head
    if (what == Projected::keys) {                                            // tiles begin where panels do
      const std::size_t width = all.kernels->panel_width;
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t i = 0; i < tile.n_rows; i += width)
          std::copy_n(numbers(column + k) + i, std::min(width, tile.n_rows - i),
                      &all.key(h, tile.first_row + i, c + k));
    } else {
      for (std::size_t i = 0; i < tile.n_rows; ++i) {
        const std::size_t t = tile.first_row + i;
        double* row = (what == Projected::queries ? all.query(h, t) : all.value(h, t)) + c;
        for (std::size_t k = 0; k < n; ++k) row[k] = numbers(column + k)[i];
      }
    }
    column += n;
  }
}

/// The embeddings themselves as queries, keys and values.
bool copy_all(Heads& all, const arma::mat& x) {
  for (std::size_t i = 0; i < all.n_tokens; ++i) {
    const arma::rowvec row = x.row(i);
    for (const Projected what : {Projected::queries, Projected::keys, Projected::values})
      put_row(all, what, i, row.memptr());
  }
  return x.is_finite();
}

}  // namespace

const Linear* projection(const Model& model, Projected what) {
  constexpr std::array parts{Part::query, Part::key, Part::value};
  return find_linear(model, parts[static_cast<std::size_t>(what)]);
}

std::vector<double> projected_row(const Heads& all, const Model& model, std::size_t sequence, Projected what,
                                  std::size_t t) {
  const arma::rowvec x = model.sequences[sequence].embeddings.row(t);
  const Linear* linear = projection(model, what);
  if (linear == nullptr) return {x.begin(), x.end()};
  const arma::mat& w = linear->weight;
  std::vector<double> row(w.n_cols);
  for (std::size_t k = 0; k < row.size(); ++k)
    row[k] =
        all.kernels->dot(x.memptr(), w.colptr(k), w.n_rows) + (linear->bias ? linear->bias->at(0, k) : 0);
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
  if (!model.projections) return copy_all(all, x);
  Panels tokens(*all.kernels, x.n_rows, x.n_cols, all.panels);
  threads.run(tokens.n_panels(), x.n_elem, [&](std::size_t panel) { tokens.fill(panel, x, 0); });

  std::array<Columns, 3> weights;
  for (std::size_t k = 0; k < 3; ++k) {
    const arma::mat& w = projection(model, static_cast<Projected>(k))->weight;
    weights[k] = {w.memptr(), w.n_rows, w.n_cols};
  }
  std::atomic<bool> finite{true};
  multiply(tokens, weights, threads, [&](std::size_t k, const ProductTile& tile) {
    const auto what = static_cast<Projected>(k);
    add_bias(*projection(model, what), tile);
    put_tile(all, what, tile);
    for (std::size_t c = 0; c < tile.n_columns && what == Projected::values; ++c)
      if (!all.kernels->finite(tile.numbers + c * tile.stride, tile.n_rows)) finite = false;
  });
  return finite;
}

void add_bias(const Linear& linear, const ProductTile& tile) {
  if (!linear.bias) return;
  for (std::size_t c = 0; c < tile.n_columns; ++c) {
    const double bias = linear.bias->at(0, tile.first_column + c);
    double* numbers = tile.numbers + c * tile.stride;
    for (std::size_t i = 0; i < tile.n_rows; ++i) numbers[i] += bias;
  }
}

void keep_blas_to_one_thread() {
  openblas_set_num_threads(1);
}

}  // namespace core::attention::fast
