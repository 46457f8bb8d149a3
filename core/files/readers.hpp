#pragma once

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
#include "core/system/file.hpp"

/// What the readers of this room share: tensors as they lie in files, archives, and a reader for each format.
namespace core::formats::readers {

/// Gives the bytes from … from + count − 1 of a tensor; they stay until the buffer is used again.
using Fetch = std::function<std::string_view(std::uint64_t from, std::uint64_t count, std::string& buffer,
                                             const Token& progress)>;

/// Items from one value of each index to the next.
using Strides = std::vector<std::uint64_t>;

/// How a tensor lies in a binary file.
struct RawTensor {
  TensorInfo info;
  std::size_t item_bytes = 8;  ///< of one number, of one text, or of one block
  bool big_endian = false;
  Strides strides;  ///< of none, the last index runs fastest and without a gap

  std::string place;  ///< "FILE: TENSOR: ", for messages
  Fetch fetch;
  std::uint64_t begin = 0;  ///< bytes before it in what fetch gives

  std::size_t block = 1;                                        ///< numbers in an item
  void (*decode)(const char* bytes, float* numbers) = nullptr;  ///< of a block; nullptr of plain numbers
};

/// Bytes of all numbers, or nothing when they are beyond 2^62.
std::optional<std::uint64_t> byte_count(const RawTensor& tensor);

/// Of a tensor whose first index runs fastest, as in Fortran.
Strides columns_first(const Shape& shape);

/// Items from the first to the last that a tensor has, none of an empty one, or nothing beyond 2^62.
std::optional<std::uint64_t> span_of(const Shape& shape, const Strides& strides);

/// The entry that reads this tensor; only the bytes of the asked part are fetched where the file lets it.
TensorFile::Entry entry_of(RawTensor tensor);

/// The entry of numbers that lie in a file as they are. place: "FILE: ".
TensorFile::Entry entry_of(TensorInfo info, const StoredNumbers& stored, const std::string& place);

/// What of an archive or a folder cannot be read, as notes.
class Skipped {
 public:
  /// place is "FILE: "; what notes need not repeat is that, or of a folder "FOLDER/".
  explicit Skipped(std::string place) : Skipped(place, place) {}
  Skipped(std::string place, std::string within) : place_(std::move(place)), within_(std::move(within)) {}

