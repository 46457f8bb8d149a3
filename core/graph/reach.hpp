#pragma once

#include <optional>
#include <vector>

#include "core/graph/explain_rules.hpp"
#include "core/graph/graph.hpp"

namespace core::explain {

/// Where in the heads' contexts the merge finds the number for (row, column) of the concatenated matrix.
Place before_merge(const Model& model, std::size_t row, std::size_t column);

/// Where in the matrix of all heads a number of one head's queries, keys or values stands before the split.
graph::JoinedCell before_split(const Model& model, const CellAddress& cell);

/// The bucket of T5 that a query and a key belong to.
std::size_t bucket_of_cell(const Model& model, std::size_t query, std::size_t key);

/// One number; a stage of tokens by tokens is not made whole for it.
double number_at(const Model& model, const Trace& trace, const Place& place);

/// The cells of a part that a cell is made of; nothing when the model has no such learned matrix.
std::optional<Cells> reached(const Model& model, const Trace& trace, const Part& part,
                             const CellAddress& cell);

/// The other way round: the cells of a rule's stage that a cell reaches as this part, a rectangle a head.
std::vector<Cells> reached_by(const Model& model, const Trace& trace, const Rule& rule, const Part& part,
                              const CellAddress& cell);

}  // namespace core::explain
