#pragma once

#include <fmt/core.h>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/token.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/system/file.hpp"

/// Shared parts of the readers: raw tensors, archives, and a reader for each format.
namespace core::formats::readers {

/// Returns the bytes from … from + count − 1 of a tensor, which are valid until the buffer is reused.
using Fetch = std::function<std::string_view(std::uint64_t from, std::uint64_t count, std::string& buffer,
                                             const StopToken& progress)>;

/// Distance between consecutive values of each index, in items.
using Strides = std::vector<std::uint64_t>;

/// Layout of a tensor in a binary file.
struct RawTensor {
  TensorInfo info;
  std::size_t item_bytes = 8;  ///< of one number, of one text, or of one block
  bool big_endian = false;
  Strides strides;  ///< if empty, the tensor is row-major without gaps

  std::string place;  ///< "FILE: TENSOR: ", for messages
  Fetch fetch;
  std::uint64_t begin = 0;  ///< offset of its first byte in fetch

  std::size_t block = 1;                                        ///< numbers in an item
  void (*decode)(const char* bytes, float* numbers) = nullptr;  ///< of a block; nullptr for plain numbers
};

/// Returns the bytes of all numbers, or nothing beyond 2^62.
std::optional<std::uint64_t> byte_count(const RawTensor& tensor);

/// Returns the strides of a column-major tensor, as in Fortran.
Strides column_major_strides(const TensorShape& shape);

/// Returns the number of items from the first to the last, 0 if the tensor is empty, or nothing beyond 2^62.
std::optional<std::uint64_t> span_of(const TensorShape& shape, const Strides& strides);

/// Returns an entry that reads this tensor; if possible, it fetches only the bytes of the requested part.
TensorEntry make_entry(RawTensor tensor);

/// Returns an entry for numbers stored uncompressed in a file. place: "FILE: ".
TensorEntry make_entry(TensorInfo info, const StoredNumbers& stored, const std::string& place);

/// Notes about the parts of an archive or folder that cannot be read.
class SkipNotes {
 public:
  /// place is "FILE: "; within, a prefix that notes omit, is the same by default, for a folder "FOLDER/".
  explicit SkipNotes(std::string place) : SkipNotes(place, place) {}
  SkipNotes(std::string place, std::string within) : place_(std::move(place)), within_(std::move(within)) {}

  /// Calls work, or notes why it failed.
  template <class Work>
  void run_or_note(Work work) {
    try {
      work();
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      const std::string what = error.what();
      if (!first_) first_ = what;
      note(what.starts_with(within_) ? what.substr(within_.size()) : what);
    }
  }
  void note(const std::string& what) { add("Left out: " + what + "."); }
  /// Adds a note; beyond max_notes it is only counted.
  void add(std::string sentence) {
    constexpr std::size_t max_notes = 10;
    if (notes_.size() < max_notes)
      notes_.push_back(std::move(sentence));
    else
      ++n_more_;
  }

  /// Throws the first error, or one with this message if there was none.
  [[noreturn]] void fail(const std::string& fallback) const {
    throw Error(first_.value_or(place_ + fallback));
  }

  /// Returns all notes, with one for those that were only counted.
  std::vector<std::string> notes() const {
    std::vector<std::string> all = notes_;
    if (n_more_ > 0) all.push_back(fmt::format("Left out: {} more.", n_more_));
    return all;
  }

 private:
  std::string place_, within_;
  std::optional<std::string> first_;
  std::vector<std::string> notes_;
  std::size_t n_more_ = 0;
};

/// A file in a ZIP archive.
struct ZipMember {
  std::string name;
  std::uint64_t index = 0, size = 0;  ///< index in the archive; uncompressed bytes
  bool deflated = false;              ///< otherwise stored uncompressed
  std::string problem;                ///< why it cannot be read: "it is encrypted"; else ""
};

/// Returns whether bytes begin like a ZIP archive.
bool looks_like_zip(std::string_view begin);

/// An open ZIP archive; reads from several threads are serialized.
class ZipArchive {
 public:
  /// Opens an archive; members with encryption or compression other than deflate get a problem. Throws
  /// core::Error when the archive is damaged, or a member claims more bytes than deflate allows.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::vector<ZipMember>& members() const { return members_; }

  /// Returns the first count bytes of a member, unchecked; fewer if it is shorter.
  std::string begin(const ZipMember& member, std::uint64_t count) const;

  /// Returns the bytes from … from + count − 1 of a member, and holds no more than these in memory.
  ///
  /// The first read unpacks the whole member to check its length and checksum. Later reads unpack only the
  /// requested part if it follows the previous one or the member is stored uncompressed.
  std::string bytes(const ZipMember& member, std::uint64_t from, std::uint64_t count,
                    const StopToken& progress) const;

 private:
  struct State;

