#include "core/formats/readers/raw_tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/readers/open_file.hpp"
#include "tests/core/formats/readers/known_tensors.hpp"
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
RawTensor tensor_of(std::shared_ptr<const OpenFile> file, bool columns_first) {
  return {{"a", Dtype::i32, {n_layers, n_rows, n_columns}},
          4,
          false,
          columns_first,
          false,
          "a: ",
          [file](std::uint64_t from, std::uint64_t count, std::string& buffer, const core::Token&) {
            file->read(from, count, buffer);
            return std::string_view(buffer);
          }};
}

std::string bytes_of_tensor(bool columns_first) {
  std::string bytes(4 * n_layers * n_rows * n_columns, '\0');
  for (std::size_t layer = 0; layer < n_layers; ++layer)
    for (std::size_t i = 0; i < n_rows; ++i)
      for (std::size_t j = 0; j < n_columns; ++j) {
        const std::size_t at =
            columns_first ? layer + n_layers * (i + n_rows * j) : (layer * n_rows + i) * n_columns + j;
        bytes[4 * at] = content(layer, i, j);
      }
  return bytes;
}

TEST(RawTensor, OfSeveralPartsIsReadWholeAndByItsLeadingIndices) {
  for (const bool columns_first : {false, true}) {
    const support::TemporaryDirectory directory;
    const auto path = written(directory, "a", bytes_of_tensor(columns_first));
    const auto entry = entry_of(tensor_of(std::make_shared<const OpenFile>(path), columns_first));
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
  for (const bool columns_first : {false, true}) {
    const support::TemporaryDirectory directory;
    const auto path = written(directory, "a", bytes_of_tensor(columns_first));
    RawTensor tensor = tensor_of(std::make_shared<const OpenFile>(path), columns_first);
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

}  // namespace
}  // namespace core::formats::readers
