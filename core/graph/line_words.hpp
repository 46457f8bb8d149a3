#pragma once

#include <cstddef>
#include <string>

#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::explain {

/// What happens in a line of stages, 1 … 4, in one sentence that holds for the numbers of that head: which
/// stages are given, what is hidden, whether rows sum to 1, what dropout did.
///
/// Of matrices too large to be looked through in no time only the model's options speak.
std::string line_words(const attention::Model& model, const attention::Trace& trace, std::size_t head,
                       int line);

/// The line of PyTorch that computes a stage: "scores = queries @ keys.transpose(-2, -1)"; "" where none
/// does, as of the embeddings and of a stage that was given.
std::string code_line(const attention::Model& model, attention::Stage stage);

/// What rows and columns of a head's weights sum to: "a row sums to 1", "a column sums to 1, not a row",
/// "rows do not all sum to 1", "some weights are not numbers"; "" for matrices that are too large.
std::string sum_words(const attention::Trace& trace, std::size_t head);

}  // namespace core::explain
