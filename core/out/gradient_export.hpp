#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/graph/gradients.hpp"
#include "core/out/export.hpp"

namespace core::formats {

/// Number of which gradients are written, and its sequence.
struct GradientRequest {
  graph::Target target;
  std::size_t sequence = 0;
};

/// Writes gradients as export_to() writes stages, with the prefix "d_": DIR/d_weights.head0.csv. Unless
/// stages are chosen, those of the learned matrices too: DIR/d_query_weight.csv. Returns the files.
///
/// Throws core::Error as export_to() and graph::gradients() do.
std::vector<std::filesystem::path> export_gradients(const attention::Model& model,
                                                    const graph::Gradients& all,
                                                    const std::filesystem::path& path,
                                                    const ExportOptions& options);

/// Reads the numbers that cells of the output should have: FILE or FILE:TENSOR with one row, or with a row
/// for each row of the output. Throws core::Error.
std::vector<double> read_expected_row(const std::string& source, std::size_t row);

}  // namespace core::formats
