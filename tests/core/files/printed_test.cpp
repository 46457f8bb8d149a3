#include "core/files/printed.hpp"

#include <gmock/gmock.h>

#include "core/files/table.hpp"
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
  EXPECT_DOUBLE_EQ(open_tensors(folder + "printed/torch.txt").read("torch").printed_precision, 0.5e-4);
  EXPECT_DOUBLE_EQ(parse_printed("[0.25, 1e-3, 7]", "").printed_precision, 0.5e-2);
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

TEST(PrintedTensor, OfTensorFlowIsThatAfterNumpy) {
  const std::string numbers = "array([[0.25, 0.75],\n       [1.  , 0.  ]], dtype=float32)>\n";
  for (const std::string begin : {"<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\n",
                                  "<tf.Variable 'w:0' shape=(2, 2) dtype=float32, numpy=\n"}) {
    const Tensor tensor = parse_numbers(begin + numbers, "");
    EXPECT_EQ(tensor.shape, (TensorShape{2, 2}));
    EXPECT_EQ(tensor.dtype, Dtype::f32);
    EXPECT_THAT(tensor.numbers, ElementsAre(0.25, 0.75, 1, 0));
  }
  EXPECT_THAT(parse_numbers("tf.Tensor(\n[[0.25 0.75]\n [1. 0.]], shape=(2, 2), dtype=float32)", "").numbers,
              ElementsAre(0.25, 0.75, 1, 0));
  EXPECT_THAT(error_of_text("<tf.Tensor 'Softmax:0' shape=(2, 2) dtype=float32>"),
              HasSubstr("expected a tensor of TensorFlow with its numbers after numpy="));
}

TEST(PrintedTensor, OfMathematicaHasBraces) {
  const Tensor tensor = parse_numbers("{{0.25, 0.75}, {1., 0.}}\n", "");
  EXPECT_EQ(tensor.shape, (TensorShape{2, 2}));
  EXPECT_THAT(tensor.numbers, ElementsAre(0.25, 0.75, 1, 0));
}

// 0.5, 0.25, 0.125 and 1, 2, 4 as rows.
const std::string two_rows = "   0.5000   0.2500   0.1250\n   1.0000   2.0000   4.0000\n";

TEST(PrintedTensor, OfRowsWithoutBracketsIsThatOfItsProgram) {
  const std::string more = "   3.0000   5.0000   7.0000\n   9.0000  11.0000  13.0000\n";
  const std::vector<double> one{0.5, 0.25, 0.125, 1, 2, 4};
  std::vector<double> both = one;
  both.insert(both.end(), {3, 5, 7, 9, 11, 13});
  const auto times = [](std::vector<double> numbers, double factor) {
    for (double& number : numbers) number *= factor;
    return numbers;
  };
  const TensorShape flat{2, 3}, deep{2, 2, 3};
  const struct {
    std::string text;
    TensorShape shape;
    std::vector<double> numbers;
  } cases[]{
      // PyTorch before 0.4
      {"\n" + two_rows + "[torch.FloatTensor of size 2x3]\n", flat, one},
      {"Variable containing:\n" + two_rows + "[torch.cuda.FloatTensor of size 2x3 (GPU 0)]\n", flat, one},
      {"\n1.00000e-02 *\n" + two_rows + "[torch.FloatTensor of size 2x3]\n", flat, times(one, 0.01)},
      {"\n(0 ,.,.) = \n" + two_rows + "\n(1 ,.,.) = \n" + more + "[torch.DoubleTensor of size 2x2x3]\n", deep,
       both},
      {"\n(0 ,0 ,.,.) = \n" + two_rows + "\n(0 ,1 ,.,.) = \n" + more +
           "[torch.FloatTensor of size 1x2x2x3]\n",
       {1, 2, 2, 3},
       both},
      {"\n 0.5000\n 0.2500\n[torch.FloatTensor of size 2]\n", {2}, {0.5, 0.25}},
      {"\nColumns 0 to 1 \n 0.5 0.25\n 1 2\n\nColumns 2 to 2 \n 0.125\n 4\n[torch.FloatTensor of size 2x3]\n",
       flat, one},
      // MATLAB and Octave
      {"A =\n\n" + two_rows, flat, one},
      {"ans =\n\n   1.0e+03  *\n\n" + two_rows, flat, times(one, 1000)},
      {"A =\n\n   1.0e-02 *\n\n  Columns 1 through 2\n\n 0.5 0.25\n 1 2\n\n  Column 3\n\n 0.125\n 4\n", flat,
       times(one, 0.01)},
      {"w(:,:,1) =\n\n" + two_rows + "\n\nw(:,:,2) =\n\n" + more, deep, both},
      {"w(:,:,1) =\n\n  1.0e+03 *\n\n" + two_rows + "\n\nw(:,:,2) =\n\n" + more, deep,
       [&] {
         std::vector<double> numbers = times(one, 1000);
         numbers.insert(numbers.end(), both.begin() + 6, both.end());
         return numbers;
       }()},
      // Julia
      {"2×3 Matrix{Float64}:\n" + two_rows, flat, one},
      {"2×3 Array{Float32,2}:\n" + two_rows, flat, one},
      {"2-element Vector{Float64}:\n 0.5\n 0.25\n", {2}, {0.5, 0.25}},
      {"2×3×2 Array{Float64, 3}:\n[:, :, 1] =\n" + two_rows + "\n[:, :, 2] =\n" + more, deep, both},
      // R
      {"      [,1]  [,2]   [,3]\n[1,]  0.5  0.25  0.125\n[2,]  1.0  2.00  4.000\n", flat, one},
      {"     [,1] [,2]\n[1,]  0.5 0.25\n[2,]  1.0 2.00\n      [,3]\n[1,] 0.125\n[2,] 4.000\n", flat, one},
      {", , 1\n\n     [,1]\n[1,]  0.5\n\n, , 2\n\n     [,1]\n[1,] 0.25\n", {2, 1, 1}, {0.5, 0.25}}};
  for (const auto& [text, shape, numbers] : cases) {
    const Tensor tensor = parse_numbers(text, "");
    EXPECT_EQ(tensor.shape, shape) << text;
    ASSERT_EQ(tensor.numbers.size(), numbers.size()) << text;
    for (std::size_t k = 0; k < numbers.size(); ++k) EXPECT_DOUBLE_EQ(tensor.numbers[k], numbers[k]) << text;
  }
  EXPECT_DOUBLE_EQ(parse_numbers("A =\n\n  1.0e-02 *\n\n  0.5000\n", "").printed_precision, 0.5e-6);
}

