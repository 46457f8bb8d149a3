#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/check/check.hpp"
#include "core/check/dump.hpp"
#include "core/model/transformer.hpp"

namespace core::check {

/// Rows of a pass, a token each, compared with a tensor.
struct RowsResult {
  DumpTensor tensor;
  std::string shape, type;
  std::string obstacle = {};  ///< why they cannot be compared, or ""
  std::string rounding = {};  ///< the type whose rounding was allowed for, or ""
  std::string reading = {};   ///< "after the last norm" where that is not plain, or ""
  bool within = false;
  double largest = 0;   ///< |theirs − ours|
  bool of_nan = false;  ///< that is ∞ as one alone is NaN
  std::size_t row = 0, column = 0;
};

/// One layer compared.
struct LayerResult {
  std::optional<RowsResult> entering;  ///< what enters it, where the file has that
  std::optional<Report> attention;     ///< its attention, where the file has tensors of it
};

struct WholeReport {
  std::vector<LayerResult> layers;
  std::optional<RowsResult> leaving, normed, logits;  ///< behind the last layer
  std::vector<std::string> left_out;                  ///< with why

  bool agrees() const;
};

/// How a file is to be read and compared.
struct WholeOptions {
  Tolerance tolerance = {};
  const Layout* layout = nullptr;  ///< of the features of heads, or nullptr for whichever fits
  std::map<std::string, std::string> by_hand = {};  ///< stage of a tensor; "" leaves it out
};

/// Compares what a file holds of a pass with the model's own, layer by layer: what enters each, and its
/// attention in all stages that are there.
///
/// A layer is computed from the file's own hidden states where it has them, so that a difference stands where
/// it arises. A search for causes that is stopped leaves the comparison whole. Throws core::Error when the
/// file has nothing to compare or cannot be read, or the text does not fit the model; Stopped when
/// means.progress asks for that.
WholeReport check_whole(const transformer::Transformer& model, const std::vector<std::size_t>& ids,
                        const std::vector<std::string>& tokens, const formats::TensorFile& file,
                        const WholeOptions& options, const transformer::Means& means, const Token& search);

/// The report for people: a table, what was left out, then where the first difference is and what explains
/// it.
std::string whole_report_text(const WholeReport& report);

/// The report as JSON on one line: agrees, first_difference ({layer, stage}, or null), layers (hidden and
/// attention of each, or null), leaving, normed, logits, left_out.
std::string whole_report_json(const WholeReport& report);

}  // namespace core::check
