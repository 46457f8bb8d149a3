#include "core/files/raw_tensor.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/numbers.hpp"

namespace core::formats::readers {
namespace {

constexpr std::size_t numbers_in_one_go = std::size_t{1} << 17;  // numbers between two looks at the progress
constexpr std::size_t most_bytes = std::size_t{1} << 20;         // fetched in one go
constexpr std::size_t window_bytes = std::size_t{1} << 26;       // of what is deflated
constexpr std::size_t most_texts = std::size_t{1} << 20, most_text_bytes = std::size_t{1} << 28;

/// The bytes of a tensor's items first, first + 1 …, fetched go by go; of those that are deflated a window
/// goes forward over them, so that none is unpacked again and again.
class Items {
 public:
  Items(const RawTensor& raw, std::uint64_t first, std::uint64_t count, const Token& progress)
      : raw_(raw), first_(first), count_(count), progress_(progress) {}
  Items(const Items&) = delete;  // it looks into its own buffer
  Items& operator=(const Items&) = delete;

  std::string_view operator()(std::uint64_t from, std::uint64_t count) {
    if (!raw_.deflated) return fetch(from, count);
    if (from < begin_ || from + count > end_) move_window(from, from + count);
    return std::string_view(window_).substr((from - begin_) * raw_.item_bytes, count * raw_.item_bytes);
  }

 private:
  /// The window keeps those of its items that are still wanted, as no others can be had soon.
  void move_window(std::uint64_t from, std::uint64_t to) {
    const bool keeps = from >= begin_ && from < end_;
    if (keeps) {
      window_.erase(0, (from - begin_) * raw_.item_bytes);
    } else {
      std::string().swap(window_);  // an assignment would keep its room
      end_ = from;
    }
    begin_ = from;
    const std::uint64_t further = std::max<std::uint64_t>(window_bytes / raw_.item_bytes, 1);
    to = std::min(std::max(to, end_ + further), count_);
    const std::string_view more = fetch(end_, to - end_);
    if (window_.empty() && more.data() == buffer_.data() && more.size() == buffer_.size())
      window_.swap(buffer_);
    else
      window_ += more;
    std::string().swap(buffer_);
    end_ = to;
  }

  std::string_view fetch(std::uint64_t from, std::uint64_t count) {
    return raw_.fetch((first_ + from) * raw_.item_bytes, count * raw_.item_bytes, buffer_, progress_);
  }

