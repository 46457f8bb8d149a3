#pragma once

#include <optional>
#include <string>

#include "core/graph/given.hpp"

namespace core::importing {

/// What the scores of a file are: a stage, and what they are still to be multiplied by.
struct ScoresAre {
  attention::Stage stage = attention::Stage::scores;
  std::optional<double> factor;
  std::string words;  ///< how that is known, or what is assumed
  bool is_assumed = false;
};

/// Tells raw scores from scaled ones by Q·Kᵀ, as far as queries and keys are known, and else by whether there
/// is a scale beside them.
ScoresAre judge_scores(const attention::GivenStage& scores, const attention::GivenStage* queries,
                       const attention::GivenStage* keys, bool has_scale);

}  // namespace core::importing
