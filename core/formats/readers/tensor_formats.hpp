#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "core/formats/tensors/tensor_file.hpp"

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

/// The format of a file; throws core::Error, naming all formats, when it is none of them or cannot be read.
const TensorFormat& tensor_format_of(const std::filesystem::path& path);

/// Opens a file of any format in the table of tensor_formats, or a folder of such files.
///
/// Throws core::Error, one line that begins with the path, when it is in none of the formats or is damaged.
TensorFile open_tensors(const std::filesystem::path& path);
TensorFile open_tensors(const std::filesystem::path& path, const Token& progress);

/// Whether a file's name ends as one of the formats does, which says what a list of files should show.
bool has_tensor_ending(const std::filesystem::path& path);

}  // namespace core::formats
