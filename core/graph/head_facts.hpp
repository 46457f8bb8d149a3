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

/// Where a head looks on average: means over the rows of its weights, of those rows that have such a key.
///
/// Rows that are no distribution (NaN, or nothing but zeros) are left out. Row 0 has no token before it: it
/// counts for the entropy and for itself alone. A mean over no row is nothing.
struct HeadFacts {
  std::optional<double> entropy_bits;       ///< of the row divided by its sum; 0 … log2 n_tokens
  std::optional<double> itself;             ///< weight on the diagonal
  std::optional<double> previous;           ///< on the token one back
  std::optional<double> two_or_three_back;  ///< on both together
  std::optional<double> first;              ///< on token 0
  std::optional<double> same_word;          ///< on all earlier tokens of the same name, of rows that have one
};

/// The facts of one head; weights are n_tokens × n_keys, tokens n_tokens names. With other keys only the
/// entropy is known. No more than a row of the weights is made at a time.
HeadFacts head_facts(const StageMatrix& weights, std::span<const std::string> tokens,
                     const core::Token& token = {});

/// Each of the facts, as heads are sorted by them.
enum class HeadFigure { entropy, itself, previous, two_or_three_back, first, same_word };

/// One row of the table of figures.
struct HeadFigureInfo {
  HeadFigure figure;
  const char* name;   ///< as a session keeps it: "two_or_three_back"
  const char* title;  ///< as in the window: "two or three back"
  std::optional<double> HeadFacts::*value;
  bool smallest_first;  ///< when heads are sorted
};

std::span<const HeadFigureInfo> head_figures();
const HeadFigureInfo& info(HeadFigure figure);
/// The row of that name, or nullptr.
const HeadFigureInfo* find_head_figure(std::string_view name);

/// The heads sorted by a figure, those without one last; equal ones stay in their order.
std::vector<std::size_t> heads_by(HeadFigure figure, std::span<const HeadFacts> facts);

/// How alike the heads are, n_heads × n_heads: 1 less the mean of the Jensen–Shannon divergence of their rows
/// in bits.
///
/// From 0, nowhere a key in common, to 1, the same weights. Rows that are no distribution in one of the two
/// are left out; NaN where none remains. Source: Lin, Divergence measures based on the Shannon entropy, IEEE
/// Trans. Inf. Theory 37, 1991.
arma::mat similarity_of_heads(const Trace& trace, const core::Token& token = {});

}  // namespace core::attention
