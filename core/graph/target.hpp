#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/stage.hpp"

namespace core::graph {

/// Number whose gradients are computed: a cell of a stage, the sum of a row, a column or all cells, or the
/// mean squared error of these.
struct Target {
  attention::Stage stage = attention::Stage::output;
  std::size_t head = 0;                              ///< matters only for stages with one matrix per head
  std::optional<std::size_t> row = {}, column = {};  ///< nothing: all
  std::vector<double> expected = {};  ///< of the cells, row by row: the target is the mean squared error

  bool is_cell() const { return row && column && expected.empty(); }
  friend bool operator==(const Target&, const Target&) = default;
};

/// Returns a target as text: "weights[3,1]", "weights[3,:]"; without its head.
std::string text_of(const Target& target);
/// Reads the same, also a stage alone; nothing if it is no target.
std::optional<Target> parse_target(std::string_view text);

}  // namespace core::graph
