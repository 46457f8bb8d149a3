#include "core/files/tensor_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files/file.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats::readers {
namespace {

using testing::StartsWith;

constexpr std::size_t n_layers = 3, n_rows = 301,
                      n_columns = 997;  // no part of a megabyte ends with one of them

/// The numbers of a tensor of bytes, in the order of its file.
char content(std::size_t layer, std::size_t i, std::size_t j) {
  return static_cast<char>((layer * 83 + i * 7 + j) % 127);
}

/// The same tensor of 3 × 301 × 997 numbers of 4 bytes, the first index running fastest or slowest.
RawTensor tensor_of(std::shared_ptr<const OpenFile> file, bool first_runs_fastest) {
  const Shape shape{n_layers, n_rows, n_columns};
  return {{"a", Dtype::i32, shape},
          4,
          false,
          first_runs_fastest ? columns_first(shape) : Strides(),
          false,
          "a: ",
          [file](std::uint64_t from, std::uint64_t count, std::string& buffer, const core::Token&) {
            file->read(from, count, buffer);
            return std::string_view(buffer);
          }};
}

std::string bytes_of_tensor(bool first_runs_fastest) {
  std::string bytes(4 * n_layers * n_rows * n_columns, '\0');
  for (std::size_t layer = 0; layer < n_layers; ++layer)
    for (std::size_t i = 0; i < n_rows; ++i)
      for (std::size_t j = 0; j < n_columns; ++j) {
        const std::size_t at =
            first_runs_fastest ? layer + n_layers * (i + n_rows * j) : (layer * n_rows + i) * n_columns + j;
        bytes[4 * at] = content(layer, i, j);
      }
  return bytes;
}

TEST(RawTensor, OfSeveralPartsIsReadWholeAndByItsLeadingIndices) {
  for (const bool first_runs_fastest : {false, true}) {
    const support::TemporaryDirectory directory;
    const auto path = written(directory, "a", bytes_of_tensor(first_runs_fastest));
    const auto entry = entry_of(tensor_of(std::make_shared<const OpenFile>(path), first_runs_fastest));
    core::Token progress;
    const Tensor whole = entry.read({}, progress);
    ASSERT_EQ(whole.numbers.size(), n_layers * n_rows * n_columns);
    for (std::size_t layer = 0; layer < n_layers; ++layer) {
      const Tensor part = entry.read(std::vector{layer}, progress);
      EXPECT_EQ(part.shape, (Shape{n_rows, n_columns}));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n_rows; ++i)
        for (std::size_t j = 0; j < n_columns; ++j) {
          wrong += part.numbers[i * n_columns + j] != content(layer, i, j);
          wrong += whole.numbers[(layer * n_rows + i) * n_columns + j] != content(layer, i, j);
        }
      EXPECT_EQ(wrong, 0u) << layer;
      const Tensor row = entry.read(std::vector{layer, std::size_t{300}}, progress);
      for (std::size_t j = 0; j < n_columns; ++j) ASSERT_EQ(row.numbers[j], content(layer, 300, j)) << j;
    }
  }
}

TEST(RawTensor, OfAFileThatShrinksWhileItIsReadIsRefused) {
  for (const bool first_runs_fastest : {false, true}) {
    const support::TemporaryDirectory directory;
    const auto path = written(directory, "a", bytes_of_tensor(first_runs_fastest));
    RawTensor tensor = tensor_of(std::make_shared<const OpenFile>(path), first_runs_fastest);
    tensor.fetch = [&, fetch = tensor.fetch](std::uint64_t from, std::uint64_t count, std::string& buffer,
                                             const core::Token& progress) {
      const std::string_view bytes = fetch(from, count, buffer, progress);
      std::filesystem::resize_file(path, 100);  // before the numbers in them are looked at
      return bytes;
    };
    const auto entry = entry_of(std::move(tensor));
    core::Token progress;
    EXPECT_THAT(support::error_of([&] { entry.read({}, progress); }),
                StartsWith(path.string() + ": became shorter while it was read: expected "));
  }
}

TEST(RawTensor, WithAnyStridesIsReadAsItLies) {
  // Of 3 × 301 × 997 numbers in row-major order: views of which parts are larger and smaller than what is
  // fetched in one go, in all orders of their axes, with gaps, with overlaps and with numbers that are
  // repeated.
  const support::TemporaryDirectory directory;
  const auto path = written(directory, "a", bytes_of_tensor(false));
  const auto file = std::make_shared<const OpenFile>(path);
  const std::pair<Shape, Strides> views[] = {
      {{n_columns, n_rows, n_layers}, {1, n_columns, n_rows * n_columns}},
      {{n_rows, n_layers, n_columns}, {n_columns, n_rows * n_columns, 1}},
      {{n_layers, n_columns}, {n_rows * n_columns, 1}},
      {{n_columns, n_layers}, {1, n_rows * n_columns}},
      {{n_rows, 7}, {n_columns, 100}},
      {{3}, {n_rows * n_columns}},
      {{4, n_rows, 2, 5}, {0, n_columns, 0, 3}},
      {{2, 3, 5}, {0, 1, 0}},
      {{900, 900}, {301, 17}},
      {{500, 600}, {1, 1}}};
  for (const auto& [shape, strides] : views) {
    RawTensor raw = tensor_of(file, false);
    raw.info.shape = shape;
    raw.strides = strides;
    core::Token progress;
    const Tensor whole = entry_of(raw).read({}, progress);
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < whole.numbers.size(); ++k) {
      std::size_t at = 0;
      for (std::size_t rest = k, axis = shape.size(); axis-- > 0; rest /= shape[axis])
        at += rest % shape[axis] * strides[axis];
      wrong += whole.numbers[k] != content(at / n_columns / n_rows, at / n_columns % n_rows, at % n_columns);
    }
    EXPECT_EQ(wrong, 0u) << shape_text(shape);
    const std::size_t second[] = {1};
    EXPECT_EQ(entry_of(raw).read(second, progress).numbers, part_of(whole, second).numbers)
        << shape_text(shape);
  }
}

