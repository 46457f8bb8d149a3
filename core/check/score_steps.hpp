#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/graph/stage.hpp"

namespace core::check {

/// Steps from the scores to the softmax input, in the usual order.
enum class ScoreStep : std::size_t { scale, softcap, bias, mask };

/// Output stage of a step.
struct ScoreStepInfo {
  attention::Stage stage;
  const char* word;  ///< "bias": of the step itself
};

inline constexpr std::array score_steps{
    ScoreStepInfo{attention::Stage::scaled_scores, "scale"},
    ScoreStepInfo{attention::Stage::capped_scores, "softcap"},
    ScoreStepInfo{attention::Stage::biased_scores, "bias"},
    ScoreStepInfo{attention::Stage::masked_scores, "mask"},
};

constexpr const ScoreStepInfo& info_of(ScoreStep step) {
  return score_steps[static_cast<std::size_t>(step)];
}
constexpr attention::Stage stage_of(ScoreStep step) {
  return info_of(step).stage;
}
constexpr bool is_score_step(attention::Stage stage) {
  return std::ranges::find(score_steps, stage, &ScoreStepInfo::stage) != score_steps.end();
}
/// Returns the step with this output stage, which must be one of theirs.
constexpr ScoreStep step_of(attention::Stage stage) {
  const auto row = std::ranges::find(score_steps, stage, &ScoreStepInfo::stage);
  return static_cast<ScoreStep>(row - score_steps.begin());
}

}  // namespace core::check
