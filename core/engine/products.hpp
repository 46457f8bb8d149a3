#pragma once

#include <algorithm>
#include <armadillo>
#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

#include "core/base/thread_pool.hpp"
#include "core/engine/heads.hpp"
#include "core/engine/kernels.hpp"
#include "core/engine/rules.hpp"

namespace core::attention::fast {

/// Rows of a matrix in the layout in which the kernels multiply them with the columns of another: panels of
/// panel_width rows, each panel column-major.
///
/// Their memory belongs to the caller, who may use it for other data before and after; it grows as needed.
template <class Number>
class Panels {
 public:
  static constexpr std::size_t max_chunk_size = 8;

  Panels(const AttentionKernels<Number>& kernels, std::size_t n_rows, std::size_t depth,
         Buffer<Number>& memory);

  std::size_t n_rows() const { return n_rows_; }
  std::size_t depth() const { return depth_; }
  std::size_t n_panels() const { return (n_rows_ + width_ - 1) / width_; }
  std::size_t rows_of(std::size_t panel) const { return std::min(width_, n_rows_ - panel * width_); }

  /// Returns how many panels to multiply in one go, few enough to fit the L2 cache with other data.
  std::size_t chunk_size() const;

  /// Fills one panel from a matrix; panel 0 begins at row `first_row`.
  void fill(std::size_t panel, const arma::mat& matrix, std::size_t first_row);
  /// Fills one panel from contiguous rows.
  void fill(std::size_t panel, const Number* rows);

  const Number* from(std::size_t panel) const { return numbers_ + panel * width_ * depth_; }
  const AttentionKernels<Number>& kernels() const { return *kernels_; }
  std::size_t width() const { return width_; }

 private:
  const AttentionKernels<Number>* kernels_;
  std::size_t n_rows_, depth_, width_;
  Number* numbers_;
};

/// Tile of a product of panels and a matrix: some rows of a few columns.
template <class Number>
struct ProductTile {
  std::size_t first_row = 0, n_rows = 0;
  std::size_t first_column = 0, n_columns = 0;
  Number* numbers = nullptr;  ///< column-major, columns stride apart
  std::size_t stride = 0;
};

/// Columns of a matrix, stride apart, each as long as the depth of the panels.
template <class Number>
struct ColumnView {
  const Number* numbers = nullptr;
  std::size_t stride = 0, count = 0;
};

/// Multiplies panels first … end − 1 by some columns and passes every tile to take(ProductTile).
template <class Number, class Take>
void multiply(const Panels<Number>& panels, std::size_t first, std::size_t end, ColumnView<Number> columns,
              const Take& take) {
  const AttentionKernels<Number>& kernels = panels.kernels();
  const std::size_t width = panels.width(), chunk_size = kernels.panel_rows;
  const std::size_t n_rows = std::min(panels.n_rows(), end * width) - first * width;
  const std::size_t stride = (end - first) * width;
  using All = AttentionKernels<Number>;
  alignas(64) std::array<Number, All::max_panel_rows * Panels<Number>::max_chunk_size * All::max_panel_width>
      products;
  std::array<std::size_t, All::max_panel_rows> ends;
  ends.fill(n_rows);
  for (std::size_t column = 0; column < columns.count;
       column += chunk_size) {  // kept in the cache for all panels
    const std::size_t n_columns = std::min(chunk_size, columns.count - column);
    kernels.products({columns.numbers + column * columns.stride, columns.stride, panels.from(first),
                      panels.depth(), 1, ends.data(), products.data(), stride, n_columns});
    take(ProductTile<Number>{first * width, n_rows, column, n_columns, products.data(), stride});
  }
}

/// Multiplies all panels by each of several column ranges, shared among threads, and calls take(product,
/// ProductTile).
template <class Number, class Take>
void multiply(const Panels<Number>& panels, std::span<const ColumnView<Number>> products, ThreadPool& threads,
              const Take& take) {
  const std::size_t n_panels = panels.n_panels(), n_threads = threads.n_threads();
  if (n_panels == 0) return;
  const std::size_t chunk_size = std::min(panels.chunk_size(), (n_panels + n_threads - 1) / n_threads);
  const std::size_t n_blocks = (n_panels + chunk_size - 1) / chunk_size;
  std::size_t operations = 0;
  for (const ColumnView<Number>& columns : products)
    operations += panels.n_rows() * panels.depth() * columns.count;
  threads.run(products.size() * n_blocks, operations, [&](std::size_t task) {
    const std::size_t product = task % products.size(), first = task / products.size() * chunk_size;
    multiply(panels, first, std::min(n_panels, first + chunk_size), products[product],
             [&](const ProductTile<Number>& tile) { take(product, tile); });
  });
}

/// Returns the projection of queries, keys or values, or nullptr.
const Linear* projection(const Model& model, Qkv what);

/// Computes queries, keys and values of all tokens; returns false if a value vector is not finite.
template <class Number>
bool project_all(AllHeads<Number>& all, const Model& model, std::size_t sequence, ThreadPool& threads);

/// Recomputes row t of the queries of all heads, or of the keys or values of all KV heads, concatenated.
template <class Number>
std::vector<Number> projected_row(AllHeads<Number>& all, const Model& model, std::size_t sequence, Qkv what,
                                  std::size_t t);

/// Makes OpenBLAS compute each product on the calling thread, in the whole program.
void keep_blas_to_one_thread();

/// Output of all tokens, computed on request and only where contexts changed.
template <class Number>
class Output {
 public:
  void mark_all_changed() { all_ = true; }
  /// Records that contexts of rows first … end − 1 changed, in any head.
  void mark_rows_changed(std::size_t first, std::size_t end);
  /// Records that contexts of one head changed, in any row.
  void mark_head_changed(std::size_t head);

  /// Returns the output, n_tokens × d_output. Of several threads the first computes it, the others wait.
  const arma::mat& refresh(AllHeads<Number>& all, const Model& model, ThreadPool& threads);

 private:
  void recompute_rows(AllHeads<Number>& all, const Model& model, std::size_t first, std::size_t end,
                      ThreadPool& threads);
  bool add_head(AllHeads<Number>& all, const Linear& linear, ThreadPool& threads);
  void store_contexts(const AllHeads<Number>& all, std::size_t first, std::size_t end);

  std::mutex mutex_;
  bool all_ = true;
  std::size_t first_ = 0, end_ = 0;  // rows that changed
  std::optional<std::size_t> head_;  // the head that changed
  std::size_t n_sums_ = 0;           // additions since all of it was computed
  arma::mat output_;
  Buffer<Number> contexts_;  // those that the output was computed from
};

}  // namespace core::attention::fast