TEST(PrintedTensor, OfRowsWithoutBracketsNamesItsProgramWhereItIsWrong) {
  const auto error = [](const std::string& text) { return error_of_text(text); };
  EXPECT_EQ(error("A =\n\n   0.5 + 0.1i\n"),
            "pasted text, line 3, column 4: expected numbers in what MATLAB printed, got \"0.5 + 0.1i\"");
  EXPECT_THAT(error("2×2 Matrix{Float64}:\n 0.5  0.5\n"),
              HasSubstr("as many numbers as the size says in what Julia"));
  EXPECT_THAT(
      error("2×2 Matrix{Float64}:\n 0.5  …  0.5\n ⋮    ⋱\n"),
      HasSubstr("expected all numbers, as show(stdout, \"text/plain\", x) prints them, in what Julia"));
  EXPECT_THAT(error("\n 1 2\n...\n[torch.FloatTensor of size 9x2]\n"),
              HasSubstr("expected all numbers, as torch.set_printoptions(threshold=10**9) prints them"));
  EXPECT_THAT(error("     [,1]\n[1,]  0.5\n [ reached getOption(\"max.print\") -- omitted 9 rows ]\n"),
              HasSubstr("expected all numbers, as options(max.print = 10^9) prints them, in what R printed"));
  EXPECT_THAT(error("\n 1 2\n 3\n[torch.FloatTensor of size 2x2]\n"),
              HasSubstr("expected 2 numbers as before in what PyTorch before 0.4"));
  EXPECT_THAT(error("     [,1] [,2]\n[1,]  0.5   NA\n"), HasSubstr("expected numbers in what R printed"));
  EXPECT_THAT(error("     [,1]\n[1,]  0.5\n[2,]  0.5\n     [,2]\n[1,]  0.5\n"),
              HasSubstr("expected matrices of one size"));
  EXPECT_THAT(error("     [,1]\n[1,]  0.5\n     [,2]\n[1,]  0.5\n[2,]  0.5\n"),
              HasSubstr("expected 1 rows as before"));
  EXPECT_THAT(error("A =\n\n  Columns 2 through 3\n\n 1 2\n"),
              HasSubstr("expected column 1 to follow 0 rows"));
  EXPECT_THAT(error("A(:,:,2) =\n\n 1 2\n"), HasSubstr("expected every matrix once"));
  EXPECT_THAT(error("A(:,:,1,1) =\n\n 1 2\n"), HasSubstr("expected every matrix once"));
  EXPECT_THAT(error(", , 1\n\n     [,1]\n[1,] 1\n\n, , 3\n\n     [,1]\n[1,] 1\n"),
              HasSubstr("expected every matrix once"));
  for (const char* other :
       {"\n 1 2 3\n 4 5 6\n[torch.FloatTensor of size 3x2]\n", "2×3 Matrix{Float64}:\n 1 2\n 3 4\n 5 6\n",
        "\n 1 2\n[torch.FloatTensor of size 2]\n"})
    EXPECT_THAT(error(other), HasSubstr("as many numbers as the size says"));
  for (const char* empty : {"2×3 Matrix{Float64}:\n", "A =\n\n  Columns 1 through 2\n", "     [,1]\n"})
    EXPECT_THAT(error(empty), HasSubstr("expected numbers in what"));
  EXPECT_THAT(error("\n 1\n[torch.FloatTensor of size 99999999999999999999]\n"),
              HasSubstr("as many numbers as the size says"));
  // Text of Python with a name in a line of its own is no matrix of MATLAB.
  EXPECT_THAT(parse_numbers("w =\n[[0.5, 1]]", "").numbers, ElementsAre(0.5, 1));
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
