#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// A stage whose numbers stand in a file of tensors.
struct GivenTensor {
  std::string stage;  ///< "weights", or "embeddings", which are the model's own
  std::string
      source;  ///< "FILE" or "FILE:TENSOR"; without a name, the tensor of the stage's name, or the only one
  std::optional<std::size_t> layer = {};  ///< the index into a first axis of layers
  /// Of a table, when its first line is 0, 1, 2 …; else that is of numbers.
  bool has_header_line = false;
};

/// "FILE" or "FILE:TENSOR", of which a file's own name may hold the colon.
struct TensorAddress {
  std::filesystem::path file;
  std::string tensor;
};
TensorAddress address_of(const std::string& source);

/// A stage as a tensor holds it.
struct TensorStage {
  attention::GivenStage given;
  std::size_t n_sequences = 1;
};

/// A stage from a tensor: [rows, columns] of a single head, [heads, rows, columns] or [sequences, heads,
/// rows, columns].
///
/// Queries, keys and values of [rows, d_out] are cut into n_heads bands. Throws core::Error, "PLACEexpected
/// …", when the shape is another.
TensorStage stage_of(const Tensor& tensor, attention::Stage stage, std::size_t n_heads,
                     const std::string& place);

/// The same from a file; with a layer the tensor has one axis more in front, of which no other layer is read.
///
/// Throws core::Error, "FILE: TENSOR: …", as stage_of() and TensorFile::read() do.
TensorStage read_stage(const TensorFile& file, const TensorInfo& tensor, attention::Stage stage,
                       std::optional<std::size_t> layer, std::size_t n_heads, const Token& progress);

/// A model with stages from files, or without a model the smallest one in which they are given; see
/// attention::model_of(). There [rows, d_out] are cut for n_heads heads; a model has its own.
///
/// Throws core::Error, in one line, when a file cannot be read, holds no such tensor or does not fit.
attention::Model with_given_tensors(const std::optional<attention::Model>& model,
                                    std::span<const GivenTensor> tensors, std::size_t n_heads = 1);

}  // namespace core::formats