  /// Does something, or notes why it cannot be done.
  template <class Work>
  void unless(Work work) {
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
  /// A note of something within.
  void add(std::string sentence) {
    constexpr std::size_t max_notes = 10;
    if (notes_.size() < max_notes)
      notes_.push_back(std::move(sentence));
    else
      ++n_more_;
  }

  /// Throws the first reason, or an error of these words when there was none.
  [[noreturn]] void fail(const std::string& otherwise) const {
    throw Error(first_.value_or(place_ + otherwise));
  }

  /// All of them, the many in one.
  std::vector<std::string> notes() const {
    std::vector<std::string> all = notes_;
    if (n_more_ > 0) all.push_back("Left out: " + std::to_string(n_more_) + " more.");
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
  std::uint64_t index = 0, size = 0;  ///< place in the archive; bytes of its content
  bool deflated = false;              ///< or stored as it is
  std::string problem;                ///< why it cannot be read: "it is encrypted"; else ""
};

/// Whether bytes begin as a ZIP archive does.
bool looks_like_zip(std::string_view begin);

/// A ZIP archive that is open; several threads may read it, one after the other.
class ZipArchive {
 public:
  /// A member that is encrypted or packed in another way than deflate says so. Throws core::Error when the
  /// archive is damaged, or a member claims to be longer than its packed bytes could become.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::vector<ZipMember>& members() const { return members_; }

  /// The first count bytes of a member, not checked yet; fewer when it is shorter.
  std::string begin(const ZipMember& member, std::uint64_t count) const;

  /// The bytes from … from + count − 1 of a member, of which no more than these are held in memory.
  ///
  /// The first time it is unpacked to its end, which its length and its checksum must fit. After that a part
  /// that follows the one before is unpacked alone, and any part of a member that is stored.
  std::string bytes(const ZipMember& member, std::uint64_t from, std::uint64_t count,
                    const Token& progress) const;

 private:
  struct Reading;  // libzip's

  std::vector<ZipMember> members_;
  std::shared_ptr<Reading> reading_;
};

/// Gives the bytes of a file, or those of a member.
Fetch fetch_from(std::shared_ptr<const system::OpenFile> file);
Fetch fetch_from(std::shared_ptr<const ZipArchive> archive, ZipMember member);

/// What a file is that is none of tensors, or packs them in a way that is not read, and how they can be had:
/// "is a Git LFS pointer of 548 MB: run git lfs pull"; "" when its first bytes and its name say nothing of
/// it.
std::string words_on_unreadable(const std::filesystem::path& path, std::string_view begin);

/// Opens every file of tensors in a folder as one file of tensors.
///
/// A file of one tensor gives it under its name without the ending; NAME.head0, NAME.head1 … of one shape
/// become NAME with the heads as its first dimension, and the folders sequence0, sequence1 … of an export
/// another before it. The tensors of .safetensors files keep their names, as a checkpoint may come in
/// several; those of a PyTorch file beside them are left out when they are the same. So is, with a note, a
/// file that cannot be opened, but among heads and sequences. Throws core::Error when two tensors have one
/// name, heads are missing or of different shapes, or nothing can be opened.
TensorFile open_folder(const std::filesystem::path& path, const Token& progress);

/// Whether bytes begin as a .npy file does.
bool looks_like_npy(std::string_view begin);

/// Opens a .npy file by its header alone.
///
/// Versions 1.0 to 3.0; f2 f4 f8, integers, bool and text (U), of both byte orders, in C and Fortran order.
/// Throws core::Error, "FILE: what is wrong", when the header is damaged, holds another type (pickled
/// objects, complex numbers, records) or claims other bytes than the file has. Source: NumPy,
/// numpy.lib.format.
TensorFile open_npy(const std::filesystem::path& path, const Token& progress);

/// Opens a .npz file: a ZIP archive of .npy files, each a tensor under its name without the ending.
///
/// A member that cannot be read is left out with a note. Throws core::Error when the archive is damaged or
/// nothing in it can be read.
TensorFile open_npz(const std::filesystem::path& path, const Token& progress);

/// Whether bytes begin as a .safetensors file does: a length, then a JSON object.
bool looks_like_safetensors(std::string_view begin);

/// A tensor in the header of a .safetensors file, whose bytes lie from begin to end after the header.
struct LocatedTensor {
  TensorInfo info;
  std::uint64_t begin = 0, end = 0;
};

/// Reads such a header, in the order of its text.
///
/// Throws core::Error when it is no such JSON, or the bytes of tensors do not lie one after the other from
/// the first to the last of n_bytes.
std::vector<LocatedTensor> read_safetensors_header(std::string_view text, std::uint64_t n_bytes,
                                                   const std::string& file_name);

/// Opens a .safetensors file by its header alone, whatever its size.
///
/// F64 F32 F16 BF16 F8_E4M3 F8_E5M2, integers and BOOL, little-endian, row-major. Throws core::Error when the
/// header is longer than the file or no such JSON, names a tensor twice or of another type, or when the
/// tensors' bytes do not lie one after the other from the first byte after the header to the last of the
/// file. Source: github.com/huggingface/safetensors, "Format".
TensorFile open_safetensors(const std::filesystem::path& path, const Token& progress);

/// Whether a file is the index of a checkpoint in several files, by its first bytes and its name.
bool looks_like_index(const std::filesystem::path& path, std::string_view begin);

/// The files that open_index() opens beside an index, each once; none of what is no index, or a broken one.
std::vector<std::string> shards_named_by(const std::filesystem::path& path);

/// Opens the files that an index names, such as model.safetensors.index.json, as one file of tensors.
///
/// They stand in its folder. Throws core::Error when one is missing, lies in another folder, is no file of
/// safetensors or PyTorch, or lacks a tensor that the index says it has.
TensorFile open_index(const std::filesystem::path& path, const Token& progress);

/// Whether bytes begin as a pickle does, or as an archive of torch.save.
bool looks_like_pytorch(std::string_view begin);

/// Whether a member of a ZIP archive is what torch.save calls its pickle.
bool is_pickle_of_pytorch(std::string_view member);

/// Opens what torch.save wrote, as a ZIP archive or in the older way, when it holds tensors and plain values.
///
/// Nothing in it is run. Throws core::Error that names what else it holds (a torch.nn.Module, a function),
/// and when it is damaged or a tensor lies beyond its storage. Source: PyTorch, torch/serialization.py.
TensorFile open_pytorch(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
