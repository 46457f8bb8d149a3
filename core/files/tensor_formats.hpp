#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/files/tensor.hpp"

namespace core::formats {

/// A format that tensors are read from.
struct TensorFormat {
  const char* name;     ///< "npz"
  const char* endings;  ///< of its files, as a person writes them: ".npz"
  const char* about;    ///< one line for people
  /// Whether a file is of this format, damaged or not, by its ending and its first bytes.
  bool (*is_meant)(const std::filesystem::path& path, std::string_view begin);
  TensorFile (*open)(const std::filesystem::path& path, const Token& progress);
};

/// All formats that tensors are read from, the surest to be recognised first.
std::span<const TensorFormat> tensor_formats();

/// The format of a file; throws core::Error when it cannot be read or is none of them: it names what it is
/// and what to do, where that is known, or else all formats.
const TensorFormat& tensor_format_of(const std::filesystem::path& path);

/// Opens a file of any format in the table of tensor_formats, or a folder of such files.
///
/// Throws core::Error, one line that begins with the path, when it is in none of the formats or is damaged.
TensorFile open_tensors(const std::filesystem::path& path);
TensorFile open_tensors(const std::filesystem::path& path, const Token& progress);

/// The endings of all formats, with blanks between them: ".npy .npz .safetensors …".
std::string tensor_endings();

/// Whether a file in JSON is the index of a checkpoint in several files, and no session.
bool is_index_of_tensors(const std::filesystem::path& path);

/// Whether a file's name ends as one of the formats does, which says what a list of files should show.
bool has_tensor_ending(const std::filesystem::path& path);

}  // namespace core::formats
