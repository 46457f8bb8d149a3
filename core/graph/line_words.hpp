#pragma once

#include <cstddef>
#include <string>

#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::explain {

/// Returns one sentence about a line of stages, 1 … 4, for the numbers of that head: which stages are given,
/// what is masked, whether rows sum to 1, what dropout did.
///
/// For matrices too large to scan quickly it describes only the model's options.
std::string describe_line(const attention::Model& model, const attention::Trace& trace, std::size_t head,
                          int line);

/// Returns the line of PyTorch that computes a stage: "scores = queries @ keys.transpose(-2, -1)"; "" for
/// embeddings and given stages.
std::string code_line(const attention::Model& model, attention::Stage stage);

/// Returns the sums of a head's weights in words: "a row sums to 1", "a column sums to 1, not a row",
/// "rows do not all sum to 1", "some weights are not numbers"; "" for matrices that are too large.
std::string describe_row_sums(const attention::Trace& trace, std::size_t head);

}  // namespace core::explain
