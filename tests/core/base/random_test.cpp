// Random numbers as PyTorch draws them, and draw ops.
#include <gmock/gmock.h>

#include <limits>
#include <random>
#include <sstream>
#include <vector>

#include "core/base/draw_op.hpp"
#include "core/base/random.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/json_fixture.hpp"

namespace core::random {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string drawn(std::uint64_t seed, const std::vector<std::string>& ops) {
  std::ostringstream out;
  write_samples(seed, ops, out);
  return out.str();
}

std::string error_of(const std::string& op) {
  return support::error_of([&] { parse_random_op(op); });
}

/// Reads the numbers of one block, row by row.
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
  EXPECT_THAT(drawn(123, {"DropoutMKL(0.5,6,6)"}),  // as published: rasbt/LLMs-from-scratch, issue 57
              testing::StartsWith("2,2,2,2,2,2\n0,2,0,0,0,0\n"));
  EXPECT_EQ(drawn(1, {"Dropout(0,3)"}), "1,1,1\n");
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

TEST(Draw, WritesNothingWhenALaterOpCannotBeRead) {
  std::ostringstream out;
  EXPECT_THAT(support::error_of([&] {
                write_samples(1, {"rand(2)", "rand(0)"}, out);
              }),
              HasSubstr("rand(0)"));
  EXPECT_THAT(support::error_of([&] {
                write_samples(1, {"rand(60000000)", "rand(60000000)"}, out);
              }),
              HasSubstr("120000000"));
  EXPECT_EQ(out.str(), "");
  write_block(out, {2, 2, std::vector<float>{0.1f, -0.0f, 1e-10f, 3}});
  EXPECT_EQ(out.str(), "0.1,-0\n1e-10,3\n") << "the shortest decimals that read back";
}

TEST(ParseDrawOp, AcceptsWhatPyTorchAccepts) {
  for (const char* op :
       {"uniform(1,1,3)", "normal(0,0,2)", "randint(-9223372036854775808,9223372036854775807,1)",
        "Dropout(1,2)", "randn(1,1,1,1)", "rand(100000000)", "uniform(-1e-3,2.5E2,1)"})
    EXPECT_EQ(error_of(op), "no error") << op;
}

TEST(ParseDrawOps, ReadsOpsInARow) {
  const std::vector<RandomOp> ops = parse_random_ops(" rand(6,3)\trandint( -4, 4, 2 )Linear(3,2,bias)\n");
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].kind, RandomOpKind::rand);
  EXPECT_EQ(ops[1].low, -4);
  EXPECT_TRUE(ops[2].bias);
  EXPECT_TRUE(parse_random_ops("").empty());
  EXPECT_TRUE(parse_random_ops(" \n ").empty());
}

