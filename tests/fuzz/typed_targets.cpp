#include <array>
#include <variant>

#include "app/cli/arguments.hpp"
#include "core/base/draw_op.hpp"
#include "core/editing/draw.hpp"
#include "core/files/table.hpp"
#include "tests/fuzz/expecting.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using namespace core;
using Bytes = std::string_view;
using Seeds = std::vector<std::string>;

void run_draw(Bytes bytes) {
  attempt([&] { random::parse_draw_ops(bytes, 1000); });
}

Seeds draw_seeds() {
  return {"rand(6,3) Linear(3,2,bias)", "randint(0,10,3,2)", "Dropout(0.5,6,6) normal(0,1,2)"};
}

void run_sentence(Bytes bytes) {
  for (const auto rule : {text::TokenRule::words, text::TokenRule::characters})
    attempt([&] {
      for (const std::string& token : text::tokens(bytes, rule))
        expect(!token.empty(), "a token has characters");
    });
}

Seeds sentence_seeds() {
  return {"Your journey starts with one step.", "I'm 3.5 \"漢字\"\n🙂"};
}

/// Text of a clipboard, as a matrix that is pasted.
void run_pasted(Bytes bytes) {
  for (const bool decimal_comma : {false, true})
    attempt([&] {
      const formats::Tensor tensor = formats::readers::parse_numbers(bytes, "pasted: ", decimal_comma);
      expect(formats::count_of(tensor.shape) == tensor.numbers.size(),
             "there are as many numbers as the shape says");
    });
}

Seeds pasted_seeds() {
  return {"1\t2\n3\t4", "1,5;2\n3;4", "[[1, 2], [3, 4]]", "tensor([0.5, inf])", "\"a\nb\"\t1\n"};
}

/// Arguments, a line each. A command that is wrong is answered in one line.
void run_arguments(Bytes bytes) {
  std::vector<std::string> arguments(1);
  for (const char c : bytes) {
    if (c == '\n')
      arguments.emplace_back();
    else if (c != '\0')  // which no argument can have
      arguments.back() += c;
  }
  const app::Arguments parsed = app::parse_arguments(arguments);
  if (const auto* wrong = std::get_if<app::WrongUsage>(&parsed)) expect_line(wrong->message);
}

Seeds arguments_seeds() {
  return {
      "export\n--preset\n004-causal\n--stages\nweights,scores\n--format\nnpy\n--out\na",
      "check\na.npz\n--against\nb\n--map\nx=weights\n--layout\nbthd\n--layer\n2\n--rtol\n1e-3\n--json",
      "predict\nm\n--text\nthe\n--off\n5.1,3.0\n--top\n3",
      "session\n--given\nweights=a.npy:x\n--layer\n3\n--ignore\nrotary,alibi\n--heads\n2\n--out\na.json",
      "figure\n--preset\n004-causal\n--stage\nweights\n--head\n0\n--range\n-1:2\n--scale\n2\n--out\na.svg",
      "generate\nm\n--text\na\n--temperature\n0.8\n--seed\n18446744073709551615",
      "draw\n--seed\n1\nLinear(3,2)",
      "--version",
      "a.json"};
}

const std::array typed_table{
    Target{"draw", run_draw, draw_seeds, {"Embedding(", "uniform(", "Dropout("}},
    Target{"sentence", run_sentence, sentence_seeds},
    Target{"pasted", run_pasted, pasted_seeds},
    Target{"arguments",
           run_arguments,
           arguments_seeds,
           {"--off", "--given", "--layer", "--map", "--all-heads", "--strip", "--first-line", "--mistake",
            "--allow-outside", "--colours", "--sequence", "--no-labels"}},
};

}  // namespace

std::span<const Target> typed_targets() {
  return typed_table;
}

}  // namespace fuzz
