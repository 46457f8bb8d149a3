#include <fmt/core.h>
#include <algorithm>

#include "core/files/readers.hpp"

namespace core::formats::readers {
namespace {

constexpr std::size_t max_texts = std::size_t{1} << 20, max_text_bytes = std::size_t{1} << 28;
constexpr std::size_t bytes_at_once = std::size_t{1} << 20;  // between two progress updates

[[noreturn]] void fail_integer(const RawTensor& raw, std::size_t index) {
  throw Error(
      fmt::format("{}expected whole numbers that float64 can hold (up to 2^53), got a larger one at place {}",
                  raw.place, index));
}

/// Calls use(k, n, bytes) for items k … k + n − 1, which are stored in this order from item first on.
template <class Use>
void for_each_chunk(const RawTensor& raw, std::uint64_t first, std::size_t count, const StopToken& progress,
                    Use use) {
  const std::size_t items_per_chunk = std::max<std::size_t>(bytes_at_once / raw.item_bytes, 1);
  std::string buffer;
  for (std::size_t k = 0; k < count; k += items_per_chunk) {
    const std::size_t n = std::min(items_per_chunk, count - k);
    use(k, n,
        raw.fetch(raw.begin + (first + k) * raw.item_bytes, n * raw.item_bytes, buffer, progress).data());
    progress.add(n * raw.item_bytes);
  }
}

void read_blocks(const RawTensor& raw, std::uint64_t first, const StopToken& progress, Tensor& tensor) {
  const std::size_t count = tensor.numbers.size();
  if (first % raw.block != 0 || count % raw.block != 0)
    throw Error(raw.place + "expected a part of whole rows");
  std::vector<float> numbers(raw.block);
  for_each_chunk(raw, first / raw.block, count / raw.block, progress,
                 [&](std::size_t k, std::size_t n, const char* bytes) {
                   for (std::size_t i = 0; i < n; ++i) {
                     raw.decode(bytes + i * raw.item_bytes, numbers.data());
                     std::ranges::copy(numbers, tensor.numbers.data() + (k + i) * raw.block);
                   }
                 });
}

void decode(const RawTensor& raw, const char* bytes, std::size_t count, std::size_t to, Tensor& tensor) {
  const std::size_t good =
      decode_numbers(bytes, raw.info.dtype, raw.big_endian, count, tensor.numbers.data() + to);
  if (good < count) fail_integer(raw, to + good);
}

void read_texts(const RawTensor& raw, std::uint64_t first, std::size_t count, const StopToken& progress,
                Tensor& tensor) {
  if (count > max_texts || count > max_text_bytes / raw.item_bytes)
    throw Error(fmt::format("{}expected at most {} texts of {} bytes in all, got {} of {} bytes each",
                            raw.place, max_texts, max_text_bytes, shape_text(tensor.shape), raw.item_bytes));
  tensor.texts.reserve(count);
  for_each_chunk(raw, first, count, progress, [&](std::size_t, std::size_t n, const char* bytes) {
    for (std::size_t i = 0; i < n; ++i)
      tensor.texts.push_back(decode_utf32(bytes + i * raw.item_bytes, raw.item_bytes, raw.big_endian));
  });
}

/// Reads numbers with strides: fetches all bytes from the first to the last and picks each number from them.
void read_strided(const RawTensor& raw, std::uint64_t first, const Strides& strides,
                  const StopToken& progress, Tensor& tensor) {
  const std::uint64_t span = span_of(tensor.shape, strides).value();
  if (span > max_numbers)
    throw Error(fmt::format(
        "{}expected at most {} numbers from the first to the last, got {} with strides {}", raw.place,
        max_numbers, shape_text(tensor.shape), shape_text({strides.begin(), strides.end()})));
  std::string buffer;
  const std::string_view bytes =
      raw.fetch(raw.begin + first * raw.item_bytes, span * raw.item_bytes, buffer, progress);
  progress.add(bytes.size());
  const std::size_t row = tensor.shape.back();  // numbers that may be contiguous
  std::vector<std::size_t> index(tensor.shape.size());
  for (std::size_t to = 0; to < tensor.numbers.size(); to += row) {
    std::uint64_t at = 0;
    for (std::size_t k = 0; k < index.size(); ++k) at += index[k] * strides[k];
    if (strides.back() == 1)
      decode(raw, bytes.data() + at * raw.item_bytes, row, to, tensor);
    else
      for (std::size_t j = 0; j < row; ++j)
        decode(raw, bytes.data() + (at + j * strides.back()) * raw.item_bytes, 1, to + j, tensor);
    for (std::size_t k = index.size() - 1; k-- > 0;) {  // the next row
      if (++index[k] < tensor.shape[k]) break;
      index[k] = 0;
    }
  }
}

Strides row_major_strides(const TensorShape& shape) {
  Strides strides(shape.size());
  std::uint64_t stride = 1;
  for (std::size_t k = shape.size(); k-- > 0; stride *= shape[k]) strides[k] = stride;
  return strides;
}

Tensor read(const RawTensor& raw, std::span<const std::size_t> leading, const StopToken& progress) {
  const TensorShape& shape = raw.info.shape;
  Tensor tensor;
  static_cast<TensorInfo&>(tensor) = raw.info;
  const auto n_leading = static_cast<std::ptrdiff_t>(leading.size());
  tensor.shape.assign(shape.begin() + n_leading, shape.end());
  const std::size_t count = count_of(tensor.shape).value();  // the file and the part have been checked
  const bool is_text = raw.info.dtype == Dtype::text;
  const bool is_strided = !raw.strides.empty() && raw.strides != row_major_strides(shape);
  if (is_strided && is_text) throw Error(raw.place + "text in Fortran order is not supported");
  const Strides strides = is_strided ? raw.strides : row_major_strides(shape);
  std::uint64_t first = 0;
  for (std::size_t k = 0; k < leading.size(); ++k) first += leading[k] * strides[k];
  if (is_text) {
    read_texts(raw, first, count, progress, tensor);
    return tensor;
  }
  tensor.numbers.resize(count);
  const Strides rest(strides.begin() + n_leading, strides.end());
  if (raw.decode)
    read_blocks(raw, first, progress, tensor);
  else if (is_strided && count > 0 && !tensor.shape.empty() && rest != row_major_strides(tensor.shape))
    read_strided(raw, first, rest, progress, tensor);
  else
    for_each_chunk(raw, first, count, progress, [&](std::size_t k, std::size_t n, const char* bytes) {
      decode(raw, bytes, n, k, tensor);
    });
  return tensor;
}

}  // namespace

std::optional<std::uint64_t> byte_count(const RawTensor& tensor) {
  TensorShape lengths = tensor.info.shape;
  lengths.push_back(tensor.item_bytes);
  return count_of(lengths);
}

Strides column_major_strides(const TensorShape& shape) {
  Strides strides;
  std::uint64_t stride = 1;
  for (const std::size_t length : shape) {
    strides.push_back(stride);
    stride *= length;
  }
  return strides;
}

std::optional<std::uint64_t> span_of(const TensorShape& shape, const Strides& strides) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 62;
  if (std::ranges::find(shape, 0u) != shape.end()) return 0;
  std::uint64_t last = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] > 1 && strides[k] > (limit - 1 - last) / (shape[k] - 1)) return std::nullopt;
    last += (shape[k] - 1) * strides[k];
  }
  return last + 1;
}

TensorEntry make_entry(RawTensor tensor) {
  TensorInfo info = tensor.info;
  return {std::move(info),
          [raw = std::move(tensor)](std::span<const std::size_t> leading, const StopToken& progress) {
            return read(raw, leading, progress);
          }};
}

TensorEntry make_entry(TensorInfo info, const StoredNumbers& stored, const std::string& place) {
  RawTensor raw{{info.name, stored.dtype, info.shape},
                stored.bytes,
                false,
                {},
                place + info.name + ": ",
                fetch_from(stored.file),
                stored.begin,
                stored.block,
                stored.decode};
  const auto read_part = [raw = std::move(raw), dtype = info.dtype](std::span<const std::size_t> leading,
                                                                    const StopToken& progress) {
    Tensor part = read(raw, leading, progress);
    part.dtype = dtype;
    return part;
  };
  return {std::move(info), read_part, stored};
}

Fetch fetch_from(std::shared_ptr<const system::OpenFile> file) {
  return [file = std::move(file)](std::uint64_t from, std::uint64_t count, std::string& buffer,
                                  const StopToken&) {
    file->read(from, count, buffer);
    return std::string_view(buffer);
  };
}

}  // namespace core::formats::readers
