#include "core/files/tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.hpp"

namespace core::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor two_by_two_by_three() {
  return {{"weights", Dtype::f64, {2, 2, 3}}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {}, {}, {}};
}

TEST(TensorMatrix, IsTheSliceAtLeadingIndicesRowByRow) {
  const std::size_t one[] = {1};
  const arma::mat m = matrix(two_by_two_by_three(), one);
  EXPECT_TRUE(arma::approx_equal(m, arma::mat{{6, 7, 8}, {9, 10, 11}}, "absdiff", 0));
}

TEST(TensorMatrix, OfOneDimensionIsARow) {
  const std::size_t two[] = {0, 1};
  EXPECT_TRUE(arma::approx_equal(matrix(two_by_two_by_three(), two), arma::mat{{3, 4, 5}}, "absdiff", 0));
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
  const Shape wraps{(std::size_t{1} << 32) + 1, (std::size_t{1} << 32) - 1}, none{std::size_t{1} << 63, 3, 0};
  EXPECT_EQ(count_of(wraps), std::nullopt);
  EXPECT_EQ(count_of(none), 0u);
  EXPECT_EQ(count_of({}), 1u);
  EXPECT_EQ(count_of(Shape{3, 4}), 12u);
}

TensorFile file_of_names(const std::vector<std::string>& names) {
  std::vector<TensorFile::Entry> entries;
  for (std::size_t k = 0; k < names.size(); ++k)
    entries.push_back({{names[k], Dtype::f64, {1}}, [k](std::span<const std::size_t>, const Token&) {
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

TEST(TextsOfFourBytesACharacter, TakeNoRoomForTheZerosBehindThem) {
  std::string bytes(400'000, '\0');
  EXPECT_EQ(decode_utf32(bytes.data(), bytes.size(), false), "");
  EXPECT_LT(decode_utf32(bytes.data(), bytes.size(), false).capacity(), 100u);
  bytes[0] = 'a', bytes[8] = 'b';
  EXPECT_EQ(decode_utf32(bytes.data(), bytes.size(), false), std::string("a\0b", 3));
}

}  // namespace
}  // namespace core::formats
