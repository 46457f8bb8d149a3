#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/token.hpp"

namespace core::system {
class OpenFile;
}

namespace core::formats {

/// What the numbers of a tensor are in its file; read, they are float64 all the same.
enum class Dtype {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  text
};

/// What a dtype is called; "" in a format that has none of it.
struct DtypeNames {
  Dtype dtype;
  std::size_t bytes;        ///< of one number; a text has no length of its own
  const char* name;         ///< "float32", "bfloat16", "bool": as NumPy and PyTorch call it
  const char* npy;          ///< "f4" of "<f4" in .npy files
  const char* safetensors;  ///< "F32"
  const char* storage;      ///< "Float" of torch.FloatStorage
};
/// All dtypes in their order.
std::span<const DtypeNames> dtypes();
/// The dtype of numbers that is called so: find_dtype("F32", &DtypeNames::safetensors); or nothing.
std::optional<Dtype> find_dtype(std::string_view word, const char* DtypeNames::*vocabulary);

/// "float32", "bfloat16", "bool", "text".
const char* dtype_name(Dtype dtype);

/// Bytes of one number of a dtype; a text has no length of its own.
std::size_t dtype_bytes(Dtype dtype);

/// Any number of lengths, the last of the index that runs fastest; none for a single number.
using Shape = std::vector<std::size_t>;

/// As many as NumPy has; readers of text refuse more.
constexpr std::size_t max_dimensions = 32;

/// "[12, 512, 512]".
std::string shape_text(const Shape& shape);

/// The product of all lengths, or nothing when it is beyond 2^62.
std::optional<std::uint64_t> count_of(std::span<const std::size_t> lengths);

/// What is known of a tensor before any of its numbers is read.
struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::f64;
  Shape shape;
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// A tensor read from a file, or the part of one at given leading indices.
struct Tensor : TensorInfo {
  std::vector<double> numbers;                         ///< row-major; empty when dtype is Dtype::text
  std::vector<std::string> texts;                      ///< row-major, in UTF-8, when dtype is Dtype::text
  std::vector<std::string> row_labels, column_labels;  ///< of a table that has them, or empty
  double printed_to = 0;  ///< of a text: half a unit of the last digit shown, where that is largest
};

/// The part of a tensor at leading indices; its shape is what remains.
///
/// Throws core::Error when there are more indices than dimensions or one is too large.
Tensor part_of(const Tensor& tensor, std::span<const std::size_t> leading);

/// The numbers at leading indices that leave two dimensions, or one, which becomes a row, or none.
///
/// Throws core::Error, naming the tensor, when more remain, it holds text or nothing, or an index is too
/// large.
arma::mat matrix(const Tensor& tensor, std::span<const std::size_t> leading = {});

/// All matrices that the last two of its dimensions are, in the order of the indices before them.
///
/// Throws core::Error, naming the tensor, when it has fewer dimensions, or holds text or nothing.
std::vector<arma::mat> matrices(const Tensor& tensor);

/// Turns count numbers of a dtype, which lie one after the other at bytes, into float64, without rounding.
///
/// Gives the index of the first 64-bit integer that float64 cannot hold, or count.
std::size_t decode_numbers(const char* bytes, Dtype dtype, bool big_endian, std::size_t count,
                           double* numbers);

/// A NumPy text of UTF-32 as UTF-8, without the zeros that fill it up; what is no character becomes U+FFFD.
std::string decode_utf32(const char* bytes, std::size_t n_bytes, bool big_endian);

/// More numbers than these are not read at once; a part of the tensor is to be chosen.
constexpr std::uint64_t max_numbers = std::uint64_t{1} << 28;

/// Where the numbers of a tensor lie in a file as they are: row after row, little-endian, without a gap.
struct StoredNumbers {
  std::shared_ptr<const system::OpenFile> file;
  std::uint64_t begin = 0;           ///< bytes of the file before them
  Dtype dtype = Dtype::f32;          ///< of plain numbers
  const char* packing = "";          ///< "Q8_0", as GGUF calls it, or "" of plain numbers
  std::size_t block = 1, bytes = 4;  ///< numbers in a block, and bytes of a block
  void (*decode)(const char* bytes, float* numbers) = nullptr;  ///< one block; nullptr of plain numbers
};

/// A file of tensors that has been opened: what is in it is known, its numbers are read when asked for.
class TensorFile {
 public:
  /// Reads the part of a tensor at leading indices, all of it without any.
  using Read = std::function<Tensor(std::span<const std::size_t> leading, const Token& progress)>;
  struct Entry {
    TensorInfo info;
    Read read;
    std::optional<StoredNumbers> stored = {};  ///< where that is known
  };

  /// Notes are sentences on what was left out. Names and notes are on one line and do nothing to a terminal:
  /// "\x1b" is ESC. Throws core::Error when two entries have one name, or get one by that.
  TensorFile(std::filesystem::path path, const char* format, std::vector<Entry> entries,
             std::vector<std::string> notes = {});

  const std::filesystem::path& path() const { return path_; }
  /// "FILE: ", as every error about it begins.
  std::string place() const { return path_.string() + ": "; }
  /// The name of its format in the table of tensor_formats.
  const char* format() const { return format_; }
  /// All tensors, in the order of the file.
  const std::vector<TensorInfo>& tensors() const { return infos_; }
  /// What of the file is not among the tensors, and why: "Left out: a: expected numbers, got …."
  const std::vector<std::string>& notes() const { return notes_; }
  /// The tensor of that name, or nullptr.
  const TensorInfo* find(std::string_view name) const;
  /// The tensor of that name. Throws core::Error when there is none.
  const TensorInfo& info(std::string_view name) const;

  /// The numbers at leading indices: read("weights", {3}) of [12, 8, 512, 512] is [8, 512, 512], and no more
  /// than that is read.
  ///
  /// Throws core::Error, "FILE: TENSOR: what is wrong", when there is no such tensor or part of it, more than
  /// max_numbers are asked for, the file is damaged, or a 64-bit integer has no float64; Stopped when that
  /// was asked for.
  Tensor read(std::string_view name, std::span<const std::size_t> leading, const Token& progress) const;
  Tensor read(std::string_view name, std::span<const std::size_t> leading = {}) const;
  /// Where the numbers of a tensor lie, or nullptr when they are nowhere as they are. Throws core::Error when
  /// there is no such tensor.
  const StoredNumbers* stored(std::string_view name) const;

 private:
  std::filesystem::path path_;
  const char* format_;
  std::vector<TensorInfo> infos_;
  std::vector<Read> reads_;
  std::vector<std::optional<StoredNumbers>> stored_;
  std::vector<std::size_t> by_name_;  ///< places among infos_, in the order of their names
  std::vector<std::string> notes_;
};

/// The entry of a tensor that is in memory.
TensorFile::Entry entry_of(Tensor tensor);

}  // namespace core::formats
