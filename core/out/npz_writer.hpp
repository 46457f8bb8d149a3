#pragma once

#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// A model and its stages as a .npz file: little-endian float64 arrays under the names of the stages.
///
/// A stage has the shape [rows, columns], [heads, rows, columns] when each head has one, and a first axis
/// more when the model has several sequences. "tokens" are text, [tokens] or [sequences, tokens];
/// "key_tokens" likewise, where other tokens are asked. stages are names of the table of stages; none means
/// all that the model has, and beside them the learned matrices: "projections.query.weight" [d_in, d_out],
/// "projections.query.bias" [d_out], and so on. Throws core::Error when the model cannot be computed, a name
/// is not that of a stage, or the model lacks the stage. Source: NumPy, numpy.savez_compressed. Once the
/// progress is cancelled it throws Stopped.
std::string npz_bytes(const attention::Model& model, const std::vector<std::string>& stages = {},
                      const Token* progress = nullptr);

}  // namespace core::formats
