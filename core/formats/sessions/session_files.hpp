#pragma once

#include <armadillo>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/checkpoints/projections.hpp"
#include "core/formats/files/json.hpp"
#include "core/formats/tensors/tensor.hpp"

/// What a session names in other files instead of holding it: {"file": "PATH", …}, relative to the session's
/// folder.
namespace core::formats {

/// Whether this is an object with a "file".
bool is_in_file(const Json& place);

/// {"file", "tensor", "at"}: the part at the leading indices "at" of a tensor; "tensor" may be left out where
/// there is but one. Throws core::Error as Json and TensorFile do.
Tensor tensor_in_file(const Json& place, const std::filesystem::path& folder);

/// The same where a matrix remains.
arma::mat matrix_in_file(const Json& place, const std::filesystem::path& folder);

/// The same of a tensor of texts.
std::vector<std::string> texts_in_file(const Json& place, const std::filesystem::path& folder);

/// {"file", "layer"}: the projections of a layer of a checkpoint, by its number from 0 or its name. n_heads
/// is what the session says; without it the checkpoint's configuration must. Throws core::Error.
checkpoints::Attention attention_in_file(const Json& place, const std::filesystem::path& folder,
                                         std::optional<std::size_t> n_heads);

/// What a reference to a checkpoint says is left out of its layer, in words; none of other projections.
std::vector<std::string> ignored_words(const Json& projections);

}  // namespace core::formats
