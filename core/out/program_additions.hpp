#pragma once

#include <string>

#include "core/graph/model.hpp"

/// What models of today add to the paper, as lines of a PyTorch program.
namespace core::formats {

/// Whether keys and values are fewer than heads.
bool has_groups(const attention::Model& model);

/// Keys or values as every head sees them: those of its group.
std::string of_every_head(const attention::Model& model, const std::string& name);

/// Definitions of the numbers and of the function that turns, for the top of the program.
std::string program_additions(const attention::Model& model);

/// The stages between queries and keys and the scores.
std::string prepared_text(const attention::Model& model);

/// The stages between scores and the mask, scaling among them, which is given as text.
std::string adjusted_text(const attention::Model& model, const std::string& scaled);

/// The softmax of the masked scores, with the sink where there is one.
std::string softmax_text(const attention::Model& model);

/// What stands before it and torch.tensor(…) of a matrix, or of its first row; what is float32 is written at
/// that precision, all else as float64.
std::string with_tensor(const std::string& before, const arma::mat& m, bool row = false);

}  // namespace core::formats
