#pragma once

#include <armadillo>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/trace.hpp"

namespace core::attention {

/// Summary of one row of a matrix; non-finite numbers are ignored.
struct RowStatistics {
  double sum = 0;
  double smallest = 0, largest = 0;
  std::size_t argmax = 0;   ///< column of the largest
  double entropy_bits = 0;  ///< −Σ p·log2 p of the row divided by its sum; 0 if it is not a distribution
  double effective_count = 0;  ///< 2^entropy, the effective number of keys; 0 if it is not a distribution
};

/// Returns the facts of a row of numbers.
RowStatistics row_statistics(const arma::rowvec& numbers);
/// Returns the facts of row i of a matrix, or of a stage, of which it computes only that row.
RowStatistics row_statistics(const arma::mat& numbers, std::size_t row);
RowStatistics row_statistics(const StageMatrix& numbers, std::size_t row);

/// Attention pattern of a head: means over those rows of its weights that have the key in question.
///
/// Rows that are not distributions (NaN, or only zeros) are ignored. Row 0 has no token before it and counts
/// only for `entropy_bits` and `itself`. A mean over no rows is not set.
struct HeadStatistics {
  std::optional<double> entropy_bits;       ///< of the row divided by its sum; 0 … log2 n_keys
  std::optional<double> itself;             ///< weight on the diagonal
  std::optional<double> previous;           ///< on the previous token
  std::optional<double> two_or_three_back;  ///< on both tokens together
  std::optional<double> first;              ///< on token 0
  std::optional<double> same_word;          ///< on earlier tokens of the same name, over rows that have one
};

/// Returns the facts of one head; weights are n_tokens × n_keys, tokens n_tokens names. With other keys only
/// the entropy is known. Computes at most one row of the weights at a time.
HeadStatistics head_statistics(const StageMatrix& weights, std::span<const std::string> tokens,
                               const core::StopToken& token = {});

/// Facts that heads can be sorted by.
enum class HeadMetric { entropy, itself, previous, two_or_three_back, first, same_word };

/// Row of the table of figures.
struct HeadMetricInfo {
  HeadMetric figure;
  const char* name;   ///< in sessions: "two_or_three_back"
  const char* title;  ///< in the window: "2–3 tokens back"
  std::optional<double> HeadStatistics::*value;
  bool smallest_first;  ///< order of sorted heads
};

std::span<const HeadMetricInfo> head_metrics();
const HeadMetricInfo& info(HeadMetric figure);
/// Returns the row of that name, or nullptr.
const HeadMetricInfo* find_head_metric(std::string_view name);

/// Returns the heads sorted by a figure, those without one last; equal ones stay in their order.
std::vector<std::size_t> sort_heads(HeadMetric figure, std::span<const HeadStatistics> facts);

/// Returns the similarity of heads, n_heads × n_heads: 1 − mean Jensen–Shannon divergence of their rows in
/// bits.
///
/// From 0, no key in common anywhere, to 1, the same weights. Rows that are not distributions in both heads
/// are ignored; NaN if none remains. Source: Lin, Divergence measures based on the Shannon entropy, IEEE
/// Trans. Inf. Theory 37, 1991.
arma::mat head_similarity(const Trace& trace, const core::StopToken& token = {});

}  // namespace core::attention
