#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/files/tensor.hpp"

namespace app {

/// The numbers of a file that holds one matrix.
struct NumbersInFile {
  std::filesystem::path path;
  arma::mat numbers;
  std::vector<std::string> row_names;  ///< of a table that has them, or empty
};

/// Reads them. Throws core::Error that names the file.
NumbersInFile numbers_in_file(const std::filesystem::path& path, const core::Token& progress);

/// The edit that puts them in a matrix of a model.
///
/// Shapes must agree, but embeddings of one sequence may become more or fewer tokens. Throws core::Error that
/// names the file.
core::editing::Edit edit_with(const NumbersInFile& file, const core::attention::Model& model,
                              core::editing::MatrixPlace place);

}  // namespace app
