#include "core/out/program.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/editing/presets.hpp"
#include "core/graph/python.hpp"
#include "tests/support/error_of.hpp"

// tests/python compares the programs' results with the export where PyTorch is installed.

namespace {

using core::attention::Model;
using core::editing::find_preset;
using core::editing::InitializedPart;
using core::editing::usual_seeds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace python = core::formats::python;

std::string program(const Model& model) {
  return core::formats::program_text(model, "title");
}

TEST(Program, DrawsWhatCameFromASeed) {
  const std::string text = program(find_preset("000-causal")->make());
  EXPECT_THAT(text, HasSubstr("torch.manual_seed(123)\n"
                              "x = torch.rand(6, 3)\n"
                              "W_query = nn.Linear(3, 3, bias=False)\n"
                              "W_key = nn.Linear(3, 3, bias=False)\n"
                              "W_value = nn.Linear(3, 3, bias=False)\n"));
  EXPECT_THAT(text, Not(HasSubstr("torch.tensor")));
}

TEST(Program, IsNotWrittenOfAModelWithMistakes) {
  Model model = find_preset("000-causal")->make();
  model.mask.edge.diagonal = 1;
  EXPECT_EQ(support::error_of([&] { program(model); }),
            "bugs: a program is written of attention without injected bugs; fix them first");
  model.mask.edge = {};
  model.dropout.rescale = false;
  EXPECT_THAT(support::error_of([&] { program(model); }), HasSubstr("bugs"));
}

TEST(Program, WritesOutAMatrixThatWasEditedAndStillDrawsTheOthers) {
  Model model = find_preset("000-causal")->make();
  model.projections->key.weight.edit()(0, 0) = 0.5;
  const std::string text = program(model);
  EXPECT_THAT(
      text,
      HasSubstr(
          "W_query = nn.Linear(3, 3, bias=False)\nnn.Linear(3, 3, bias=False)  # sampled, but not used\n"));
  EXPECT_THAT(text, HasSubstr("W_key = layer(torch.tensor([[0.5, "));
}

TEST(Program, WritesOutEmbeddingsThatDifferInTheLastBit) {
  Model model = find_preset("000-causal")->make();
  arma::mat& x = model.sequences.front().embeddings.edit();
  x(5, 2) = std::nextafter(x(5, 2), 1.0);
  const std::string text = program(model);
  EXPECT_THAT(text, HasSubstr("torch.rand(6, 3)  # sampled, but not used\n"));
  EXPECT_THAT(text, HasSubstr("x = torch.tensor([["));
  EXPECT_THAT(text, HasSubstr("dtype=torch.float64"));
}

TEST(Program, WritesOutAMaskThatPyTorchCannotDrawEverywhere) {
  Model model = find_preset("004-causal-dropout")->make();
  EXPECT_THAT(program(model), HasSubstr("torch.rand(weights.shape, dtype=torch.float64) < 1 - 0.5"));
  model.dropout.stream = core::attention::DropoutStream::mkl;
  EXPECT_THAT(program(model), HasSubstr("\nkept = torch.tensor([["));
  EXPECT_THAT(program(model), Not(HasSubstr("torch.rand(weights")));
}

TEST(Program, DeclaresItsEncodingFirst) {
  EXPECT_THAT(core::formats::program_text(find_preset("004-causal")->make(), "coding=utf-7"),
              StartsWith("# -*- coding: utf-8 -*-\n"));
}

TEST(Program, HoldsNamesAsLiteralsOfPrintableAsciiAlone) {
  Model model = find_preset("004-causal")->make();
  auto& tokens = model.sequences.front().tokens;
  tokens = {"+ACI-", "é\"\\", "\n# x", "🙂", "\xE9\xE9", "\r\u2028"};
  ASSERT_EQ(tokens.size(), model.n_tokens());
  const std::string text =
      core::formats::program_text(model, "\"\"\"\nimport os # coding: utf-7 \x1b\u2028\u202e\\");
  EXPECT_THAT(text, HasSubstr(
                        R"(
"\"\"\"\nimport os # coding: utf-7 \x1b\u2028\u202e\\"
import torch
)"));
  std::string on_one_line = text;
  std::erase(on_one_line, '\n');
  EXPECT_THAT(
      on_one_line,
      HasSubstr(R"(tokens = ["+ACI-", "\xe9\"\\", "\n# x", "\U0001f642", "\ufffd\ufffd", "\x0d\u2028"])"));
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c < 0x7F); }));
}

TEST(Program, OfAModelThatCannotBeComputedIsRefused) {
  Model model = find_preset("multi-head")->make();
  model.n_heads = 3;
  EXPECT_THAT(support::error_of([&] { program(model); }), HasSubstr("n_heads: "));
}

TEST(Recipe, FindsTheSecondSeedOfARunThatWasSeededTwice) {
  const auto recipe = core::editing::find_recipe(find_preset("002-as-printed")->make(), usual_seeds());
  ASSERT_EQ(recipe.size(), 2u);
  EXPECT_EQ(recipe[0].seed, 1337u);
  EXPECT_EQ(recipe[1].seed, 1337u);
  EXPECT_TRUE(recipe[1].initializes(InitializedPart::embeddings));
  EXPECT_EQ(recipe[0].draws.front().part, InitializedPart::nothing);  // six tokens to start from
}

TEST(Recipe, NamesNothingThatWasNotDrawn) {
  EXPECT_TRUE(core::editing::find_recipe(find_preset("head-induction")->make(), usual_seeds()).empty());
  EXPECT_TRUE(core::editing::find_recipe(find_preset("000-causal")->make(), {124}).empty());
}

TEST(Python, NumbersAreFloatsThatReadBack) {
  EXPECT_EQ(python::number(1), "1.");
  EXPECT_EQ(python::number(-0.0), "-0.");
  EXPECT_EQ(python::number(0.1), "0.1");
  EXPECT_EQ(python::number(1e23), "1e+23");
  EXPECT_EQ(python::number(-INFINITY), "-float('inf')");
}

TEST(Python, MatricesOfFloat32AreWrittenAtThatPrecision) {
  const arma::mat single{{0.43f, 1}};
  EXPECT_TRUE(python::is_float32(single));
  EXPECT_EQ(python::rows(single, "", true), "[[0.43, 1.]]");
  EXPECT_FALSE(python::is_float32(arma::mat{{0.43, 1}}));
  const arma::mat hiding{{0.43f, -INFINITY}};
  EXPECT_TRUE(python::is_float32(hiding));
  EXPECT_EQ(python::rows(hiding, "", true), "[[0.43, -float('inf')]]");
}

TEST(Python, LongRowsAreBroken) {
  const std::string text = python::row(arma::mat(1, 60, arma::fill::ones));
  std::size_t longest = 0, start = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; start = end + 1, end = text.find('\n', start))
    longest = std::max(longest, end - start);
  EXPECT_GT(start, 0u);
  EXPECT_LE(longest, 100u);
}

}  // namespace
