#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/check/observation.hpp"

namespace core::check {

/// Whether differences are no more than roundings to a precision leave, wherever these happen.
struct NoiseVerdict {
  std::optional<Stage> stage;  ///< the first whose differences are more than noise
  std::string words;           ///< "row 197 of the output is …"; "" if all are noise
  double row = 0, head = 0;    ///< largest relative error of a row, and of a head, that would not be seen
};

/// What rounds beside the stages.
struct OtherRoundings {
  bool in_sums = false;     ///< every partial sum of a matrix product
  bool in_softmax = false;  ///< every step of a softmax
};

/// Judges context vectors and outputs, each computed from the stages that were observed before it, but for
/// scores. The noise of each row is that of the right model with random roundings at every stage, drawn with
/// a fixed seed; at least that of a model with rounded sums.
///
/// Too much is a row that is far noisier than that or than the median row, or differences that plainly follow
/// a factor of a head or of the scores.
NoiseVerdict judge_noise(const Model& model, const std::vector<ObservedStage>& stages, Precision precision,
                         const OtherRoundings& others = {});

}  // namespace core::check
