#include "core/base/draw_op.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/error_of.hpp"
#include "tests/support/json_fixture.hpp"

namespace core::random {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string drawn(std::uint64_t seed, const std::vector<std::string>& ops) {
  std::ostringstream out;
  draw(seed, ops, out);
  return out.str();
}

std::string error_of(const std::string& op) {
  return support::error_of([&] { parse_draw_op(op); });
}

/// The numbers of one block, row after row.
std::vector<float> numbers(std::string text) {
  for (char& c : text)
    if (c == ',') c = ' ';
  std::istringstream in(text);
  std::vector<float> all;
  for (float v; in >> v;) all.push_back(v);
  return all;
}

TEST(Draw, PrintsTheNumbersOfTheReferenceFileOp) {
  const auto file = support::read_generator_file("seed123");
  const auto& rand = file.ops.front();
  ASSERT_EQ(rand.name, "rand_6x3");
  EXPECT_EQ(numbers(drawn(123, {"rand(6,3)"})), std::vector<float>(rand.data.begin(), rand.data.end()));
}

TEST(Draw, PrintsDropoutAsTheBookDoes) {
  EXPECT_EQ(drawn(123, {"Dropout(0.5,6,6)"}),
            "2,2,0,2,2,0\n0,0,0,2,0,2\n2,2,2,2,0,2\n0,2,2,0,0,2\n0,2,0,2,0,2\n0,2,2,2,2,0\n");
}

TEST(Draw, PrintsTheOtherDropoutStreamAsPublished) {  // rasbt/LLMs-from-scratch, issue 57
  EXPECT_THAT(drawn(123, {"DropoutMKL(0.5,6,6)"}), testing::StartsWith("2,2,2,2,2,2\n0,2,0,0,0,0\n"));
}

TEST(Draw, PrintsOneRowOfATensorOfOneDimension) {
  EXPECT_EQ(drawn(1, {"Dropout(0,3)"}), "1,1,1\n");
}

TEST(Draw, PrintsTensorsOfMoreDimensionsAsRowsOfTheLast) {
  EXPECT_EQ(drawn(1, {"Dropout(1,2,2,3)"}), "0,0,0\n0,0,0\n0,0,0\n0,0,0\n");
}

TEST(Draw, PrintsALinearLayerAsOutTimesInAndItsBiasAsARow) {
  const std::string text = drawn(123, {"Linear(3,2,bias)"});
  const std::size_t gap = text.find("\n\n");
  ASSERT_NE(gap, text.npos);
  Generator g(123);
  EXPECT_EQ(numbers(text.substr(0, gap)), g.linear_weight(3, 2));
  EXPECT_EQ(numbers(text.substr(gap)), g.linear_bias(3, 2));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(Draw, GoesOnWhereTheOpBeforeLeftOff) {
  Generator g(7);
  const std::vector<float> rand = g.rand(2);
  const std::vector<std::int64_t> whole = g.randint(2, -4, 4);
  const std::vector<float> embedding = g.normal(6);
  std::ostringstream expected;
  write_block(expected, {1, 2, rand});
  expected << "\n" << whole[0] << "," << whole[1] << "\n\n";
  write_block(expected, {3, 2, embedding});
  EXPECT_EQ(drawn(7, {"rand(2)", " randint( -4, 4, 2 ) ", "Embedding(3,2)"}), expected.str());
}

TEST(Draw, WritesTheShortestDecimalsThatReadBack) {
  std::ostringstream out;
  write_block(out, {2, 2, std::vector<float>{0.1f, -0.0f, 1e-10f, 3}});
  EXPECT_EQ(out.str(), "0.1,-0\n1e-10,3\n");
}

TEST(Draw, WritesNothingWhenALaterOpCannotBeRead) {
  std::ostringstream out;
  EXPECT_THAT(support::error_of([&] { draw(1, {"rand(2)", "rand(0)"}, out); }), HasSubstr("rand(0)"));
  EXPECT_EQ(out.str(), "");
}

TEST(Draw, RefusesOpsThatTogetherAskForTooMuch) {
  std::ostringstream out;
  EXPECT_THAT(support::error_of([&] {
                draw(1, {"rand(60000000)", "rand(60000000)"}, out);
              }),
              AllOf(HasSubstr("100000000"), HasSubstr("120000000")));
  EXPECT_EQ(out.str(), "");
}

TEST(ParseDrawOp, AcceptsWhatPyTorchAccepts) {
  for (const char* op :
       {"uniform(1,1,3)", "normal(0,0,2)", "randint(-9223372036854775808,9223372036854775807,1)",
        "Dropout(1,2)", "randn(1,1,1,1)", "rand(100000000)", "uniform(-1e-3,2.5E2,1)"})
    EXPECT_EQ(error_of(op), "no error") << op;
}

TEST(ParseDrawOps, ReadsOpsInARow) {
  const std::vector<DrawOp> ops = parse_draw_ops(" rand(6,3)\trandint( -4, 4, 2 )Linear(3,2,bias)\n");
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].kind, DrawKind::rand);
  EXPECT_EQ(ops[1].low, -4);
  EXPECT_TRUE(ops[2].bias);
  EXPECT_TRUE(parse_draw_ops("").empty());
  EXPECT_TRUE(parse_draw_ops(" \n ").empty());
}

