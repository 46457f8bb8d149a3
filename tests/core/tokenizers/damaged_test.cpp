#include <gtest/gtest.h>

#include "core/formats/files/json.hpp"
#include "core/tokenizers/open_tokenizer.hpp"
#include "core/tokenizers/tokenizer_json.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::tokenizers {
namespace {

using support::error_of;
using support::put_bytes;

std::string error_of_json(const std::string& text) {
  return error_of([&] { Tokenizer(recipe_of_json(formats::parse_json(text, "t.json"))); });
}

std::string model(const std::string& merges, const std::string& more = "") {
  return R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [)" + merges + "]}" +
         more + "}";
}

TEST(DamagedTokenizer, IsRefusedInOneLine) {
  EXPECT_EQ(error_of_json(model("\"a b\"")), "no error");
  EXPECT_EQ(error_of_json(model("\"ab\"")),
            "t.json: model.merges[0]: expected two pieces with a blank between them, got \"ab\"");
  EXPECT_EQ(error_of_json(model(R"("a b", ["", "ab"])")),
            "t.json: model.merges[1]: expected a merge of two pieces, got an empty one, which would merge "
            "without end");
  EXPECT_EQ(error_of_json(model("\"b a\"")),
            "t.json: model.merges[0]: expected a piece of the vocabulary, got \"ba\"");
  EXPECT_EQ(error_of_json(R"({"model": {"type": "Unigram", "vocab": []}})"),
            "t.json: model: expected a model BPE or WordPiece, the only ones known here, got \"Unigram\"");
  EXPECT_EQ(error_of_json(R"({"model": {"type": "BPE", "vocab": {"a": 99999999}, "merges": []}})"),
            "t.json: model.vocab.a: expected a number of a token below 16777216, got 99999999");
  EXPECT_EQ(error_of_json(model("", R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}})")),
            "t.json: pre_tokenizer.pattern.Regex: expected a regular expression, got \"(a\": missing closing "
            "parenthesis");
  EXPECT_EQ(error_of_json(model("", R"(, "pre_tokenizer": {"type": "Mystery"})")),
            "t.json: pre_tokenizer.type: expected a pre-tokenizer that is known here, got \"Mystery\"");
}

TEST(DamagedTokenizer, IsMissing) {
  const support::TemporaryDirectory dir;
  const std::string folder = dir.path().string();
  EXPECT_EQ(error_of([&] { open_tokenizer(dir.path()); }),
            folder + ": expected a tokenizer: tokenizer.json, vocab.json with merges.txt, or vocab.txt");
  put_bytes(dir / "vocab.json", R"({"a": 0, "b": 1})");
  put_bytes(dir / "merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(error_of([&] { open_tokenizer(dir.path()); }),
            folder + "/merges.txt: line 2: expected a piece of the vocabulary, got \"ab\"");
}

TEST(DamagedTokenizer, TextMustBeUtf8) {
  const Tokenizer tokenizer(recipe_of_json(formats::parse_json(model(""), "t.json")));
  EXPECT_EQ(error_of([&] { tokenizer.encode("a\xFF"); }), "expected text in UTF-8, got other bytes");
}

}  // namespace
}  // namespace core::tokenizers