  const RawTensor& raw_;
  std::uint64_t first_, count_;
  const Token& progress_;
  std::string buffer_, window_;
  std::uint64_t begin_ = 0, end_ = 0;  ///< items that the window holds
};

[[noreturn]] void fail_integer(const RawTensor& raw, std::size_t index) {
  throw Error(raw.place +
              "expected whole numbers that float64 can hold (up to 2^53), got a larger one at place " +
              std::to_string(index));
}

/// Items that are fetched in one go when they lie so many bytes apart.
std::size_t in_one_go(std::size_t bytes) {
  return std::clamp<std::size_t>(most_bytes / std::max<std::size_t>(bytes, 1), 1, numbers_in_one_go);
}

void decode_text(const RawTensor& raw, Items& items, std::size_t count, Tensor& tensor) {
  if (count > most_texts || count > most_text_bytes / raw.item_bytes)
    throw Error(raw.place + "expected at most " + std::to_string(most_texts) + " texts of " +
                std::to_string(most_text_bytes) + " bytes in all, got " + shape_text(tensor.shape) + " of " +
                std::to_string(raw.item_bytes) + " bytes each");
  tensor.texts.reserve(count);
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

Strides rows_first(const Shape& shape) {
  Strides strides(shape.size());
  std::uint64_t apart = 1;
  for (std::size_t k = shape.size(); k-- > 0; apart *= shape[k]) strides[k] = apart;
  return strides;
}

/// An index of a tensor that takes several values: how far a step goes in the file and in row-major order.
struct Axis {
  std::size_t length;
  std::uint64_t apart;
  std::size_t step;
};

/// The axes of a part, those with the longest steps in the file first.
std::vector<Axis> axes_of(const Shape& shape, const Strides& strides) {
  const Strides steps = rows_first(shape);
  std::vector<Axis> axes;
  for (std::size_t k = 0; k < shape.size(); ++k)
    if (shape[k] != 1) axes.push_back({shape[k], strides[k], steps[k]});
  std::ranges::stable_sort(axes, std::greater(), &Axis::apart);
  return axes;
}

/// Reads the numbers of a part that has strides, as much of the file in one go as lies close together.
class Strided {
 public:
  Strided(const RawTensor& raw, Items& items, const Strides& strides, Tensor& tensor, const Token& progress)
      : raw_(raw),
        items_(items),
        tensor_(tensor),
        progress_(progress),
        axes_(axes_of(tensor.shape, strides)) {
    for (std::size_t k = axes_.size(); k-- > 0;)
      spans_[k] = spans_[k + 1] + (axes_[k].length - 1) * axes_[k].apart;
    if (raw.deflated && goes_back() && spans_[0] > window_bytes / raw.item_bytes)
      throw Error(raw.place + "expected deflated numbers whose rows do not overlap, got " +
                  shape_text(tensor.shape) + " with strides " + shape_text({strides.begin(), strides.end()}));
  }

  void read() { read(0, 0, 0); }

 private:
  std::uint64_t most_items() const { return std::max<std::uint64_t>(most_bytes / raw_.item_bytes, 1); }

  /// Whether what is fetched later may stand before what was fetched: a step is shorter than what it is of.
  bool goes_back() const {
    for (std::size_t k = 0; k < axes_.size(); ++k)
      if (spans_[k + 1] > most_items() && axes_[k].apart < spans_[k + 1]) return true;
    return false;
  }

  /// Reads what the axes from this one on run through: items from `from`, into places from `to`.
  void read(std::size_t axis, std::uint64_t from, std::size_t to) {
    if (axis == axes_.size()) return fetch(axis, 1, from, to);
    const auto [length, apart, step] = axes_[axis];
    const std::uint64_t most = most_items();
    if (spans_[axis + 1] > most) {
      for (std::size_t k = 0; k < length; ++k) read(axis + 1, from + k * apart, to + k * step);
      return;
    }
    const std::uint64_t fit = apart == 0 ? length : (most - spans_[axis + 1]) / apart + 1;
    const auto together = static_cast<std::size_t>(std::min<std::uint64_t>(fit, length));
    for (std::size_t k = 0; k < length; k += together)
      fetch(axis, std::min(together, length - k), from + k * apart, to + k * step);
  }

  void fetch(std::size_t axis, std::size_t length, std::uint64_t from, std::size_t to) {
    const std::uint64_t apart = axis < axes_.size() ? axes_[axis].apart : 0;
    const std::uint64_t rest = axis < axes_.size() ? spans_[axis + 1] : 1;
    const std::string_view bytes = items_(from, (length - 1) * apart + rest);
    put(axis, length, bytes.data(), to);
    progress_.add(bytes.size());
  }

  void put(std::size_t axis, std::size_t length, const char* bytes, std::size_t to) {
    if (axis >= axes_.size()) return decode(bytes, 1, to);
    const auto [whole, apart, step] = axes_[axis];
    const bool is_last = axis + 1 == axes_.size();
    if (is_last && apart == 1 && step == 1) return decode(bytes, length, to);
    for (std::size_t k = 0; k < length; ++k) {
      const char* at = bytes + k * apart * raw_.item_bytes;
      if (is_last)
        decode(at, 1, to + k * step);
      else
        put(axis + 1, axes_[axis + 1].length, at, to + k * step);
    }
  }

  void decode(const char* bytes, std::size_t count, std::size_t to) {
    const std::size_t good =
        decode_numbers(bytes, raw_.info.dtype, raw_.big_endian, count, &tensor_.numbers[to]);
    if (good < count) fail_integer(raw_, to + good);
  }

  const RawTensor& raw_;
  Items& items_;
  Tensor& tensor_;
  const Token& progress_;
  std::vector<Axis> axes_;
  std::vector<std::uint64_t> spans_ =
      std::vector<std::uint64_t>(axes_.size() + 1, 1);  ///< of the axes from one on
};

Tensor read(const RawTensor& raw, std::span<const std::size_t> leading, const Token& progress) {
  const Shape& shape = raw.info.shape;
  Tensor tensor;
  static_cast<TensorInfo&>(tensor) = raw.info;
  const auto n_leading = static_cast<std::ptrdiff_t>(leading.size());
  tensor.shape.assign(shape.begin() + n_leading, shape.end());
  const std::size_t count = count_of(tensor.shape).value();  // the file and the asked part have been checked
  const bool strided = !raw.strides.empty() && raw.strides != rows_first(shape);
  if (strided && raw.info.dtype == Dtype::text)
    throw Error(raw.place + "text in Fortran order is not supported");
  const Strides strides = strided ? raw.strides : rows_first(shape);
  std::uint64_t first = 0;
  for (std::size_t k = 0; k < leading.size(); ++k) first += leading[k] * strides[k];
  if (strided) {
    if (count == 0) return tensor;
    const Strides rest(strides.begin() + n_leading, strides.end());
    tensor.numbers.resize(count);
    Items items(raw, first, span_of(tensor.shape, rest).value(), progress);
    Strided(raw, items, rest, tensor, progress).read();
    return tensor;
  }
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

Strides columns_first(const Shape& shape) {
  Strides strides;
  std::uint64_t apart = 1;
  for (const std::size_t length : shape) {
    strides.push_back(apart);
    apart *= length;
  }
  return strides;
}

std::optional<std::uint64_t> span_of(const Shape& shape, const Strides& strides) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  if (std::ranges::find(shape, 0u) != shape.end()) return 0;
  std::uint64_t last = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] > 1 && strides[k] > (most - 1 - last) / (shape[k] - 1)) return std::nullopt;
    last += (shape[k] - 1) * strides[k];
  }
  return last + 1;
}

TensorFile::Entry entry_of(RawTensor tensor) {
  TensorInfo info = tensor.info;
  return {std::move(info),
          [raw = std::move(tensor)](std::span<const std::size_t> leading, const Token& progress) {
            return read(raw, leading, progress);
          }};
}

}  // namespace core::formats::readers
