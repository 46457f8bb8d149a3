#pragma once

#include <cstddef>
#include <vector>

#include "core/engine/heads.hpp"

namespace core::attention::fast {

/// The rows of a head that an update worked out afresh, and whether all of its numbers are finite.
struct RowsRedone {
  std::vector<std::size_t> rows;
  bool finite = true;
};

/// Brings one head up to date after its query, key and value of token t were replaced.
///
/// Row t is worked out afresh where token t asks. In every other row that sees t one score is another: its
/// sum changes by one exponential and its context by two values, unless so much of the row changes that it is
/// worked out afresh too. old_value: the d_head numbers that were replaced.
RowsRedone update_token(Heads& all, std::size_t head, std::size_t t, const double* old_value,
                        bool asks = true);

/// Adds row_parts[i] · key_parts[j] to the scores of rows first … end − 1 and works out the rest of them
/// afresh.
///
/// They hold n_queries and n_keys numbers. False when a sum is not finite.
bool update_scores(Heads& all, std::size_t head, std::size_t first, std::size_t end, const double* row_parts,
                   const double* key_parts);

/// Column c of the contexts of rows first … end − 1 of a head, after that column of its values was replaced.
///
/// values: that column, n_keys numbers.
void update_context_column(Heads& all, std::size_t head, std::size_t first, std::size_t end, std::size_t c,
                           const double* values);

}  // namespace core::attention::fast