/// A deflated tensor whose bytes are the number of their mebibyte; how it is fetched is watched.
struct Watched {
  std::uint64_t largest = 0, end = 0;
  std::size_t n_backwards = 0;

  RawTensor tensor(Shape shape, Strides strides, Dtype dtype = Dtype::u8) {
    return {{"a", dtype, std::move(shape)},
            dtype == Dtype::text ? 4 : dtype_bytes(dtype),
            false,
            std::move(strides),
            true,
            "a: ",
            [this](std::uint64_t from, std::uint64_t count, std::string& buffer, const core::Token&) {
              largest = std::max(largest, count);
              n_backwards += from < end;
              end = from + count;
              buffer.clear();
              while (buffer.size() < count) {
                const std::uint64_t at = from + buffer.size(), left = mebibyte - at % mebibyte;
                buffer.append(std::min(left, count - buffer.size()), static_cast<char>(at / mebibyte));
              }
              return std::string_view(buffer);
            }};
  }

  static constexpr std::uint64_t mebibyte = 1 << 20;
};

TEST(RawTensor, ThatIsDeflatedIsUnpackedForwardAndWindowByWindow) {
  constexpr std::uint64_t window = 64 * Watched::mebibyte;
  const std::pair<Shape, Strides> views[] = {{{3}, {70 * Watched::mebibyte}},
                                             {{2}, {(1ull << 30) - 1}},
                                             {{150, 1000}, {Watched::mebibyte - 7, 1}},
                                             {{1000, 150}, {1, Watched::mebibyte - 7}},
                                             {{3, 2, 50}, {100 * Watched::mebibyte - 1, 0, 700'000}}};
  for (const auto& [shape, strides] : views) {
    Watched watched;
    core::Token progress;
    const Tensor tensor = entry_of(watched.tensor(shape, strides)).read({}, progress);
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < tensor.numbers.size(); ++k) {
      std::size_t at = 0;
      for (std::size_t rest = k, axis = shape.size(); axis-- > 0; rest /= shape[axis])
        at += rest % shape[axis] * strides[axis];
      wrong += tensor.numbers[k] != static_cast<double>(at / Watched::mebibyte & 255);
    }
    EXPECT_EQ(wrong, 0u) << shape_text(shape);
    EXPECT_LE(watched.largest, window) << shape_text(shape);
    EXPECT_EQ(watched.n_backwards, 0u) << shape_text(shape);
  }
  Watched watched;
  core::Token progress;
  const Tensor in_order = entry_of(watched.tensor({9'000'000}, {}, Dtype::f64)).read({}, progress);
  EXPECT_EQ(in_order.numbers.size(), 9'000'000u);
  EXPECT_EQ(watched.end, 72'000'000u);
  EXPECT_LE(watched.largest, window);
  EXPECT_EQ(watched.n_backwards, 0u);
}

TEST(RawTensor, ThatIsDeflatedAndOverlapsFarIsRefused) {
  constexpr std::uint64_t mebibyte = Watched::mebibyte;
  Watched watched;
  core::Token progress;
  const Tensor near =
      entry_of(watched.tensor({3, 2, 5}, {3 * mebibyte, 2 * mebibyte, mebibyte})).read({}, progress);
  EXPECT_EQ(near.numbers[29], 12);  // 2 · 3 + 1 · 2 + 4 · 1
  EXPECT_EQ(
      support::error_of([&] {
        entry_of(watched.tensor({3, 2, 50}, {3 * mebibyte, 2 * mebibyte, mebibyte + 1})).read({}, progress);
      }),
      "no error");
  EXPECT_EQ(
      support::error_of([&] {
        entry_of(watched.tensor({30, 20, 5}, {3 * mebibyte, 2 * mebibyte, mebibyte})).read({}, progress);
      }),
      "a: expected deflated numbers whose rows do not overlap, got [30, 20, 5] with strides [3145728, "
      "2097152, 1048576]");
}

TEST(RawTensor, OfTooManyTextsIsRefusedBeforeAnyIsFetched) {
  Watched watched;
  core::Token progress;
  const auto error = [&](std::size_t count, std::size_t item_bytes) {
    RawTensor tensor = watched.tensor({count}, {}, Dtype::text);
    tensor.item_bytes = item_bytes;
    return support::error_of([&] { entry_of(std::move(tensor)).read({}, progress); });
  };
  EXPECT_EQ(error((1 << 20) + 1, 4),
            "a: expected at most 1048576 texts of 268435456 bytes in all, got [1048577] of 4 bytes each");
  EXPECT_EQ(error(257, 1 << 20),
            "a: expected at most 1048576 texts of 268435456 bytes in all, got [257] of 1048576 bytes each");
  EXPECT_EQ(watched.largest, 0u);
  EXPECT_EQ(error(16384, 4), "no error");
}

}  // namespace
}  // namespace core::formats::readers
