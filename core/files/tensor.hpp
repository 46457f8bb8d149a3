#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// "float32", "bfloat16", "bool", "text": as NumPy and PyTorch call it.
const char* dtype_name(Dtype dtype);

/// Bytes of one number of a dtype; a text has no length of its own.
std::size_t dtype_bytes(Dtype dtype);

/// Any number of lengths, the last of the index that runs fastest; none for a single number.
using Shape = std::vector<std::size_t>;

/// As many as NumPy has; readers of text refuse more.
constexpr std::size_t most_dimensions = 32;

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

}  // namespace core::formats
