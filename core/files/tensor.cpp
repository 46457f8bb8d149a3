#include "core/files/tensor.hpp"

#include <array>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace core::formats {
namespace {

struct Kind {
  const char* name;
  std::size_t bytes;
};
constexpr std::array kinds{
    Kind{"float64", 8},       Kind{"float32", 4},     Kind{"float16", 2}, Kind{"bfloat16", 2},
    Kind{"float8_e4m3fn", 1}, Kind{"float8_e5m2", 1}, Kind{"int64", 8},   Kind{"int32", 4},
    Kind{"int16", 2},         Kind{"int8", 1},        Kind{"uint64", 8},  Kind{"uint32", 4},
    Kind{"uint16", 2},        Kind{"uint8", 1},       Kind{"bool", 1},    Kind{"text", 0}};

[[noreturn]] void fail(const Tensor& tensor, const std::string& what) {
  throw Error("tensor " + tensor.name + " of shape " + shape_text(tensor.shape) + ": " + what);
}

/// Where the part at leading indices begins, in numbers; throws when there is no such part.
std::size_t begin_of(const Tensor& tensor, std::span<const std::size_t> leading) {
  if (leading.size() > tensor.shape.size())
    fail(tensor, "expected at most " + std::to_string(tensor.shape.size()) + " indices, got " +
                     std::to_string(leading.size()));
  std::size_t begin = 0;
  for (std::size_t k = 0; k < tensor.shape.size(); ++k) {
    if (k < leading.size() && leading[k] >= tensor.shape[k])
      fail(tensor, "expected an index below " + std::to_string(tensor.shape[k]) + ", got " +
                       std::to_string(leading[k]));
    begin = begin * tensor.shape[k] + (k < leading.size() ? leading[k] : 0);
  }
  return begin;
}

}  // namespace

const char* dtype_name(Dtype dtype) {
  return kinds[static_cast<std::size_t>(dtype)].name;
}

std::size_t dtype_bytes(Dtype dtype) {
  return kinds[static_cast<std::size_t>(dtype)].bytes;
}

std::string shape_text(const Shape& shape) {
  return "[" + text::joined(shape, ", ", [](std::size_t length) { return std::to_string(length); }) + "]";
}

std::optional<std::uint64_t> count_of(std::span<const std::size_t> lengths) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  std::uint64_t count = 1;
  bool too_many = false;
  for (const std::size_t length : lengths) {
    if (length == 0) return 0;
    too_many = too_many || length > most / count;
    if (!too_many) count *= length;
  }
  return too_many ? std::nullopt : std::optional(count);
}

Tensor part_of(const Tensor& tensor, std::span<const std::size_t> leading) {
  if (leading.empty()) return tensor;
  const auto from = static_cast<std::ptrdiff_t>(begin_of(tensor, leading));
  Tensor part;
  part.name = tensor.name;
  part.dtype = tensor.dtype;
  part.printed_to = tensor.printed_to;
  part.shape.assign(tensor.shape.begin() + static_cast<std::ptrdiff_t>(leading.size()), tensor.shape.end());
  const auto count = static_cast<std::ptrdiff_t>(count_of(part.shape).value_or(0));
  if (tensor.dtype == Dtype::text)
    part.texts.assign(tensor.texts.begin() + from, tensor.texts.begin() + from + count);
  else
    part.numbers.assign(tensor.numbers.begin() + from, tensor.numbers.begin() + from + count);
  if (leading.size() < 2 && tensor.shape.size() > 1) part.column_labels = tensor.column_labels;
  return part;
}

arma::mat matrix(const Tensor& tensor, std::span<const std::size_t> leading) {
  if (tensor.dtype == Dtype::text) fail(tensor, "expected numbers, got text");
  const std::size_t from = begin_of(tensor, leading);
  const auto shape = std::span(tensor.shape).subspan(leading.size());
  if (shape.size() > 2)
    fail(tensor, "expected a matrix, got " + std::to_string(shape.size()) + " dimensions");
  const std::size_t n_cols = shape.empty() ? 1 : shape.back();
  const std::size_t n_rows = shape.size() < 2 ? 1 : shape.front();
  if (tensor.numbers.empty()) fail(tensor, "expected at least one number");  // of how many rows ever
  return arma::mat(tensor.numbers.data() + from, n_cols, n_rows).t();
}

std::vector<arma::mat> matrices(const Tensor& tensor) {
  if (tensor.shape.size() < 2) fail(tensor, "expected at least two dimensions");
  const std::size_t n_cols = tensor.shape.back(), n_rows = tensor.shape[tensor.shape.size() - 2];
  if (tensor.numbers.empty() || n_rows * n_cols == 0) fail(tensor, "expected at least one number");
  std::vector<arma::mat> all;
  for (std::size_t from = 0; from < tensor.numbers.size(); from += n_rows * n_cols)
    all.push_back(arma::mat(tensor.numbers.data() + from, n_cols, n_rows).t());
  return all;
}

}  // namespace core::formats
