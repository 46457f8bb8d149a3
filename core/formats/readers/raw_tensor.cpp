#include "core/formats/readers/raw_tensor.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/formats/readers/numbers.hpp"

namespace core::formats::readers {
namespace {

constexpr std::size_t step = std::size_t{1} << 17;        // numbers between two looks at the progress
constexpr std::size_t most_bytes = std::size_t{1} << 20;  // fetched in one go

/// The bytes of a tensor's items first, first + 1 …, fetched go by go, or all in one where that is as quick.
class Items {
 public:
  Items(const RawTensor& raw, std::uint64_t first, std::uint64_t count, const Token& progress)
      : raw_(raw), first_(first), progress_(progress) {
    if (raw.at_once) all_ = fetch(0, count);
  }
  Items(const Items&) = delete;  // it looks into its own buffer
  Items& operator=(const Items&) = delete;

  std::string_view operator()(std::uint64_t from, std::uint64_t count) {
    return all_ ? all_->substr(from * raw_.item_bytes, count * raw_.item_bytes) : fetch(from, count);
  }

 private:
  std::string_view fetch(std::uint64_t from, std::uint64_t count) {
    return raw_.fetch((first_ + from) * raw_.item_bytes, count * raw_.item_bytes, buffer_, progress_);
  }

  const RawTensor& raw_;
  std::uint64_t first_;
  const Token& progress_;
  std::string buffer_;
  std::optional<std::string_view> all_;
};

/// Places in row-major order of the numbers of a tensor whose first index runs fastest, one after the other.
class ColumnsFirst {
 public:
  explicit ColumnsFirst(const Shape& lengths)
      : lengths_(lengths), strides_(lengths.size()), index_(lengths.size()) {
    std::size_t stride = 1;
    for (std::size_t k = lengths.size(); k-- > 0; stride *= lengths[k]) strides_[k] = stride;
  }
  std::size_t at() const { return at_; }
  void advance() {
    for (std::size_t k = 0; k < lengths_.size(); ++k) {
      at_ += strides_[k];
      if (++index_[k] < lengths_[k]) return;
      at_ -= strides_[k] * lengths_[k];
      index_[k] = 0;
    }
  }

 private:
  Shape lengths_, strides_, index_;
  std::size_t at_ = 0;
};

[[noreturn]] void fail_integer(const RawTensor& raw, std::size_t index) {
  throw Error(raw.place +
              "expected whole numbers that float64 can hold (up to 2^53), got a larger one at place " +
              std::to_string(index));
}

/// Items that are fetched in one go when they lie so many bytes apart.
std::size_t in_one_go(std::size_t bytes) {
  return std::clamp<std::size_t>(most_bytes / std::max<std::size_t>(bytes, 1), 1, step);
}

void decode_text(const RawTensor& raw, Items& items, std::size_t count, Tensor& tensor) {
  const std::size_t most = in_one_go(raw.item_bytes);
  for (std::size_t k = 0; k < count; k += most) {
    const std::size_t n = std::min(most, count - k);
    const std::string_view bytes = items(k, n);
    for (std::size_t i = 0; i < n; ++i)
      tensor.texts.push_back(decode_utf32(bytes.data() + i * raw.item_bytes, raw.item_bytes, raw.big_endian));
  }
}

void decode_in_order(const RawTensor& raw, Items& items, Tensor& tensor, const Token& progress) {
  const std::size_t count = tensor.numbers.size(), most = in_one_go(raw.item_bytes);
  for (std::size_t k = 0; k < count; k += most) {
    const std::size_t n = std::min(most, count - k);
    const std::size_t good =
        decode_numbers(items(k, n).data(), raw.info.dtype, raw.big_endian, n, tensor.numbers.data() + k);
    if (good < n) fail_integer(raw, k + good);
    progress.add(n * raw.item_bytes);
  }
}

/// Every apart-th item, the first index of the tensor running fastest.
void decode_columns_first(const RawTensor& raw, Items& items, std::size_t apart, Tensor& tensor,
                          const Token& progress) {
  const std::size_t count = tensor.numbers.size(), most = in_one_go(apart * raw.item_bytes);
  ColumnsFirst place(tensor.shape);
  for (std::size_t k = 0; k < count; k += most) {
    const std::size_t n = std::min(most, count - k);
    const std::string_view bytes = items(k * apart, (n - 1) * apart + 1);
    for (std::size_t i = 0; i < n; ++i, place.advance()) {
      const char* item = bytes.data() + i * apart * raw.item_bytes;
      if (decode_numbers(item, raw.info.dtype, raw.big_endian, 1, &tensor.numbers[place.at()]) < 1)
        fail_integer(raw, place.at());
    }
    progress.add(n * raw.item_bytes);
  }
}

Tensor read(const RawTensor& raw, std::span<const std::size_t> leading, const Token& progress) {
  const Shape& shape = raw.info.shape;
  Tensor tensor;
  static_cast<TensorInfo&>(tensor) = raw.info;
  tensor.shape.assign(shape.begin() + static_cast<std::ptrdiff_t>(leading.size()), shape.end());
  const std::size_t count = count_of(tensor.shape).value();  // the file and the asked part have been checked
  const bool columns_first = raw.columns_first && shape.size() > 1;
  if (columns_first && raw.info.dtype == Dtype::text)
    throw Error(raw.place + "text in Fortran order is not supported");
  if (columns_first && count > 0) {
    std::size_t first = 0, apart = 1;
    for (std::size_t k = 0; k < leading.size(); apart *= shape[k++]) first += leading[k] * apart;
    tensor.numbers.resize(count);
    Items items(raw, first, (count - 1) * apart + 1, progress);
    decode_columns_first(raw, items, apart, tensor, progress);
    return tensor;
  }
  std::uint64_t first = 0;
  for (std::size_t k = 0; k < shape.size(); ++k)
    first = first * shape[k] + (k < leading.size() ? leading[k] : 0);
  Items items(raw, first, count, progress);
  if (raw.info.dtype == Dtype::text) {
    decode_text(raw, items, count, tensor);
  } else {
    tensor.numbers.resize(count);
    decode_in_order(raw, items, tensor, progress);
  }
  return tensor;
}

}  // namespace

std::optional<std::uint64_t> byte_count(const RawTensor& tensor) {
  Shape lengths = tensor.info.shape;
  lengths.push_back(tensor.item_bytes);
  return count_of(lengths);
}

TensorFile::Entry entry_of(RawTensor tensor) {
  TensorInfo info = tensor.info;
  return {std::move(info),
          [raw = std::move(tensor)](std::span<const std::size_t> leading, const Token& progress) {
            return read(raw, leading, progress);
          }};
}

}  // namespace core::formats::readers