TEST(ParseDrawOps, NamesTheOpThatCannotBeRead) {
  const auto error = [](const char* texts, std::size_t most = max_drawn_numbers) {
    return support::error_of([&] { parse_draw_ops(texts, most); });
  };
  EXPECT_THAT(error("rand(2) randm(3)"), HasSubstr("draw \"randm(3)\": unknown op \"randm\""));
  EXPECT_THAT(error("rand(2) rand(0)"), HasSubstr("draw \"rand(0)\", argument 1"));
  EXPECT_THAT(error("rand(2"), HasSubstr("expected rand(shape…)"));
  EXPECT_THAT(error("rand(2), rand(2)"), HasSubstr("unknown op"));
  EXPECT_THAT(error("rand(60) randn(50)", 100),
              AllOf(HasSubstr("at most 100 numbers"), HasSubstr("got 110")));
}

TEST(TorchWords, CallTheOpAsPyTorchDoes) {
  const std::vector<std::pair<const char*, const char*>> all{
      {"rand(6,3)", "torch.rand(6, 3)"},
      {"randn(5)", "torch.randn(5)"},
      {"uniform(-1,3,4)", "torch.empty(4).uniform_(-1, 3)"},
      {"normal(2,0.5,3)", "torch.normal(2.0, 0.5, (3,))"},
      {"randint(0,10,3,2)", "torch.randint(0, 10, (3, 2))"},
      {"Linear(3,2)", "nn.Linear(3, 2, bias=False)"},
      {"Linear(3,2,bias)", "nn.Linear(3, 2)"},
      {"Embedding(6,3)", "nn.Embedding(6, 3)"},
      {"Dropout(0.5,6,6)", "nn.Dropout(0.5)(torch.ones(6, 6))"}};
  for (const auto& [op, words] : all) EXPECT_EQ(torch_words(parse_draw_op(op)), words);
  EXPECT_THAT(torch_words(parse_draw_op("DropoutMKL(0.5,6)")),
              testing::StartsWith("nn.Dropout(0.5)(torch.ones(6))  # "));
}

struct Refused {
  const char* op;
  const char* expected;  // words that the error holds
};

TEST(ParseDrawOp, NamesTheOpAndWhatWasExpected) {
  for (const Refused& r : {
           Refused{"gauss(3)", "unknown op \"gauss\""},
           {"", "unknown op"},
           {"rand", "expected rand(shape…)"},
           {"rand(3", "expected rand(shape…)"},
           {"rand(3)x", "expected rand(shape…)"},
           {"rand((3,3))", "expected rand(shape…)"},
           {"rand()", "got 0 arguments"},
           {"rand(3,)", "argument 2"},
           {"rand(0,3)", "argument 1: expected a whole number from 1"},
           {"rand(3,-1)", "argument 2: expected a whole number from 1"},
           {"rand(2.5)", "argument 1"},
           {"rand(99999999999999999999)", "argument 1"},
           {"rand(1000000000)", "100000000"},
           {"rand(100000,100000)", "at most 100000000 numbers, got 10000000000"},
           {"rand(100000000,100000000,100000000)", "at most 100000000 numbers"},
           {"Linear(10000,10000,bias)", "got 100010000"},
           {"Linear(3)", "Linear(in,out)"},
           {"Linear(0,2)", "argument 1"},
           {"Linear(3,2.0)", "argument 2"},
           {"Linear(3,2,off)", "argument 3: expected bias or nothing"},
           {"Linear(3,2,bias,1)", "got 4 arguments"},
           {"Embedding(6)", "Embedding(rows,columns)"},
           {"Embedding(6,3,1)", "got 3 arguments"},
           {"uniform(0,1)", "got 2 arguments"},
           {"uniform(3,-1,4)", "argument 2"},
           {"uniform(-3e38,3e38,4)", "argument 2"},
           {"uniform(nan,1,4)", "argument 1"},
           {"uniform(0,inf,4)", "argument 2"},
           {"normal(0,-1,3)", "argument 2: expected a deviation of 0 or more"},
           {"normal(1e39,1,3)", "argument 1"},
           {"randint(5,5,2)", "argument 2: expected a high above the low"},
           {"randint(0,1.5,2)", "argument 2: expected a whole number"},
           {"randint(0,9223372036854775808,2)", "argument 2"},
           {"Dropout(1.5,3)", "argument 1: expected a rate from 0 to 1"},
           {"Dropout(-0.1,3)", "argument 1: expected a rate from 0 to 1"},
           {"DropoutMKL(nan,3)", "argument 1: expected a rate from 0 to 1"},
           {"Dropout(0.5)", "got 1 arguments"},
       })
    EXPECT_THAT(error_of(r.op),
                AllOf(HasSubstr(std::string("draw \"") + r.op), HasSubstr(r.expected), Not(HasSubstr("\n"))));
}

TEST(ParseDrawOp, KeepsItsErrorToOneShortLine) {
  EXPECT_LT(error_of(std::string(1'000'000, 'x')).size(), 500u);
  EXPECT_THAT(error_of("ra\nnd(3)"), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace core::random
