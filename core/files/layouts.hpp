#pragma once

#include <array>
#include <span>
#include <string>

#include "core/files/layers.hpp"

namespace core::formats::checkpoints {

/// Which way a weight is kept: as x·W, as torch.nn.Linear does, whichever its shape tells (a fused weight has
/// more outputs than inputs), or as one matrix for each head, [heads, d_in, d_head].
enum class Orientation { in_by_out, out_by_in, by_shape, head_first };

/// The ends of the names of a layout's tensors; one weight for all three is fused.
struct LayoutRow {
  Layout layout;
  Orientation orientation;
  std::array<std::string, 3> weights, biases;
  std::string output_weight, output_bias;
  bool has_fused_bias = false;
  bool is_fused() const { return weights[0] == weights[1]; }
};

/// All layouts that are known; what fits several is of the first with an output projection.
std::span<const LayoutRow> layout_rows();

}  // namespace core::formats::checkpoints
