#pragma once

#include <cstddef>
#include <variant>

#include "core/graph/matrices.hpp"
#include "core/graph/stages.hpp"

namespace core::explain {

using attention::MatrixName;
using attention::Model;
using attention::Stage;
using attention::Trace;

/// Where a number is: in a stage or in a learned matrix.
using Source = std::variant<Stage, MatrixName>;

/// One cell of one stage; head is 0 for stages without heads.
struct CellAddress {
  Stage stage = Stage::weights;
  std::size_t head = 0, row = 0, column = 0;
  friend bool operator==(const CellAddress&, const CellAddress&) = default;
};

/// One number of a source; head is 0 for sources without heads.
struct SourceCell {
  Source source;
  std::size_t head = 0, row = 0, column = 0;
  friend bool operator==(const SourceCell&, const SourceCell&) = default;
};

/// Rectangle of a source, half-open in rows and columns.
struct SourceRect {
  Source source;
  std::size_t head = 0, row0 = 0, row1 = 0, column0 = 0, column1 = 0;

  std::size_t count() const { return (row1 - row0) * (column1 - column0); }
  /// Returns cell k, counted row by row.
  SourceCell at(std::size_t k) const {
    const std::size_t columns = column1 - column0;
    return {source, head, row0 + k / columns, column0 + k % columns};
  }
  friend bool operator==(const SourceRect&, const SourceRect&) = default;
};

/// Returns the place of a cell among given ones; heads that share a matrix have the same place.
inline attention::GivenCellAddress given_cell_address(const Model& model, std::size_t sequence,
                                                      const CellAddress& cell) {
  return {cell.stage, sequence, matrix_of_head(model, cell.stage, cell.head), cell.row, cell.column};
}

}  // namespace core::explain
