#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/graph/stage.hpp"

namespace core::check {

/// Steps from the scores to the softmax input, in the usual order.
enum class ScoreStep : std::size_t { scale, softcap, bias, mask };

/// Output stage and names of a step.
struct ScoreStepInfo {
  attention::Stage stage;
  const char* word;   ///< "bias": of the step itself
  const char* names;  ///< common names of its stage, separated by spaces
};

inline constexpr std::array score_steps{
    ScoreStepInfo{attention::Stage::scaled_scores, "scale",
                  "scaled scores_scaled scaled_attn_scores attn_scores_scaled attn_scaled"},
    ScoreStepInfo{attention::Stage::capped_scores, "softcap",
                  "capped cap softcapped soft_capped scores_capped attn_scores_capped capped_attn_scores "
                  "capped_attn_logits"},
    ScoreStepInfo{attention::Stage::biased_scores, "bias",
                  "biased scores_biased attn_scores_biased biased_attn_scores scores_with_bias "
                  "attn_scores_with_bias"},
    ScoreStepInfo{attention::Stage::masked_scores, "mask",
                  "masked scores_masked masked_attn_scores attn_scores_masked masked_scaled_scores"},
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