TEST(ParseDrawOps, NamesTheOpThatCannotBeRead) {
  const auto error = [](const char* texts, std::size_t most = max_sampled_numbers) {
    return support::error_of([&] { parse_random_ops(texts, most); });
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
  for (const auto& [op, words] : all) EXPECT_EQ(torch_line(parse_random_op(op)), words);
  EXPECT_THAT(torch_line(parse_random_op("DropoutMKL(0.5,6)")),
              testing::StartsWith("nn.Dropout(0.5)(torch.ones(6))  # "));
}

struct Refused {
  const char* op;
  const char* expected;  // part of the error
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
  EXPECT_LT(error_of(std::string(1'000'000, 'x')).size(), 500u);
  EXPECT_THAT(error_of("ra\nnd(3)"), Not(HasSubstr("\n")));
}

TEST(Bits, KnowEachAnswerAndThosePartsThatAreNo) {
  std::mt19937 random(3);
  std::vector<bool> expected(300);
  Bits bits(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = random() % 3 != 0;
    bits.add(i, expected[i]);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(bits[i], expected[i]) << i;
  for (std::size_t first = 0; first < 140; first += 7)
    for (const std::size_t n : {0, 1, 20, 63, 64, 65, 128, 160}) {
      std::vector<std::size_t> found, no;
      bits.for_each_unset(first, n, [&](std::size_t k) { found.push_back(k); });
      for (std::size_t k = 0; k < n; ++k)
        if (!expected[first + k]) no.push_back(k);
      EXPECT_EQ(found, no) << n << " from " << first;
    }
}

using support::Draws;
using Numbers = std::vector<double>;

Numbers as_double(const auto& numbers) {
  return Numbers(numbers.begin(), numbers.end());
}

/// Draws n numbers with the op of a name in the reference files, such as "linear_3_2_True_bias".
Numbers drawn(Generator& g, const Draws& d, std::size_t n) {
  const std::string& name = d.name;
  const auto starts = [&](const char* prefix) { return name.rfind(prefix, 0) == 0; };
  if (starts("randn")) return as_double(g.normal(n));
  if (starts("randint_0_10")) return as_double(g.randint(n, 0, 10));
  if (starts("rand_")) return as_double(g.rand(n));
  if (starts("uniform_-1_3")) return as_double(g.uniform(n, -1, 3));
  if (starts("normal_2_0.5")) return as_double(g.normal(n, 2, 0.5));
  if (name.find("_weight") != name.npos) return as_double(g.linear_weight(d.shape[1], d.shape[0]));
  if (name == "linear_3_2_True_bias") return g.linear_weight(3, 2), as_double(g.linear_bias(3, 2));
  if (name == "linear_256_256_bias") return g.linear_weight(256, 256), as_double(g.linear_bias(256, 256));
  throw std::runtime_error(name + ": the test does not know this op");
}

std::size_t size(const Draws& d) {
  std::size_t n = 1;
  for (const std::size_t extent : d.shape) n *= extent;
  return n;
}

void expect_equal(const Numbers& numbers, const Draws& d) {
  ASSERT_EQ(numbers.size(), size(d));
  if (!d.data.empty()) {
    EXPECT_EQ(numbers, d.data);
    return;
  }
  double sum = 0, squares = 0;
  for (const double v : numbers) sum += v, squares += v * v;
  ASSERT_FALSE(d.sample.first.empty());
  EXPECT_EQ(Numbers(numbers.begin(), numbers.begin() + d.sample.first.size()), d.sample.first);
  EXPECT_EQ(Numbers(numbers.end() - d.sample.last.size(), numbers.end()), d.sample.last);
  EXPECT_NEAR(sum, d.sample.sum, 1e-9);  // the order of the summation is unknown
  EXPECT_NEAR(squares, d.sample.sum_of_squares, 1e-9);
}

void expect_kept(const Bits& kept, const Draws& d) {
  ASSERT_EQ(kept.size(), size(d));
  std::string bits;
  std::size_t n_kept = 0, checksum = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (i < 256) bits += kept[i] ? '1' : '0';
    if (kept[i]) ++n_kept, checksum += i % 65521 + 1;
  }
  EXPECT_EQ(bits, d.kept_bits);
  EXPECT_EQ(n_kept, d.n_kept);
  EXPECT_EQ(checksum, d.checksum);
}

/// Returns the mt19937 output after the first n.
std::uint32_t output_after(std::uint64_t seed, std::size_t n) {
  std::mt19937 engine(static_cast<std::uint32_t>(seed));
  engine.discard(n);
  return static_cast<std::uint32_t>(engine());
}

class ReferenceDraws : public testing::TestWithParam<const char*> {
 protected:
  support::GeneratorFile file = support::read_generator_file(GetParam());
};

TEST_P(ReferenceDraws, StartWithTheOutputsOfMt19937) {
  Generator g(file.seed);
  ASSERT_EQ(file.first_outputs.size(), 8u);
  for (const std::uint32_t output : file.first_outputs) EXPECT_EQ(g.next_u32(), output);
}

TEST_P(ReferenceDraws, AreEqualForEveryOp) {
  ASSERT_EQ(file.ops.size(), 36u);
  for (const Draws& d : file.ops) {
    SCOPED_TRACE(d.name);
    Generator g(file.seed);
    if (!d.kept_bits.empty()) {
      const double rate = d.name.find("_p0.5_") != d.name.npos ? 0.5 : 0.1;
      const bool mkl = d.name.find("_mkl_") != d.name.npos;
      expect_kept(mkl ? g.dropout_kept_mkl(size(d), rate) : g.dropout_kept(size(d), rate), d);
    } else {
      expect_equal(drawn(g, d, size(d)), d);
    }
    const bool drawn_after_weight = d.name.find("_bias") != d.name.npos;  // the file counts only the bias
    const std::size_t before =
        drawn_after_weight ? size(d) * (d.name == "linear_3_2_True_bias" ? 3 : 256) : 0;
    EXPECT_EQ(g.next_u32(), output_after(file.seed, before + d.n_draws));
  }
}

TEST_P(ReferenceDraws, AreEqualForEverySequenceOfOps) {
  ASSERT_EQ(file.sequences.size(), 4u);
  for (const auto& [name, ops] : file.sequences) {
    SCOPED_TRACE(name);
    Generator g(file.seed);
    std::size_t n_draws = 0;
    for (const Draws& d : ops) {
      SCOPED_TRACE(d.name);
      const bool linear = d.op.rfind("Linear", 0) == 0;
      if (d.op.rfind("randn", 0) == 0)
        expect_equal(as_double(g.normal(size(d))), d);
      else if (d.op.rfind("rand", 0) == 0)
        expect_equal(as_double(g.rand(size(d))), d);
      else if (linear && d.shape.size() == 2)
        expect_equal(as_double(g.linear_weight(d.shape[1], d.shape[0])), d);
      else if (linear)
        expect_equal(as_double(g.linear_bias(16, d.shape[0])), d);
      else
        ADD_FAILURE() << "the test does not know this op";
      n_draws += d.n_draws;
    }
    EXPECT_EQ(g.next_u32(), output_after(file.seed, n_draws));
  }
}

INSTANTIATE_TEST_SUITE_P(Generator, ReferenceDraws, testing::Values("seed123", "seed1337"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(ManualSeed, CountsTheLow32BitsAlone) {
  EXPECT_EQ(Generator(123).next_u64(), Generator(123 + (std::uint64_t{7} << 32)).next_u64());
}

TEST(Normal, KeepsTheCachedNumberAcrossLargeDraws) {
  Generator with(5), without(5);
  const std::vector<float> three = with.normal(3), four = without.normal(4);
  with.normal(40);
  EXPECT_EQ(with.normal(1)[0], four[3]);
}

TEST(Randint, ReachesBelowZeroAndBeyond32Bits) {
  constexpr std::int64_t low = -5, wide = std::int64_t{1} << 40;
  Generator g(9), raw(9);
  EXPECT_EQ(g.randint(1, low, 2)[0], raw.next_u32() % 7 + low);
  EXPECT_EQ(g.randint(1, low, wide)[0], static_cast<std::int64_t>(raw.next_u64() % (wide + 5)) + low);
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min(),
                 highest = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t number = raw.next_u64() % std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(g.randint(1, lowest, highest)[0], static_cast<std::int64_t>(number + (std::uint64_t{1} << 63)));
}

TEST(Randint, TakesOneOutputUpToARangeOf32Bits) {
  Generator below(3), at(3), raw(3);
  const std::int64_t limit = std::int64_t{1} << 32;
  below.randint(1, 0, limit - 1);
  at.randint(1, 0, limit);
  raw.next_u32();
  EXPECT_EQ(below.next_u32(), raw.next_u32());
  EXPECT_EQ(at.next_u32(), output_after(3, 2));
}

TEST(DropoutKept, TakesNothingWhenThereIsNothingToDecide) {
  for (const double rate : {0.0, 1.0}) {
    Generator g(1);
    for (const Bits& kept : {g.dropout_kept(3, rate), g.dropout_kept_mkl(3, rate)}) {
      ASSERT_EQ(kept.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(kept[i], rate == 0);
    }
    EXPECT_EQ(g.next_u32(), output_after(1, 0));
  }
}

TEST(Twister, GivesTheStreamOfTheStandardLibrary) {
  for (const std::uint32_t seed : {0u, 1u, 123u, 4294967295u}) {
    std::mt19937 expected(seed);
    Twister twister(seed);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(twister.next(), expected()) << seed << ", number " << i;
  }
}

TEST(Twister, FillsAnyNumberOfPlacesFromWhereItIs) {
  std::mt19937 expected(7);
  Twister twister(7);
  for (const std::size_t n : {1, 0, 623, 624, 3, 2000, 625}) {
    std::vector<std::uint32_t> numbers(n);
    twister.fill(numbers);
    for (const std::uint32_t number : numbers) ASSERT_EQ(number, expected()) << "of " << n;
    ASSERT_EQ(twister.next(), expected()) << "after " << n;
  }
}

}  // namespace
}  // namespace core::random
