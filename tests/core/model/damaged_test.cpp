#include <gtest/gtest.h>

#include "core/files/json.hpp"
#include "core/model/tokenizer.hpp"
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
            "t.json: model.vocab.a: expected a number of a token below 1048578, got 99999999");
  EXPECT_EQ(error_of_json(model("", R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}})")),
            "t.json: pre_tokenizer.pattern.Regex: expected a regular expression, got \"(a\": missing closing "
            "parenthesis");
  EXPECT_EQ(error_of_json(model("", R"(, "pre_tokenizer": {"type": "Mystery"})")),
            "t.json: pre_tokenizer.type: expected a pre-tokenizer that is known here, got \"Mystery\"");
  for (const char* replacement : {"", "ab"})
    EXPECT_EQ(error_of_json(model("", R"(, "pre_tokenizer": {"type": "Metaspace", "replacement": ")" +
                                          std::string(replacement) + "\"}")),
              "t.json: pre_tokenizer.replacement: expected one character, got \"" + std::string(replacement) +
                  "\"");
  EXPECT_EQ(error_of_json(R"({"model": {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "a",)"
                          R"( "max_input_chars_per_word": 1000000}})"),
            "t.json: model.max_input_chars_per_word: expected a number of characters up to 512, got 1000000");
}

std::string error_of_text(const std::string& json, const std::string& text) {
  const Tokenizer tokenizer(recipe_of_json(formats::parse_json(json, "t.json")));
  return error_of([&] { tokenizer.encode(text); });
}

// Each step doubles what it gets: thirty of them would make gigabytes of a word.
TEST(DamagedTokenizer, DoesNotFillTheMemory) {
  const auto thirty = [](const std::string& step) {
    std::string steps = step;
    for (int k = 1; k < 30; ++k) steps += ", " + step;
    return steps;
  };
  const char* refused =
      "the text cannot be cut into tokens: the steps of the tokenizer make more than 4194304 bytes of it";
  EXPECT_EQ(
      error_of_text(
          model("", R"(, "normalizer": {"type": "Sequence", "normalizers": [)" +
                        thirty(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})") + "]}"),
          "aaaa"),
      refused);
  EXPECT_EQ(error_of_text(model("", R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [)" +
                                        thirty(R"({"type": "ByteLevel", "use_regex": false})") + "]}"),
                          "\u00e9\u00e9"),
            refused);
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
