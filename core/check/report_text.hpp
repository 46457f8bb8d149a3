#pragma once

#include <string>
#include <vector>

#include "core/check/check.hpp"

namespace core::check {

/// "head 1, row 2, column 0": where a stage is farthest off.
std::string place_words(const StageResult& result);

/// What the causes are and what to do instead, in sentences; what cannot be told is said, too.
std::string verdict_words(const Report& report);

/// "3 tensors of 2 stages were compared; not given, and not compared: queries, keys": what a verdict is of.
std::string coverage_words(const Report& report);

/// A stage as a row of a table: its name, tensor, shape, type, reading, largest difference, verdict.
std::vector<std::string> row_of(const StageResult& result);

/// A difference in three digits, "∞", or of NaN against a number that it is none.
std::string difference_text(double difference, bool of_nan);

/// The report for people: a table of the stages, what was left out, how tensors were read, then the verdict.
std::string report_text(const Report& report);

/// The report as JSON on one line: agrees, first_difference, causes, explanations (lists of causes), stages,
/// left_out, notes, n_tensors, n_stages, not_given, stopped, details (a list for each explanation), pattern
/// (or null). A stage has its reading where that is not the plain one.
///
/// max_abs is null where no number says how far they are apart: NaN or an infinity against a number, or
/// another shape.
std::string report_json(const Report& report);

}  // namespace core::check
