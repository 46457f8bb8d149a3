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

/// Values that a session reads from other files: {"file": "PATH", …}, relative to the session's folder.
namespace core::formats {

/// Folder of the files that a session names.
struct SessionFolder {
  std::filesystem::path path;
  UntrustedPaths untrusted_paths = UntrustedPaths::refused;
};

/// Returns whether this is an object with a "file".
bool is_file_reference(const Json& place);

/// Reads {"file", "tensor", "at"}: the matrix at the leading indices "at" of a tensor; "tensor" is optional
/// if there is only one.
///
/// Throws core::Error as Json and TensorFile do; UntrustedPath when the file, or another read with it, is
/// outside the folder, by an absolute path, ".." or links, and that is refused. Errors about an allowed file
/// outside do not quote its content.
arma::mat read_referenced_matrix(const Json& place, const SessionFolder& folder);

/// Reads the texts of a tensor in the same way.
std::vector<std::string> read_referenced_texts(const Json& place, const SessionFolder& folder);

/// Reads an overridden stage in the same way.
TensorStage read_referenced_stage(const Json& place, const SessionFolder& folder, attention::Stage stage);

/// Throws core::Error about a value or the file that it names; omits got if that file is outside the folder.
[[noreturn]] void fail_about_reference(const Json& place, const SessionFolder& folder,
                                       const std::string& expected, const std::string& got);

/// Parts of a session that come from a checkpoint layer; mask and scale are in the session itself.
struct ReferencedLayer {
  checkpoints::Attention attention;
  attention::Additions additions;
};

/// Reads {"file", "layer"}: a layer of a checkpoint, by its number from 0 or its name. n_heads is the
/// session's value; without it the checkpoint must give one. Throws core::Error.
ReferencedLayer read_referenced_layer(const Json& place, const SessionFolder& folder,
                                      std::optional<std::size_t> n_heads);

/// Returns descriptions of the features that a reference to a checkpoint ignores; none for other projections.
std::vector<std::string> ignored_features(const Json& projections);

/// Returns whether a path is relative and, after following links, inside a folder; false for a folder with a
/// link to the outside, also in its subfolders.
///
/// A path that does not exist does not lead outside. For a snapshot in Hugging Face's cache, whose files are
/// links, the whole model folder counts as inside.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Returns a path as a session in a folder names it: relative if it lies there, else absolute.
std::filesystem::path path_in_session(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Returns where a path outside the folder leads, to append to its name: ", which leads to \"/srv/x.npy\",";
/// "" if the name shows it.
std::string link_target_text(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Rethrows the core::Error being handled, about a file; if that is outside the folder, throws one that does
/// not quote its content. place begins the message.
[[noreturn]] void rethrow_redacted(const std::string& place, const std::filesystem::path& path,
                                   const std::filesystem::path& folder);

}  // namespace core::formats
