#include "core/files/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files/tensor_formats.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats::readers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of_text(std::string_view text) {
  return support::error_of([&] { parse_numbers(text, "pasted text, "); });
}

TEST(PrintedTensor, OfPyTorchAndNumPyReadsBackAsItShows) {
  const auto known = known_tensors(folder + "printed.json");
  ASSERT_EQ(known.size(), 20u);
  for (const auto& [name, tensor] : known)
    EXPECT_EQ(difference(open_tensors(folder + "printed/" + name + ".txt").read(name), tensor), "") << name;
}

TEST(PrintedTensor, KnowsHowFarItWasRounded) {
  EXPECT_DOUBLE_EQ(open_tensors(folder + "printed/torch.txt").read("torch").printed_to, 0.5e-4);
  EXPECT_DOUBLE_EQ(parse_printed("[0.25, 1e-3, 7]", "").printed_to, 0.5e-2);
}

TEST(PrintedTensor, ThatWasCutIsRefusedWithAdvice) {
  for (const char* name : {"torch_cut.text", "numpy_cut.text"})
    EXPECT_THAT(support::error_of([&] { open_tensors(folder + "printed/" + name); }),
                HasSubstr("print them in full after torch.set_printoptions(threshold=10**9)"));
}

TEST(PrintedTensor, MayBeATableInstead) {
  EXPECT_THAT(parse_numbers("1\t2\n3\t4\n", "").numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(parse_numbers("0,5 1\n", "", true).numbers, ElementsAre(0.5, 1));
}

TEST(PrintedTensor, NamesLineAndColumnOfWhatIsWrong) {
  EXPECT_EQ(error_of_text("[[1, 2],\n [3, x]]"),
            "pasted text, line 2, column 6: expected a number, got \"x\"");
  EXPECT_EQ(error_of_text("[[1, 2],\n [3]]"),
            "pasted text, line 2, column 2: expected a list of 2 as before, not of 1, got \"[\"");
  EXPECT_EQ(error_of_text("[[1, 2], 3]"), "pasted text, line 1, column 10: expected '[', got \"3\"");
  EXPECT_EQ(error_of_text("[1, [2]]"), "pasted text, line 1, column 5: expected a number, got \"[\"");
  EXPECT_EQ(error_of_text("[[1, 2]"), "pasted text, line 1, column 8: expected ']', got the end of the text");
  EXPECT_EQ(error_of_text("tensor([1.])) "),
            "pasted text, line 1, column 13: expected nothing after the numbers, got \")\"");
  EXPECT_EQ(error_of_text("tensor([1.], device='cuda:0'"),
            "pasted text, line 1, column 29: expected ')', got the end of the text");
  EXPECT_EQ(error_of_text("tensor([1+2j], dtype=torch.complex64)"),
            "pasted text, line 1, column 9: expected a number, got \"1+2j\"");
  EXPECT_EQ(
      error_of_text("tensor([1], dtype=torch.qint8)"),
      "pasted text, line 1, column 19: expected a type of numbers such as float32, got \"torch.qint8\"");
  EXPECT_EQ(error_of_text("[[[]], [1]]"), "pasted text, line 1, column 9: expected '[', got \"1\"");
  EXPECT_EQ(error_of_text("[−1, x]"), "pasted text, line 1, column 6: expected a number, got \"x\"");
  EXPECT_EQ(error_of_text("[1,,2]"), "pasted text, line 1, column 4: expected a number, got \",\"");
  EXPECT_EQ(error_of_text(std::string(100000, '[')),
            "pasted text, line 1, column 33: expected at most 32 dimensions, got \"[\"");
}

}  // namespace
}  // namespace core::formats::readers
