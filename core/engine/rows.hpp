#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace core::attention::fast {

/// What an update changed of one head's masked scores and weights, so that pictures of them need no more.
struct HeadChange {
  bool all = true;                         ///< every number, whatever the rest says
  std::vector<std::size_t> rows = {};      ///< these rows in full
  std::optional<std::size_t> column = {};  ///< this column
  std::size_t first_sum = SIZE_MAX;        ///< sums of rows changed from this row on; n_tokens when none did
};

/// What an update changed; stages of other shapes may always have changed.
struct Change {
  bool completed = true;   ///< false: called off, and nothing can be read before the next compute()
  bool everything = true;  ///< a new trace; heads is empty
  std::vector<HeadChange> heads = {};  ///< [head]
};

/// A stage in the form in which it is kept: row after row, weights as the scores of which they are made.
struct RowView {
  const double* numbers = nullptr;  ///< nullptr when this stage is not kept; then read it from the trace
  std::size_t stride = 0;           ///< from one row to the next
  std::size_t n_rows = 0, n_cols = 0;
  /// [row]: weights are exp(number − largest) / sum; nullptr when the numbers are the stage itself.
  const double *largest = nullptr, *sums = nullptr;
  void (*exponentials)(double* numbers, std::size_t n) = nullptr;  ///< of all weights, fast: eˣ of n numbers
};

}  // namespace core::attention::fast
