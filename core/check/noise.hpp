#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

// What the judgment is made of.

/// Rounds each number up or down at random, so that the mean is the number; the same for equal arguments.
arma::mat randomly_rounded(Precision precision, arma::mat numbers, std::uint64_t draw, std::uint64_t stage,
                           std::uint64_t matrix);

/// A model, or an edit of it, and its stages.
struct EditedModel {
  explicit EditedModel(const Model& model, const std::function<void(Editing&)>& edit = {});
  EditedModel(const EditedModel&) = delete;
  EditedModel& operator=(const EditedModel&) = delete;

  Editing editing;
  std::unique_ptr<LazyStages> stages;
};

/// The right model with its inputs and every stage rounded at random.
struct RandomlyRounded : EditedModel {
  RandomlyRounded(const Model& right, Precision precision, bool in_softmax, std::uint64_t draw);
};

/// Returns how many draws the noise of a model is computed from.
std::size_t n_draws(const Model& model);

/// Differences of draws from the right numbers, which other differences are measured by. Of a stage there is
/// one matrix for each sequence and head.
struct DrawnNoise {
  using Matrices = std::vector<arma::mat>;
  struct Row {
    double mean_square, noise, size;  ///< of differences in units of noise; noise and numbers, squared
    std::size_t nth, row;
  };
  /// How far differences exceed their noise.
  struct Excess {
    std::vector<Row> rows;
    Row worst = {};
    double median = 0;  ///< mean square of the median row
  };
  /// Whether differences are more than noise.
  struct Judgment {
    Excess found;
    Matrices noise;    ///< variance of each cell
    double limit = 0;  ///< of the mean square of a row
    bool is_exceeded = false;
    std::vector<double> medians;  ///< of each draw
  };

  Matrices right;
  std::vector<Matrices> of_draws;
  Matrices of_sums;  ///< of rounded sums, or zeros

  /// Returns the variance of each cell by all draws but one.
  Matrices noise_without(std::size_t left_out) const;
  Excess excess(const Matrices& differences, const Matrices& noise) const;
  Judgment judge(const Matrices& differences) const;
};

}  // namespace core::check
