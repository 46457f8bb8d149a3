#include "core/formats/readers/raw_tensor.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/formats/readers/numbers.hpp"

namespace core::formats::readers {
namespace {

constexpr std::size_t step = std::size_t{1} << 18;  // numbers between two looks at the progress

/// Indices into the file of the asked numbers, in row-major order, for a tensor whose first index runs
/// fastest.
class ColumnsFirst {
 public:
  ColumnsFirst(const Shape& shape, std::span<const std::size_t> leading) : index_(shape.size()) {
    std::size_t stride = 1;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (k < leading.size()) at_ += leading[k] * stride;
      strides_.push_back(stride);
      stride *= shape[k];
    }
    lengths_ = shape;
    n_fixed_ = leading.size();
  }
  std::size_t at() const { return at_; }
  void advance() {
    for (std::size_t k = lengths_.size(); k-- > n_fixed_;) {
      at_ += strides_[k];
      if (++index_[k] < lengths_[k]) return;
      at_ -= strides_[k] * lengths_[k];
      index_[k] = 0;
    }
  }

 private:
  Shape lengths_, strides_, index_;
  std::size_t n_fixed_ = 0, at_ = 0;
};

void decode_text(const RawTensor& raw, std::string_view bytes, Tensor& tensor) {
  for (std::size_t k = 0; k * raw.item_bytes < bytes.size(); ++k)
    tensor.texts.push_back(decode_utf32(bytes.data() + k * raw.item_bytes, raw.item_bytes, raw.big_endian));
}

[[noreturn]] void fail_integer(const RawTensor& raw, std::size_t index) {
  throw Error(raw.place +
              "expected whole numbers that float64 can hold (up to 2^53), got a larger one at place " +
              std::to_string(index));
}

void decode_in_order(const RawTensor& raw, std::string_view bytes, Tensor& tensor, Progress& progress) {
  const std::size_t count = tensor.numbers.size();
  for (std::size_t k = 0; k < count; k += step) {
    const std::size_t n = std::min(step, count - k);
    const std::size_t good = decode_numbers(bytes.data() + k * raw.item_bytes, raw.info.dtype, raw.big_endian,
                                            n, tensor.numbers.data() + k);
    if (good < n) fail_integer(raw, k + good);
    progress.add(n * raw.item_bytes);
  }
}

void decode_columns_first(const RawTensor& raw, std::string_view bytes, std::span<const std::size_t> leading,
                          Tensor& tensor, Progress& progress) {
  ColumnsFirst place(raw.info.shape, leading);
  for (std::size_t k = 0; k < tensor.numbers.size(); ++k, place.advance()) {
    const char* item = bytes.data() + place.at() * raw.item_bytes;
    if (decode_numbers(item, raw.info.dtype, raw.big_endian, 1, &tensor.numbers[k]) < 1) fail_integer(raw, k);
    if (k % step == 0) progress.add(std::min(step, tensor.numbers.size() - k) * raw.item_bytes);
  }
}

Tensor read(const RawTensor& raw, std::span<const std::size_t> leading, Progress& progress) {
  Tensor tensor;
  static_cast<TensorInfo&>(tensor) = raw.info;
  tensor.shape.erase(tensor.shape.begin(),
                     tensor.shape.begin() + static_cast<std::ptrdiff_t>(leading.size()));
  const std::size_t count = count_of(tensor.shape).value();  // the file and the asked part have been checked
  std::string buffer;
  if (raw.columns_first && raw.info.shape.size() > 1) {
    if (raw.info.dtype == Dtype::text) throw Error(raw.place + "text in Fortran order is not supported");
    const std::string_view all = raw.fetch(0, byte_count(raw).value(), buffer, progress);
    tensor.numbers.resize(count);
    decode_columns_first(raw, all, leading, tensor, progress);
    return tensor;
  }
  std::uint64_t first = 0;
  for (std::size_t k = 0; k < raw.info.shape.size(); ++k)
    first = first * raw.info.shape[k] + (k < leading.size() ? leading[k] : 0);
  const std::string_view part = raw.fetch(first * raw.item_bytes, count * raw.item_bytes, buffer, progress);
  if (raw.info.dtype == Dtype::text) {
    decode_text(raw, part, tensor);
  } else {
    tensor.numbers.resize(count);
    decode_in_order(raw, part, tensor, progress);
  }
  return tensor;
}

}  // namespace

std::size_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::i64:
    case Dtype::u64:
      return 8;
    case Dtype::f32:
    case Dtype::i32:
    case Dtype::u32:
      return 4;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::i16:
    case Dtype::u16:
      return 2;
    case Dtype::i8:
    case Dtype::u8:
    case Dtype::boolean:
      return 1;
    case Dtype::text:
      break;
  }
  return 0;
}

std::optional<std::uint64_t> byte_count(const RawTensor& tensor) {
  Shape lengths = tensor.info.shape;
  lengths.push_back(tensor.item_bytes);
  return count_of(lengths);
}

TensorFile::Entry entry_of(RawTensor tensor) {
  TensorInfo info = tensor.info;
  return {std::move(info),
          [raw = std::move(tensor)](std::span<const std::size_t> leading, Progress& progress) {
            return read(raw, leading, progress);
          }};
}

}  // namespace core::formats::readers
