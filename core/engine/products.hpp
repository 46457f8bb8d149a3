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

/// The rows of a matrix as the kernels multiply them with the columns of another: panel_width rows side by
/// side make a panel, in which number c of all of them lies before number c + 1.
///
/// They lie in memory that others may use before and after, and that grows as needed.
template <class Number>
class Panels {
 public:
  static constexpr std::size_t max_at_once = 8;

  Panels(const Kernels<Number>& kernels, std::size_t n_rows, std::size_t depth, Buffer<Number>& memory);

  std::size_t n_rows() const { return n_rows_; }
  std::size_t depth() const { return depth_; }
  std::size_t n_panels() const { return (n_rows_ + width_ - 1) / width_; }
  std::size_t rows_of(std::size_t panel) const { return std::min(width_, n_rows_ - panel * width_); }

  /// How many of them are best multiplied in one go: few enough for a second-level cache beside other things.
  std::size_t at_once() const;

  /// Fills one panel with the rows of a matrix from `first_row` on.
  void fill(std::size_t panel, const arma::mat& matrix, std::size_t first_row);
  /// The same with rows that lie in memory one after the other.
  void fill(std::size_t panel, const Number* rows);

  const Number* from(std::size_t panel) const { return numbers_ + panel * width_ * depth_; }
  const Kernels<Number>& kernels() const { return *kernels_; }
  std::size_t width() const { return width_; }

 private:
  const Kernels<Number>* kernels_;
  std::size_t n_rows_, depth_, width_;
  Number* numbers_;
};

/// Some rows of a product of panels and a matrix, in a few of its columns.
template <class Number>
struct ProductTile {
  std::size_t first_row = 0, n_rows = 0;
  std::size_t first_column = 0, n_columns = 0;
  Number* numbers = nullptr;  ///< column after column, stride apart
  std::size_t stride = 0;
};

/// Columns of a matrix: one after the other, stride apart, each as long as the panels are deep.
template <class Number>
struct Columns {
  const Number* numbers = nullptr;
  std::size_t stride = 0, count = 0;
};

/// Works out panels first … end − 1 times some columns and hands every tile of it to take(ProductTile).
template <class Number, class Take>
void multiply(const Panels<Number>& panels, std::size_t first, std::size_t end, Columns<Number> columns,
              const Take& take) {
  const Kernels<Number>& kernels = panels.kernels();
  const std::size_t width = panels.width(), at_once = kernels.panel_rows;
  const std::size_t n_rows = std::min(panels.n_rows(), end * width) - first * width;
  const std::size_t stride = (end - first) * width;
  using All = Kernels<Number>;
  alignas(64) std::array<Number, All::max_panel_rows * Panels<Number>::max_at_once * All::widest_panel>
      products;
  std::array<std::size_t, All::max_panel_rows> ends;
  ends.fill(n_rows);
  for (std::size_t column = 0; column < columns.count;
       column += at_once) {  // they stay in the cache for all panels
    const std::size_t n_columns = std::min(at_once, columns.count - column);
    kernels.products({columns.numbers + column * columns.stride, columns.stride, panels.from(first),
                      panels.depth(), 1, ends.data(), products.data(), stride, n_columns});
    take(ProductTile<Number>{first * width, n_rows, column, n_columns, products.data(), stride});
  }
}

/// The same for all panels, and for several such products if need be, shared among threads: take(product,
/// ProductTile).
template <class Number, class Take>
void multiply(const Panels<Number>& panels, std::span<const Columns<Number>> products, ThreadPool& threads,
              const Take& take) {
  const std::size_t n_panels = panels.n_panels(), n_threads = threads.n_threads();
  if (n_panels == 0) return;
  const std::size_t at_once = std::min(panels.at_once(), (n_panels + n_threads - 1) / n_threads);
  const std::size_t n_blocks = (n_panels + at_once - 1) / at_once;
  std::size_t operations = 0;
  for (const Columns<Number>& columns : products)
    operations += panels.n_rows() * panels.depth() * columns.count;
  threads.run(products.size() * n_blocks, operations, [&](std::size_t task) {
    const std::size_t product = task % products.size(), first = task / products.size() * at_once;
    multiply(panels, first, std::min(n_panels, first + at_once), products[product],
             [&](const ProductTile<Number>& tile) { take(product, tile); });
  });
}

/// The projection that makes them, or nullptr.
const Linear* projection(const Model& model, Projected what);

/// Works out queries, keys and values of all tokens; false when a value is not finite.
template <class Number>
bool project_all(Heads<Number>& all, const Model& model, std::size_t sequence, ThreadPool& threads);

/// Row t of the queries of all heads, or of the keys or values of all groups, side by side, afresh.
template <class Number>
std::vector<Number> projected_row(Heads<Number>& all, const Model& model, std::size_t sequence,
                                  Projected what, std::size_t t);

/// From now on OpenBLAS does each product on the thread that asks for it, in the whole program.
void keep_blas_to_one_thread();

/// The output of all tokens, worked out when it is asked for and then only where contexts changed.
template <class Number>
class Output {
 public:
  void all_changed() { all_ = true; }
  /// Contexts of rows first … end − 1 changed, in any head.
  void rows_changed(std::size_t first, std::size_t end);
  /// Contexts of one head changed, in any row.
  void head_changed(std::size_t head);

  /// n_tokens × d_output. Several threads may ask: the first works it out, the others wait for it.
  const arma::mat& bring_up_to_date(Heads<Number>& all, const Model& model, ThreadPool& threads);

 private:
  void redo_rows(Heads<Number>& all, const Model& model, std::size_t first, std::size_t end,
                 ThreadPool& threads);
  bool add_head(Heads<Number>& all, const Linear& linear, ThreadPool& threads);
  void remember(const Heads<Number>& all, std::size_t first, std::size_t end);

  std::mutex working_;
  bool all_ = true;
  std::size_t first_ = 0, end_ = 0;  // rows that changed
  std::optional<std::size_t> head_;  // the head that changed
  std::size_t n_sums_ = 0;           // what was added since all of it was worked out
  arma::mat output_;
  Buffer<Number> contexts_;  // those that the output was worked out from
};

}  // namespace core::attention::fast
