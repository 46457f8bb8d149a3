#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/files/tensor.hpp"

namespace core::formats::readers {

/// What a file is that is none of tensors, or packs them in a way that is not read, and how they can be had:
/// "is a Git LFS pointer of 548 MB: run git lfs pull"; "" when its first bytes and its name say nothing of
/// it.
std::string words_on_stranger(const std::filesystem::path& path, std::string_view begin);

/// Gives the bytes from … from + count − 1 of a tensor; they stay until the buffer is used again.
using Fetch = std::function<std::string_view(std::uint64_t from, std::uint64_t count, std::string& buffer,
                                             const Token& progress)>;

/// By how many items a step of each index goes on.
using Strides = std::vector<std::uint64_t>;

/// How a tensor lies in a binary file.
struct RawTensor {
  TensorInfo info;
  std::size_t item_bytes = 8;  ///< of one number, or of one text
  bool big_endian = false;
  Strides strides;        ///< of none, the last index runs fastest and without a gap
  bool deflated = false;  ///< what was fetched before can be fetched again only from the beginning
  std::string place;      ///< "FILE: TENSOR: ", for messages
  Fetch fetch;
};

/// Bytes of all numbers, or nothing when they are beyond 2^62.
std::optional<std::uint64_t> byte_count(const RawTensor& tensor);

/// Of a tensor whose first index runs fastest, as in Fortran.
Strides columns_first(const Shape& shape);

/// Items from the first to the last that a tensor has, none of an empty one, or nothing beyond 2^62.
std::optional<std::uint64_t> span_of(const Shape& shape, const Strides& strides);

/// The entry that reads this tensor; only the bytes of the asked part are fetched where the file lets it.
TensorFile::Entry entry_of(RawTensor tensor);

/// Opens every file of tensors in a folder as one file of tensors.
///
/// A file of one tensor gives it under its name without the ending; NAME.head0, NAME.head1 … of one shape
/// become NAME with the heads as its first dimension, and the folders sequence0, sequence1 … of an export
/// another before it. The tensors of .safetensors files keep their names, as a checkpoint may come in
/// several; those of a PyTorch file beside them are left out when they are the same. So is, with a note, a
/// file that cannot be opened, but among heads and sequences. Throws core::Error when two tensors have one
/// name, heads are missing or of different shapes, or nothing can be opened.
TensorFile open_folder(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers

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
