#pragma once

#include <armadillo>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/causes.hpp"
#include "core/check/computed.hpp"
#include "core/check/match.hpp"
#include "core/graph/trace.hpp"

namespace core::check {

/// Numbers of one head, or of a stage that all heads share; two matrices of the same shape.
struct HeadDifference {
  std::size_t head = 0;
  arma::mat observed, ours;
};

/// Heads and columns of a stage, and the tolerance of its numbers.
struct PatternOptions {
  std::size_t n_heads = 1;  ///< 1 for a stage that all heads share
  bool columns_are_keys = false;
  std::function<double(double ours)> max_difference;  ///< largest difference that counts as equal
};

/// Returns where numbers differ, as a part of a sentence: "only keys from 512 on", "head 3 alone", "every
/// 64th column", "all rows by a factor 1.02", "grows with the position"; "" without a pattern.
std::string describe_pattern(const std::vector<HeadDifference>& heads, const PatternOptions& stage);

// "Why is mine different?": compares a user's tensors with a model by stage and finds the likely bug.

/// Comparison of a tensor with a model.
struct TensorResult {
  std::string tensor;         ///< its name; of several single-head tensors the one farthest off
  std::string shape;          ///< "[2, 6, 6]"
  std::string type;           ///< "float32"
  std::string rounding = {};  ///< the type whose rounding was allowed for, or ""
  std::string obstacle = {};  ///< why it cannot be compared, or ""
  /// "[T, H·d]": the layout that it was read in, "" for attnscope's own
  std::string reading = {};
  Agreement agreement = {};  ///< within is false when there is an obstacle

  /// Returns a table row: name, shape, type, reading, largest difference at `place`, verdict.
  std::vector<std::string> row(const std::string& place) const;
  /// Returns the largest difference as JSON; null when it is not finite (NaN or infinity against a number) or
  /// the shape differs.
  std::string max_abs() const;
  /// Returns one index of the place as JSON, null when nothing was compared.
  std::string at(std::size_t place) const;
};

/// Comparison of one stage, or of a gradient.
struct StageResult : TensorResult {
  Stage stage = Stage::weights;  ///< of the gradient of a learned matrix, the output
  std::string gradient = {};     ///< "d_queries", "d_query_weight"; "" for a stage

  std::string name() const { return gradient.empty() ? attention::info(stage).name : gradient; }
};

struct Report {
  bool agrees = true;
  std::vector<StageResult> stages;  ///< in the order of computation
  /// Reading of each tensor, nullptr for those without one; they point into the tensors.
  std::vector<const Reading*> readings;
  std::vector<std::string> left_out;      ///< tensors that were not compared, and why
  std::vector<Explanation> explanations;  ///< several when the tensors cannot tell them apart
  bool was_stopped = false;               ///< the search ended early; there may be other explanations
  std::size_t n_tensors = 0;              ///< tensors that were compared
  std::vector<Stage> not_given;           ///< stages of the model without a tensor
  std::size_t n_along_first_axis = 0;     ///< its length, where only index 0 was compared by default
  std::vector<std::string> notes;         ///< how the tensors were read, one sentence each
  /// Pattern of the first stage that differs: "only keys from 512 on"; "" without one.
  std::string pattern;
  /// Causes that explain some of the tensors, and differences that nothing explains.
  std::vector<std::string> partly = {}, described = {};
  std::vector<Stage> agreeing_after = {};  ///< stages after the first difference that agree
  bool is_harmless = false;                ///< these include the last stage given
  std::vector<Stage> averaged = {};        ///< stages given as the mean over heads
  /// Type whose rounding errors alone explain every difference, or ""; the largest relative error of a row,
  /// and of a head, that they could hide, 0 if unknown.
  std::string rounding = {};
  double hidden_row = 0, hidden_head = 0;

  /// Whether it compares gradients, not stages.
  bool is_of_gradients() const { return !stages.empty() && !stages.front().gradient.empty(); }
  /// Returns the first stage that differs, or nullptr.
  const StageResult* first_difference() const;
  /// Returns all causes of all explanations, each once.
  std::vector<std::string> causes() const;
  /// Whether a tensor named after a stage could not be compared, usually for its shape.
  bool has_shape_mismatch() const;
  /// Whether a tensor that could be compared differs.
  bool has_wrong_numbers() const;
};

/// Compares every tensor with its stage and searches for the mistakes that explain all of them.
Report check(const Model& model, const MatchResult& matched, const Tolerance& tolerance,
             const core::StopToken& token = {});

/// Trace of observed tensors, which has only some stages.
struct ObservedTrace {
  attention::Trace trace;     ///< every other stage is empty
  std::vector<Stage> stages;  ///< stages that all heads have, in the order of computation
};

/// Returns the tensors of one sequence, read as in the report; omits stages that only some heads have.
ObservedTrace observed_trace(const Model& model, const MatchResult& matched, const Report& report,
                             std::size_t sequence);

/// Returns sentences with the causes and their fixes, and with the limits of the verdict.
std::string verdict_words(const Report& report);

/// Returns what the rounding of tensors that agree could hide, or "".
std::string hidden_words(const Report& report);

/// Returns why tensors do not agree, each number of which does, or "".
std::string noise_words(const Report& report);

/// Returns "3 tensors of 2 stages were compared; not given, and not compared: queries, keys"; of gradients
/// only how many.
std::string coverage_words(const Report& report);

/// Returns a table row: the name of the stage, then TensorResult::row().
std::vector<std::string> row_of(const StageResult& result);

/// Returns the report as text: a table of stages, ignored tensors, notes, then the verdict.
std::string report_text(const Report& report);

/// Returns the report as JSON on one line: agrees, first_difference, causes, explanations (lists of causes),
/// stages (each with its reading if not the plain one), left_out, notes, n_tensors, n_stages, not_given,
/// stopped, details and sentences (a list per explanation), pattern (or null), partly, described, harmless.
std::string report_json(const Report& report);

}  // namespace core::check
