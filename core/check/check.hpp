#pragma once

#include <armadillo>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/causes.hpp"
#include "core/check/computed.hpp"
#include "core/check/match.hpp"
#include "core/graph/trace.hpp"

namespace core::check {

/// The numbers of one head, or of a stage that all heads share; two matrices of one shape.
struct HeadDifference {
  std::size_t head = 0;
  arma::mat observed, ours;
};

/// What a stage is made of, and when its numbers count as equal.
struct PatternOf {
  std::size_t n_heads = 1;  ///< 1 for a stage that all heads share
  bool columns_are_keys = false;
  std::function<double(double ours)> allowed;  ///< how far apart numbers may be
};

/// Where numbers differ, as a part of a sentence: "only keys from 512 on", "head 3 alone", "every 64th
/// column", "all rows by a factor 1.02", "grows with the position"; "" when there is nothing in particular.
std::string pattern_of(const std::vector<HeadDifference>& heads, const PatternOf& stage);

// "Why is mine different?": somebody's tensors against a model, stage by stage, and the likely mistake.

/// A tensor compared with numbers of a model.
struct TensorResult {
  std::string tensor;         ///< its name; of a head's file that of the one farthest off
  std::string shape;          ///< "[2, 6, 6]"
  std::string type;           ///< "float32"
  std::string rounding = {};  ///< the type whose rounding was allowed for, or ""
  std::string obstacle = {};  ///< why it cannot be compared, or ""
  /// "[T, H·d]": the layout in which it was read where that is not the plain one, or ""
  std::string reading = {};
  Agreement agreement = {};  ///< within is false with an obstacle

  /// As a row of a table: the name, shape, type, reading, largest difference at a place, verdict.
  std::vector<std::string> row(const std::string& place) const;
  /// The largest difference as JSON; null where no number says how far they are apart: NaN or an infinity
  /// against a number, or another shape.
  std::string max_abs() const;
  /// A part of the place in JSON, null where nothing was compared.
  std::string at(std::size_t place) const;
};

/// One stage compared.
struct StageResult : TensorResult {
  Stage stage = Stage::weights;
};

struct Report {
  bool agrees = true;
  std::vector<StageResult> stages;  ///< in the order of the computation
  /// As what each of the tensors was read, nullptr for those without a reading; they point into the tensors.
  std::vector<const Reading*> readings;
  std::vector<std::string> left_out;      ///< with why
  std::vector<Explanation> explanations;  ///< several when the tensors cannot tell them apart
  bool was_stopped = false;               ///< not all that may explain them was tried
  std::size_t n_tensors = 0;              ///< that were compared
  std::vector<Stage> not_given;           ///< stages of the model that no tensor was compared with
  std::size_t n_along_first_axis = 0;  ///< of which the first alone was compared, though nobody asked for it
  std::vector<std::string> notes;      ///< how the tensors were read, a sentence each
  /// Where and in what the first stage that differs does so: "only keys from 512 on"; "" when that is nothing
  /// in particular.
  std::string pattern;
  /// What explains a part of the tensors, what is there that nothing explains, and how they were computed.
  std::vector<std::string> partly = {}, described = {};
  std::vector<Stage> agreeing_after = {};  ///< stages behind the first difference that agree all the same
  bool is_harmless = false;                ///< the last stage given is one of them
  std::vector<Stage> averaged = {};        ///< stages that were given averaged over the heads
  /// The type that tensors were rounded to which differ only by its rounding errors, or "".
  std::string rounding = {};

  /// The first stage that differs, or nullptr.
  const StageResult* first_difference() const;
  /// All causes of all explanations, each once.
  std::vector<std::string> causes() const;
  /// Whether a tensor has the name of a stage and another shape.
  bool has_shape_mismatch() const;
  /// Whether the numbers of a tensor that could be compared differ.
  bool has_wrong_numbers() const;
};

/// An object, and a list, as JSON on one line, of values that are JSON; members that are "" are left out.
std::string json_object(std::initializer_list<std::pair<const char*, std::string>> members);
std::string json_list(const std::vector<std::string>& items);

/// Compares every tensor with its stage and looks for the mistakes that explain all of them.
Report check(const Model& model, const Matched& matched, const Tolerance& tolerance,
             const core::Token& token = {});

/// Infers from the numbers what is done otherwise where tensors differ, and says in the report what explains
/// a part of them. Its readings must be there.
std::vector<Explanation> infer_causes(const Comparison& comparison, const Matched& matched, Report& report);
/// The model with the mistakes of an explanation: with stages given as they are then where no option says it.
Model made(const Explanation& explanation);
/// Adds what was inferred to the explanations of a report, of which some may be the same.
void add_inferred(std::vector<Explanation> inferred, Report& report);

/// Observed tensors as a trace that has only some stages.
struct ObservedTrace {
  attention::Trace trace;     ///< every other stage is empty
  std::vector<Stage> stages;  ///< those that all heads have, in the order of the computation
};

/// The tensors of one sequence, read as the report says; a stage that only some heads have is left out.
ObservedTrace observed_trace(const Model& model, const Matched& matched, const Report& report,
                             std::size_t sequence);

/// What the causes are and what to do instead, in sentences; what cannot be told is said, too.
std::string verdict_words(const Report& report);

/// "3 tensors of 2 stages were compared; not given, and not compared: queries, keys": what a verdict is of.
std::string coverage_words(const Report& report);

/// A stage as a row of a table, its name before those of TensorResult::row().
std::vector<std::string> row_of(const StageResult& result);

/// The report for people: a table of the stages, what was left out, how tensors were read, then the verdict.
std::string report_text(const Report& report);

/// The report as JSON on one line: agrees, first_difference, causes, explanations (lists of causes), stages,
/// left_out, notes, n_tensors, n_stages, not_given, stopped, details (a list for each explanation), pattern
/// (or null). A stage has its reading where that is not the plain one.
std::string report_json(const Report& report);

}  // namespace core::check
