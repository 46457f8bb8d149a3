#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/files/table.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// A stage whose values are in a tensor file.
struct StageFile {
  std::string stage;   ///< "weights", or "embeddings" of the model
  std::string source;  ///< "FILE" or "FILE:TENSOR"; default: the tensor named like the stage, or the only one
  std::optional<std::size_t> layer = {};  ///< index into a leading layer axis
  TableIndex names = {};                  ///< which first line and column 0, 1, 2 … of a table are names
  DecimalMark mark = DecimalMark::point;  ///< of a table or text
};

/// Parts of "FILE" or "FILE:TENSOR"; the file name may contain a colon.
struct TensorAddress {
  std::filesystem::path file;
  std::string tensor;
};
TensorAddress parse_tensor_address(const std::string& source);

/// A stage read from a tensor.
struct TensorStage {
  attention::GivenStage given;
  std::size_t n_sequences = 1;
  std::vector<std::string> row_labels = {}, column_labels = {};  ///< of a table that has them
};

/// Names the tokens of a model of one sequence after the rows and columns of a table of a stage, and returns
/// whether it has such names.
bool name_tokens(attention::Model& model, const TensorStage& table);

/// Returns the stage in a tensor: [rows, columns] of a single head, [heads, rows, columns] or [sequences,
/// heads, rows, columns].
///
/// Queries, keys and values of [rows, d_out] are split into n_heads heads. Throws core::Error, "PLACEexpected
/// …", for any other shape.
TensorStage stage_from_tensor(const Tensor& tensor, attention::Stage stage, std::size_t n_heads,
                              const std::string& place);

/// Reads a stage from a file; with a layer, the tensor has a leading layer axis and only that layer is read.
///
/// Throws core::Error, "FILE: TENSOR: …", as stage_from_tensor() and TensorFile::read() do.
TensorStage read_stage(const TensorFile& file, const TensorInfo& tensor, attention::Stage stage,
                       std::optional<std::size_t> layer, std::size_t n_heads, const StopToken& progress);

/// Returns a model with stages overridden by files; without a model, the smallest one that has them, see
/// attention::model_of(). Only the latter splits [rows, d_out] into n_heads heads.
///
/// Throws core::Error, in one line, when a file cannot be read, lacks the tensor or does not fit.
attention::Model with_overrides_from_files(const std::optional<attention::Model>& model,
                                           std::span<const StageFile> tensors, std::size_t n_heads = 1);

}  // namespace core::formats
