#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/files/tensor.hpp"

namespace core::formats {

/// The mark before the fraction of numbers that are written as text.
enum class DecimalMark { point, comma };

/// A file format of tensors.
struct TensorFormat {
  const char* name;     ///< "npz"
  const char* endings;  ///< endings of its files: ".npz"
  const char* about;    ///< one line for the user
  /// Returns whether a file is of this format, damaged or not, by its ending and its first bytes.
  bool (*matches)(const std::filesystem::path& path, std::string_view begin);
  TensorFile (*open)(const std::filesystem::path& path, const StopToken& progress, DecimalMark mark);
};

/// Returns all formats of tensors, the most reliably recognized first.
std::span<const TensorFormat> tensor_formats();

/// Returns the format of a file. Throws core::Error when it cannot be read or has none of them; the message
/// names its real format and what to do, if known, or else all formats.
const TensorFormat& tensor_format_of(const std::filesystem::path& path);

/// Opens a file of any format in tensor_formats(), or a folder of such files, whose tables and texts have
/// this decimal mark.
///
/// Throws core::Error, one line that begins with the path, when it has none of the formats or is damaged.
TensorFile open_tensors(const std::filesystem::path& path);
TensorFile open_tensors(const std::filesystem::path& path, const StopToken& progress,
                        DecimalMark mark = DecimalMark::point);

/// Returns the endings of all formats, separated by spaces: ".npy .npz .safetensors …".
std::string tensor_endings();

/// Returns whether a JSON file is the index of a sharded checkpoint, and not a session.
bool is_index_of_tensors(const std::filesystem::path& path);

/// Returns whether a file's name has the ending of a format, so that lists of files should show it.
bool has_tensor_ending(const std::filesystem::path& path);

}  // namespace core::formats
