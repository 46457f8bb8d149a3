#pragma once

#include <armadillo>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/given_tensors.hpp"
#include "core/files/json.hpp"
#include "core/files/read_layer.hpp"

/// What a session names in other files instead of holding it: {"file": "PATH", …}, relative to the session's
/// folder.
namespace core::formats {

/// Where the files lie that a session names.
struct SessionFolder {
  std::filesystem::path path;
  Elsewhere elsewhere = Elsewhere::refused;
};

/// Whether this is an object with a "file".
bool is_in_file(const Json& place);

/// {"file", "tensor", "at"}: the matrix at the leading indices "at" of a tensor; "tensor" may be left out
/// where there is but one.
///
/// Throws core::Error as Json and TensorFile do; Outside when the file, or another that is read with it, lies
/// elsewhere, by a whole path, by "..", or by links, and that is refused. Errors about what lies elsewhere
/// and is allowed quote nothing of it.
arma::mat matrix_in_file(const Json& place, const SessionFolder& folder);

/// The same of a tensor of texts.
std::vector<std::string> texts_in_file(const Json& place, const SessionFolder& folder);

/// The same of a stage that is given.
TensorStage stage_in_file(const Json& place, const SessionFolder& folder, attention::Stage stage);

/// Throws core::Error about what stands at a place or in the file it names, without what it got when that
/// file lies elsewhere.
[[noreturn]] void fail_of(const Json& place, const SessionFolder& folder, const std::string& expected,
                          const std::string& got);

/// A layer of a checkpoint as far as a session takes it from there; mask and scale it says itself.
struct LayerInFile {
  checkpoints::Attention attention;
  attention::Additions additions;
};

/// {"file", "layer"}: a layer of a checkpoint, by its number from 0 or its name. n_heads is what the session
/// says; without it the checkpoint's configuration must. Throws core::Error.
LayerInFile attention_in_file(const Json& place, const SessionFolder& folder,
                              std::optional<std::size_t> n_heads);

/// What a reference to a checkpoint says is left out of its layer, in words; none of other projections.
std::vector<std::string> ignored_words(const Json& projections);

}  // namespace core::formats
