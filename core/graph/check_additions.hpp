#pragma once

#include <optional>

#include "core/graph/model.hpp"

namespace core::attention {

/// Names a number of keys and values that heads cannot share.
std::optional<Problem> check_groups(const Model& model);

/// Names the first inconsistency of what is added to the paper.
std::optional<Problem> check_additions(const Model& model);

/// The same of what keys and values are projected from.
std::optional<Problem> check_memory(const Model& model);

/// Names a matrix that has not this shape, "expected ROWS×COLUMNS (meaning)", or a number that is not finite.
std::optional<Problem> check_matrix(const std::string& path, const SharedMatrix& m, std::size_t rows,
                                    std::size_t columns, const char* meaning);

}  // namespace core::attention
