#pragma once

#include <cstddef>
#include <optional>

#include "core/model/run.hpp"

namespace core::experiment {

/// How a number of the residual stream becomes one that enters attention: (stream − mean) / divisor · weight
/// + bias, all of its row.
struct NormOfNumber {
  double mean = 0;  ///< 0 where the norm takes none away
  double divisor = 1, factor = 1, bias = 0;
};

/// One column of the row of a token in the residual stream, as it goes through a layer: float32 of the pass.
struct StreamNumber {
  double entering = 0;   ///< in the stream before the layer
  double input = 0;      ///< what enters attention
  double attention = 0;  ///< what attention adds
  double mlp = 0;        ///< what the MLP adds
  double leaving = 0;    ///< in the stream behind the layer
  /// From entering to input; nothing where they are the same.
  std::optional<NormOfNumber> norm;
  /// Whether leaving is entering + attention + mlp: not where norms stand behind them.
  bool is_sum = true;
};

/// A number of the stream through a layer; row below the tokens of the pass, column below d_model.
///
/// Throws core::Error when the layer's weights cannot be read.
StreamNumber stream_number(const transformer::Transformer& model, const transformer::Pass& pass,
                           std::size_t layer, std::size_t row, std::size_t column, const Token& progress);

}  // namespace core::experiment
