#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/engine/engine.hpp"

namespace app::render {

using core::attention::fast::HeadChange;
using core::attention::fast::RowView;

/// The strongest number of every block of a matrix; after a change only what changed is looked at again.
///
/// Of weights the largest number is the strongest, of signed numbers the one farthest from 0; NaN wins, −∞
/// loses, as in MatrixTexels.
class Pool {
 public:
  /// Which of the blocks the last renew() wrote.
  struct Written {
    std::vector<bool> rows;             ///< [row of blocks]: whether all of it
    std::optional<std::size_t> column;  ///< of blocks, in all rows
  };

  /// Makes room for blocks of so many rows and columns, whose numbers are still to come.
  void begin(const RowView& m, bool is_signed, std::size_t block_rows, std::size_t block_columns);
  /// Blocks of so many rows and columns; the change counts only when shape, kind and blocks are those of the
  /// last time.
  Written renew(const RowView& m, bool is_signed, std::size_t block_rows, std::size_t block_columns,
                const HeadChange& change, core::ThreadPool& threads);

  /// Whether it holds blocks of a matrix of this size and kind, of which some may be renewed.
  bool fits(const RowView& m, bool is_signed, std::size_t block_rows, std::size_t block_columns) const {
    return form_ == form(m, is_signed, block_rows, block_columns);
  }

  std::size_t n_rows() const { return n_rows_; }  ///< of blocks
  std::size_t n_columns() const { return n_columns_; }
  double operator()(std::size_t row, std::size_t column) const { return this->row(row)[column]; }
  /// The numbers of a row of blocks, n_columns() of them.
  const double* row(std::size_t row) const { return strongest_.data() + row * n_columns_; }

 private:
  struct Form {
    std::size_t rows = 0, columns = 0, block_rows = 0, block_columns = 0;
    bool is_signed = false, are_weights = false;
    friend bool operator==(const Form&, const Form&) = default;
  };
  static Form form(const RowView& m, bool is_signed, std::size_t block_rows, std::size_t block_columns) {
    return {m.n_rows, m.n_cols, block_rows, block_columns, is_signed, m.sums != nullptr};
  }
  template <bool is_signed>
  void pool_along(const RowView& m, std::size_t row, std::size_t first, std::size_t last);
  template <bool is_signed>
  void pool_down(const RowView& m, std::size_t block_row, std::size_t first, std::size_t last);
  template <bool is_signed>
  Written renew_as(const RowView& m, const HeadChange& change, core::ThreadPool& threads);

  Form form_;
  std::size_t n_rows_ = 0, n_columns_ = 0;
  std::vector<double> along_;      // matrix rows × block columns, of the numbers as they are
  std::vector<double> strongest_;  // block rows × block columns
};

}  // namespace app::render
