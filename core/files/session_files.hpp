#pragma once

#include <armadillo>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/given_tensors.hpp"
#include "core/files/json.hpp"
#include "core/files/layers.hpp"

/// What a session names in other files instead of holding it: {"file": "PATH", …}, relative to the session's
/// folder.
namespace core::formats {

/// Where the files lie that a session names.
struct SessionFolder {
  std::filesystem::path path;
  UntrustedPaths elsewhere = UntrustedPaths::refused;
};

/// Whether this is an object with a "file".
bool is_in_file(const Json& place);

/// {"file", "tensor", "at"}: the matrix at the leading indices "at" of a tensor; "tensor" may be left out
/// where there is but one.
///
/// Throws core::Error as Json and TensorFile do; UntrustedPath when the file, or another that is read with
/// it, lies elsewhere, by a whole path, by "..", or by links, and that is refused. Errors about what lies
/// elsewhere and is allowed quote nothing of it.
arma::mat matrix_in_file(const Json& place, const SessionFolder& folder);

/// The same of a tensor of texts.
std::vector<std::string> texts_in_file(const Json& place, const SessionFolder& folder);

/// The same of a stage that is given.
TensorStage stage_in_file(const Json& place, const SessionFolder& folder, attention::Stage stage);

/// Throws core::Error about the value at a place, or in the file that it names, without what it got when that
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

/// Whether a path that a file of a folder names is relative and leads into that folder, once links are
/// followed; a folder that holds a link elsewhere, itself or in a folder in it, does not.
///
/// What does not exist leads nowhere else. Beside a snapshot of Hugging Face's cache, whose files are links,
/// lies all of the model.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Where a path that does not lie beside leads, in words to put behind its name: ", which leads to
/// \"/srv/x.npy\","; "" where its name says so.
std::string leading_words(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Where core::Error was caught of a file that may lie elsewhere: throws it on, or, where the file does, an
/// error that quotes nothing of what the file holds. place begins the message.
[[noreturn]] void throw_without_contents(const std::string& place, const std::filesystem::path& path,
                                         const std::filesystem::path& folder);

}  // namespace core::formats
