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

/// Type of a tensor's numbers in its file; in memory they are float64.
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

/// Names of a dtype; "" in a format that does not have it.
struct DtypeNames {
  Dtype dtype;
  std::size_t bytes;        ///< of one number; 0 for text
  const char* name;         ///< "float32", "bfloat16", "bool", as in NumPy and PyTorch
  const char* npy;          ///< "f4" of "<f4" in .npy files
  const char* safetensors;  ///< "F32"
  const char* storage;      ///< "Float" of torch.FloatStorage
};
/// Returns all dtypes in the order of the enum.
std::span<const DtypeNames> dtypes();
/// Returns the dtype of numbers with a name, or nothing: find_dtype("F32", &DtypeNames::safetensors).
std::optional<Dtype> find_dtype(std::string_view word, const char* DtypeNames::*name_field);

/// Returns "float32", "bfloat16", "bool", "text".
const char* dtype_name(Dtype dtype);

/// Returns the bytes of one number of a dtype; 0 for text.
std::size_t dtype_bytes(Dtype dtype);

/// Lengths of any number of dimensions, the fastest-varying last; empty for a single number.
using TensorShape = std::vector<std::size_t>;

/// As in NumPy 1; readers refuse more.
constexpr std::size_t max_dimensions = 32;

/// Returns "[12, 512, 512]".
std::string shape_text(const TensorShape& shape);

/// Returns the product of all lengths, or nothing beyond 2^62.
std::optional<std::uint64_t> count_of(std::span<const std::size_t> lengths);

/// Metadata of a tensor, known before its numbers are read.
struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::f64;
  TensorShape shape;
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// A tensor read from a file, or the part of one at given leading indices.
struct Tensor : TensorInfo {
  std::vector<double> numbers;                         ///< row-major; empty when dtype is Dtype::text
  std::vector<std::string> texts;                      ///< row-major, in UTF-8, when dtype is Dtype::text
  std::vector<std::string> row_labels, column_labels;  ///< of a table that has them, or empty
  double printed_precision = 0;                        ///< of printed text: largest half unit of a last digit
};

/// Returns the part of a tensor at leading indices, in the remaining shape.
Tensor slice_tensor(const Tensor& tensor, std::span<const std::size_t> leading);

/// Returns the matrix at leading indices; one remaining dimension becomes a row, none a 1 × 1 matrix.
///
/// Throws core::Error, naming the tensor, when more than two dimensions remain, it holds text or nothing, or
/// an index is too large.
arma::mat matrix(const Tensor& tensor, std::span<const std::size_t> leading = {});

/// Returns the matrices of the last two dimensions, in the order of the indices before them.
///
/// Throws core::Error, naming the tensor, when it has fewer dimensions, or holds text or nothing.
std::vector<arma::mat> matrices(const Tensor& tensor);

/// Converts count contiguous numbers of a dtype at bytes to float64, without rounding.
///
/// Returns the index of the first 64-bit integer that float64 cannot hold, or count.
std::size_t decode_numbers(const char* bytes, Dtype dtype, bool big_endian, std::size_t count,
                           double* numbers);

/// Returns a UTF-32 text of NumPy as UTF-8, without trailing zeros; invalid characters become U+FFFD.
std::string decode_utf32(const char* bytes, std::size_t n_bytes, bool big_endian);

/// Maximum numbers of one read; of larger tensors a part must be chosen.
constexpr std::uint64_t max_numbers = std::uint64_t{1} << 28;

/// Location of uncompressed numbers of a tensor in a file: row-major, little-endian, without gaps.
struct StoredNumbers {
  std::shared_ptr<const system::OpenFile> file;
  std::uint64_t begin = 0;           ///< offset in the file, in bytes
  Dtype dtype = Dtype::f32;          ///< of plain numbers
  const char* quantization = "";     ///< "Q8_0", as in GGUF, or "" for plain numbers
  std::size_t block = 1, bytes = 4;  ///< numbers in a block, and bytes of a block
  void (*decode)(const char* bytes, float* numbers) = nullptr;  ///< of one block; nullptr for plain numbers
};

/// Reads the part of a tensor at leading indices, or all of it if there are none.
using ReadTensor = std::function<Tensor(std::span<const std::size_t> leading, const StopToken& progress)>;

/// A tensor of a file that is opened.
struct TensorEntry {
  TensorInfo info;
  ReadTensor read;
  std::optional<StoredNumbers> stored = {};  ///< if known
};

/// An open tensor file: its content is known, its numbers are read on demand.
class TensorFile {
 public:
  /// Notes are sentences about skipped parts. Names and notes are one line with escaped control characters:
  /// "\x1b" is ESC. Throws core::Error when two entries have one name, also after escaping.
  TensorFile(std::filesystem::path path, const char* format, std::vector<TensorEntry> entries,
             std::vector<std::string> notes = {});

  const std::filesystem::path& path() const { return path_; }
  /// Returns "FILE: ", the beginning of every error about it.
  std::string place() const { return path_.string() + ": "; }
  /// Returns the name of its format in tensor_formats().
  const char* format() const { return format_; }
  /// Returns all tensors, in the order of the file.
  const std::vector<TensorInfo>& tensors() const { return infos_; }
  /// Returns the parts of the file that were skipped, and why: "Left out: a: expected numbers, got …."
  const std::vector<std::string>& notes() const { return notes_; }
  /// Returns the tensor of that name, or nullptr.
  const TensorInfo* find(std::string_view name) const;
  /// Returns the tensor of that name. Throws core::Error when there is none.
  const TensorInfo& info(std::string_view name) const;
  /// Returns the tensors whose names begin so, sorted by name.
  std::vector<const TensorInfo*> with_prefix(std::string_view prefix) const;

  /// Returns the numbers at leading indices, and if possible reads only these: read("weights", {3}) of [12,
  /// 8, 512, 512] is [8, 512, 512].
  ///
  /// Throws core::Error, "FILE: TENSOR: what is wrong", when there is no such tensor or part, more than
  /// max_numbers are requested, the file is damaged, or float64 cannot hold a 64-bit integer; Stopped when
  /// progress has been stopped.
  Tensor read(std::string_view name, std::span<const std::size_t> leading, const StopToken& progress) const;
  Tensor read(std::string_view name, std::span<const std::size_t> leading = {}) const;
  /// Returns the location of a tensor's numbers, or nullptr if the file does not hold them uncompressed.
  /// Throws core::Error when there is no such tensor.
  const StoredNumbers* stored(std::string_view name) const;

 private:
  std::filesystem::path path_;
  const char* format_;
  std::vector<TensorInfo> infos_;
  std::vector<ReadTensor> reads_;
  std::vector<std::optional<StoredNumbers>> stored_;
  std::vector<std::size_t> by_name_;  ///< indices into infos_, sorted by name
  std::vector<std::string> notes_;
};

/// Returns an entry for a tensor in memory.
TensorEntry make_entry(Tensor tensor);

}  // namespace core::formats
