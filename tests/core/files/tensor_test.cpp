#include <gmock/gmock.h>

#include "core/files/readers.hpp"
#include "core/files/tensor.hpp"
#include "core/system/file.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"

namespace core::formats::readers {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Tensor two_by_two_by_three() {
  return {{"weights", Dtype::f64, {2, 2, 3}}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {}, {}, {}};
}

TEST(TensorMatrix, IsTheSliceAtLeadingIndicesRowByRow) {
  const std::size_t one[] = {1};
  const arma::mat m = matrix(two_by_two_by_three(), one);
  EXPECT_TRUE(support::is_near(m, arma::mat{{6, 7, 8}, {9, 10, 11}}, 0));
}

TEST(TensorMatrix, OfOneDimensionIsARow) {
  const std::size_t two[] = {0, 1};
  EXPECT_TRUE(support::is_near(matrix(two_by_two_by_three(), two), arma::mat{{3, 4, 5}}, 0));
}

TEST(TensorMatrix, NeedsEnoughIndicesWithinTheShape) {
  const std::size_t four[] = {0, 0, 0, 0}, beyond[] = {2};
  EXPECT_EQ(support::error_of([] { matrix(two_by_two_by_three()); }),
            "tensor weights of shape [2, 2, 3]: expected a matrix, got 3 dimensions");
  EXPECT_THAT(support::error_of([&] { matrix(two_by_two_by_three(), four); }),
              HasSubstr("expected at most 3 indices, got 4"));
  EXPECT_THAT(support::error_of([&] { matrix(two_by_two_by_three(), beyond); }),
              HasSubstr("expected an index below 2, got 2"));
}

TEST(Matrix, OfNoNumbersIsRefusedHoweverManyRowsItClaims) {
  Tensor none;
  none.name = "x", none.shape = {std::size_t{1} << 63, 0};
  EXPECT_EQ(support::error_of([&] { matrix(none); }),
            "tensor x of shape [9223372036854775808, 0]: expected at least one number");
}

TEST(CountOf, IsNothingWhenTheProductOverflows) {
  const TensorShape wraps{(std::size_t{1} << 32) + 1, (std::size_t{1} << 32) - 1},
      none{std::size_t{1} << 63, 3, 0};
  EXPECT_EQ(count_of(wraps), std::nullopt);
  EXPECT_EQ(count_of(none), 0u);
  EXPECT_EQ(count_of({}), 1u);
  EXPECT_EQ(count_of(TensorShape{3, 4}), 12u);
}

TensorFile file_of_names(const std::vector<std::string>& names) {
  std::vector<TensorEntry> entries;
  for (std::size_t k = 0; k < names.size(); ++k)
    entries.push_back({{names[k], Dtype::f64, {1}}, [k](std::span<const std::size_t>, const StopToken&) {
                         Tensor tensor;
                         tensor.numbers = {static_cast<double>(k)};
                         return tensor;
                       }});
  return {"a.npz", "npz", std::move(entries), {"Left out: b\nc."}};
}

TEST(TensorFile, HasNamesThatDoNothingToATerminal) {
  const TensorFile file = file_of_names({"weights\nscores  agrees", "\x1b[2J", "\u202ex"});
  EXPECT_EQ(file.tensors()[0].name, "weights\\x0ascores  agrees");
  EXPECT_EQ(file.read("\\x1b[2J").numbers.front(), 1);
  EXPECT_EQ(file.tensors()[2].name, "\\u202ex");
  EXPECT_EQ(file.notes().front(), "Left out: b\\x0ac.");
  EXPECT_EQ(support::error_of([] {
              file_of_names({"\n", "\\x0a"});
            }),
            "a.npz: two tensors are called \"\\\\x0a\"");
  EXPECT_EQ(support::error_of([] { file_of_names({"a", "b", "a"}); }), "a.npz: two tensors are called \"a\"");
}

constexpr std::size_t n_layers = 3, n_rows = 301,
                      n_columns = 997;  // no 1 MB part ends where one of them does

/// Returns the number at these indices.
char content(std::size_t layer, std::size_t i, std::size_t j) {
  return static_cast<char>((layer * 83 + i * 7 + j) % 127);
}

/// Returns the tensor of 3 × 301 × 997 numbers of 4 bytes, with the first index running fastest or slowest.
RawTensor tensor_of(std::shared_ptr<const system::OpenFile> file, bool first_runs_fastest) {
  const TensorShape shape{n_layers, n_rows, n_columns};
  return {
      {"a", Dtype::i32, shape}, 4, false, first_runs_fastest ? column_major_strides(shape) : Strides(), "a: ",
      fetch_from(file)};
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
    const auto entry =
        make_entry(tensor_of(std::make_shared<const system::OpenFile>(path), first_runs_fastest));
    core::StopToken progress;
    const Tensor whole = entry.read({}, progress);
    ASSERT_EQ(whole.numbers.size(), n_layers * n_rows * n_columns);
    for (std::size_t layer = 0; layer < n_layers; ++layer) {
      const Tensor part = entry.read(std::vector{layer}, progress);
      EXPECT_EQ(part.shape, (TensorShape{n_rows, n_columns}));
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
  const support::TemporaryDirectory directory;
  const auto path = written(directory, "a", bytes_of_tensor(false));
  RawTensor tensor = tensor_of(std::make_shared<const system::OpenFile>(path), false);
  tensor.fetch = [&, fetch = tensor.fetch](std::uint64_t from, std::uint64_t count, std::string& buffer,
                                           const core::StopToken& progress) {
    const std::string_view bytes = fetch(from, count, buffer, progress);
    std::filesystem::resize_file(path, 100);  // before the next fetch
    return bytes;
  };
  const auto entry = make_entry(std::move(tensor));
  core::StopToken progress;
  EXPECT_THAT(support::error_of([&] { entry.read({}, progress); }),
              StartsWith(path.string() + ": became shorter while it was read: expected "));
}

TEST(RawTensor, WithAnyStridesIsReadAsItLies) {
  // Views of 3 × 301 × 997 row-major numbers, with parts larger and smaller than one fetch, axes in every
  // order, gaps, overlaps and repeated numbers.
  const support::TemporaryDirectory directory;
  const auto path = written(directory, "a", bytes_of_tensor(false));
  const auto file = std::make_shared<const system::OpenFile>(path);
  const std::pair<TensorShape, Strides> views[] = {
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
    core::StopToken progress;
    const Tensor whole = make_entry(raw).read({}, progress);
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < whole.numbers.size(); ++k) {
      std::size_t at = 0;
      for (std::size_t rest = k, axis = shape.size(); axis-- > 0; rest /= shape[axis])
        at += rest % shape[axis] * strides[axis];
      wrong += whole.numbers[k] != content(at / n_columns / n_rows, at / n_columns % n_rows, at % n_columns);
    }
    EXPECT_EQ(wrong, 0u) << shape_text(shape);
    const std::size_t second[] = {1};
    EXPECT_EQ(make_entry(raw).read(second, progress).numbers, slice_tensor(whole, second).numbers)
        << shape_text(shape);
  }
}

TEST(RawTensor, OfTooManyTextsIsRefusedBeforeAnyIsFetched) {
  core::StopToken progress;
  std::size_t n_fetched = 0;
  const auto error = [&](std::size_t count, std::size_t item_bytes) {
    RawTensor tensor{{"a", Dtype::text, {count}}, item_bytes, false, {}, "a: ", {}};
    tensor.fetch = [&](std::uint64_t, std::uint64_t n_bytes, std::string& buffer, const core::StopToken&) {
      ++n_fetched;
      buffer.assign(n_bytes, 'a');
      return std::string_view(buffer);
    };
    return support::error_of([&] { make_entry(std::move(tensor)).read({}, progress); });
  };
  EXPECT_EQ(error((1 << 20) + 1, 4),
            "a: expected at most 1048576 texts of 268435456 bytes in all, got [1048577] of 4 bytes each");
  EXPECT_EQ(error(257, 1 << 20),
            "a: expected at most 1048576 texts of 268435456 bytes in all, got [257] of 1048576 bytes each");
  EXPECT_EQ(n_fetched, 0u);
  EXPECT_EQ(error(16384, 4), "no error");
}

TEST(RawTensor, ThatSpansTooManyNumbersIsRefusedBeforeAnyIsFetched) {
  core::StopToken progress;
  const RawTensor tensor{{"a", Dtype::u8, {2, 2}}, 1, false, {std::uint64_t{1} << 40, 2}, "a: ", {}};
  EXPECT_EQ(support::error_of([&] { make_entry(tensor).read({}, progress); }),
            "a: expected at most 268435456 numbers from the first to the last, got [2, 2] with strides "
            "[1099511627776, 2]");
}

}  // namespace
}  // namespace core::formats::readers