  std::vector<ZipMember> members_;
  std::shared_ptr<State> state_;
};

/// Returns a function that reads the bytes of a file or an archive member.
Fetch fetch_from(std::shared_ptr<const system::OpenFile> file);
Fetch fetch_from(std::shared_ptr<const ZipArchive> archive, ZipMember member);

/// Returns the unsupported format of a file and how to convert it: "is a Git LFS pointer of 548 MB, not the
/// file itself: run git lfs pull"; "" if its first bytes and name reveal none.
std::string unsupported_format_message(const std::filesystem::path& path, std::string_view begin);

/// Opens all tensor files of a folder as one tensor file.
///
/// The tensor of a file with only one gets the file's name without its ending; NAME.head0, NAME.head1 … of
/// one shape become NAME with a leading head dimension, and the folders sequence0, sequence1 … of an export
/// add another before it. Tensors of .safetensors files keep their names, as a checkpoint may have several
/// shards. Skips, with a note, a PyTorch file with the same tensors and a file that cannot be opened, unless
/// it belongs to heads or sequences. Throws core::Error when two tensors have one name, heads are missing or
/// differ in shape, or nothing can be opened.
TensorFile open_folder(const std::filesystem::path& path, const StopToken& progress, DecimalMark mark);

/// Returns whether bytes begin like a .npy file.
bool looks_like_npy(std::string_view begin);

/// Opens a .npy file by reading only its header.
///
/// Versions 1.0 to 3.0; f2 f4 f8, integers, bool and text (U), in both byte orders, C and Fortran order.
/// Throws core::Error, "FILE: what is wrong", when the header is damaged, has another type (pickled objects,
/// complex numbers, records) or does not fit the file size. Source: NumPy, numpy.lib.format.
TensorFile open_npy(const std::filesystem::path& path, const StopToken& progress);

/// Opens a .npz file: a ZIP archive of .npy files, each a tensor named like its file without the ending.
///
/// Skips a member that cannot be read, with a note. Throws core::Error when the archive is damaged or nothing
/// in it can be read.
TensorFile open_npz(const std::filesystem::path& path, const StopToken& progress);

/// Returns whether bytes begin like a .safetensors file: a length, then a JSON object.
bool looks_like_safetensors(std::string_view begin);

/// A tensor in the header of a .safetensors file; its bytes are begin … end − 1 after the header.
struct LocatedTensor {
  TensorInfo info;
  std::uint64_t begin = 0, end = 0;
};

/// Reads the header of a .safetensors file; tensors are in the order of its text.
///
/// Throws core::Error when it is not such JSON, or the bytes of the tensors do not fill n_bytes without gaps
/// or overlaps.
std::vector<LocatedTensor> read_safetensors_header(std::string_view text, std::uint64_t n_bytes,
                                                   const std::string& file_name);

/// Opens a .safetensors file by reading only its header.
///
/// F64 F32 F16 BF16 F8_E4M3 F8_E5M2, integers and BOOL, little-endian, row-major. Throws core::Error when the
/// header is longer than the file or not such JSON, has a tensor twice or of another type, or when the bytes
/// of the tensors do not fill the rest of the file without gaps or overlaps. Source:
/// github.com/huggingface/safetensors, "Format".
TensorFile open_safetensors(const std::filesystem::path& path, const StopToken& progress);

/// Returns whether a file is the index of a sharded checkpoint, by its first bytes and its name.
bool looks_like_index(const std::filesystem::path& path, std::string_view begin);

/// Returns the shards that open_index() opens, each once; none if a file is not an index or is damaged.
std::vector<std::string> list_shards(const std::filesystem::path& path);

/// Opens the shards of an index such as model.safetensors.index.json as one tensor file.
///
/// They must be in its folder. Throws core::Error when a shard is missing, in another folder, in neither
/// safetensors nor PyTorch format, or lacks a tensor that the index assigns to it.
TensorFile open_index(const std::filesystem::path& path, const StopToken& progress);

/// Returns the number of a shard of Meta's checkpoints: 1 of "consolidated.01.pth"; nothing for other files.
std::optional<std::size_t> shard_number(const std::filesystem::path& path);

/// Returns the names of the shards in the folder of a shard, in the order of their numbers.
std::vector<std::string> list_numbered_shards(const std::filesystem::path& path);

/// Opens the shards consolidated.00.pth, consolidated.01.pth … in the folder of one of them as one tensor
/// file.
///
/// Their matrices are joined as model parallelism divides them. Throws core::Error when a number is missing,
/// shards do not fit one another, or they are fewer than the sizes in params.json need; without params.json,
/// when a single shard may not be the whole. Source: github.com/meta-llama/llama, model.py.
TensorFile open_numbered_shards(const std::filesystem::path& path, const StopToken& progress);

/// Returns whether bytes begin like a pickle or an archive of torch.save.
bool looks_like_pytorch(std::string_view begin);

/// Returns whether a member of a ZIP archive has the name of torch.save's pickle.
bool is_torch_pickle_name(std::string_view member);

/// Opens the tensors of a file of torch.save, a ZIP archive or the legacy format.
///
/// Runs nothing in it: other objects (a function, a number of NumPy) are left out, and notes name them.
/// Throws core::Error when it holds nothing but these, or a torch.nn.Module, when it is damaged, or when a
/// tensor exceeds its storage. Source: PyTorch, torch/serialization.py.
TensorFile open_pytorch(const std::filesystem::path& path, const StopToken& progress);

}  // namespace core::formats::readers
