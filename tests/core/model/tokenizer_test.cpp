// Tokenizers against the library tokenizers and llama.cpp's files, and damaged ones.
#include <gtest/gtest.h>

#include <cstdio>

#include "core/files/gguf.hpp"
#include "core/files/json.hpp"
#include "core/model/tokenizer_files.hpp"
#include "core/system/file.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::tokenizers {
namespace {

using support::error_of;
using support::put_bytes;

const std::string fixtures = FIXTURES "/tokenizers/";

formats::Json json_in(const std::string& path) {
  return formats::parse_json(system::read_file(path, 1 << 24), path);
}

/// IDs and texts of the library tokenizers, on strings that are hard to split.
TEST(Tokenizer, CutsHardStringsAsTheLibraryDoes) {
  std::size_t n_texts = 0;
  for (const auto& [name, cases] : json_in(fixtures + "ids.json").required("ids").members()) {
    const Tokenizer tokenizer(definition_from_json(json_in(fixtures + name + ".json")));
    for (const formats::Json& each : cases.items("cases")) {
      const std::string text = each.required("text").text();
      const std::vector<std::size_t> expected = each.required("ids").whole_numbers("ids");
      const auto tokens = tokenizer.encode(text);
      EXPECT_EQ(ids_of(tokens), expected) << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(expected), each.required("decoded").text()) << name << ": " << text;
      std::string together;
      for (const TextToken& token : tokens) together += token.text;
      EXPECT_EQ(together, tokens.empty() ? "" : text) << name;
      ++n_texts;
    }
  }
  EXPECT_EQ(n_texts, 12u * 39);
}

/// Word boundaries in scripts with marks: every word of the library is one token of these tokenizers.
TEST(Tokenizer, CutsWordsAsTheLibraryDoes) {
  std::size_t n_texts = 0;
  for (const auto& [name, made] : json_in(fixtures + "words.json").required("made").members()) {
    const Tokenizer tokenizer(definition_from_json(made.required("tokenizer")));
    for (const formats::Json& each : made.required("cases").items("cases")) {
      const std::string text = each.required("text").text();
      const std::vector<std::size_t> expected = each.required("ids").whole_numbers("ids");
      EXPECT_EQ(ids_of(tokenizer.encode(text)), expected) << name << ": " << text;
      ++n_texts;
    }
  }
  EXPECT_EQ(n_texts, 12u * 21);
}

TEST(Tokenizer, ReadsTheOlderFilesAsItReadsTheNew) {
  const std::string folder = FIXTURES "/tiny_gpt/";
  const Tokenizer tokenizer = open_tokenizer(folder);
  EXPECT_EQ(tokenizer.size(), 1024u);
  const std::string text = "Miss Zoë Fitzgerald paid £12.<|endoftext|>";
  const auto tokens = tokenizer.encode(text);
  EXPECT_EQ(tokens.back().id, 1023u);
  EXPECT_TRUE(tokens.back().is_special);
  std::string bytes;
  for (const TextToken& token : tokens) bytes += tokenizer.bytes(token.id);
  EXPECT_EQ(bytes, text);
}

TEST(Tokenizer, GivesACharacterToTheTokenThatCompletesIt) {
  const Tokenizer tokenizer(definition_from_json(json_in(fixtures + "gpt2.json")));
  std::vector<std::string> texts;
  for (const TextToken& token : tokenizer.encode("x\xE2\x82\xACy")) texts.push_back(token.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"x", "", "", "\xE2\x82\xAC", "y"}));
}

formats::GgufValue number(double value) {
  return {false, {value}, {}};
}
formats::GgufValue word(const char* value) {
  return {false, {}, {value}};
}

/// Pieces with scores, merged by hand: the largest score first, and bytes for text without a piece.
TEST(ScoredTokenizer, MergesByScore) {
  std::map<std::string, formats::GgufValue> values;
  const std::string under = "\xE2\x96\x81";
  formats::GgufValue tokens{true, {}, {"<unk>", "<s>", under, "a", "b", "c", "ab", "bc", under + "a", "abc"}};
  formats::GgufValue scores{true, {0, 0, -10, -11, -12, -13, -3, -2, -4, -1}, {}};
  formats::GgufValue kinds{true, {2, 3, 1, 1, 1, 1, 1, 1, 1, 1}, {}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    tokens.texts.push_back(name);
    scores.numbers.push_back(0);
    kinds.numbers.push_back(6);
  }
  values["tokenizer.ggml.model"] = word("llama");
  values["tokenizer.ggml.tokens"] = tokens;
  values["tokenizer.ggml.scores"] = scores;
  values["tokenizer.ggml.token_type"] = kinds;
  values["tokenizer.ggml.bos_token_id"] = number(1);
  const Tokenizer tokenizer(definition_from_gguf({"m: ", values}));
  const auto ids = [&](const char* text) { return ids_of(tokenizer.encode(text)); };
  EXPECT_EQ(ids("abc"), (std::vector<std::size_t>{1, 2, 9}));  // bc before ab, then a and bc are abc
  EXPECT_EQ(ids("ab"), (std::vector<std::size_t>{1, 2, 6}));   // ab before ▁a
  EXPECT_EQ(ids("a b"), (std::vector<std::size_t>{1, 8, 2, 4}));
  EXPECT_EQ(ids("a\xC3\xA9"), (std::vector<std::size_t>{1, 8, 10 + 0xC3, 10 + 0xA9}));
  EXPECT_EQ(tokenizer.decode(ids("ab \xC3\xA9")), "ab \xC3\xA9");
  values["tokenizer.ggml.scores"].numbers.pop_back();
  EXPECT_EQ(error_of([&] {
              definition_from_gguf({"m: ", values});
            }),
            "m: tokenizer.ggml.scores: expected 266 numbers, one for each token, got 265");
}

/// Byte pairs of two letters. llama-vocab.cpp, add_bos, says which names begin with a token by default.
TEST(GgufTokenizer, BeginsAsItsNameSays) {
  const auto first_of = [](const char* pre, std::optional<double> says) {
    std::map<std::string, formats::GgufValue> values{{"tokenizer.ggml.model", word("gpt2")},
                                                     {"tokenizer.ggml.pre", word(pre)},
                                                     {"tokenizer.ggml.bos_token_id", number(3)}};
    values["tokenizer.ggml.tokens"] = {true, {}, {"a", "b", "ab", "<begin>"}};
    values["tokenizer.ggml.merges"] = {true, {}, {"a b"}};
    if (says) values["tokenizer.ggml.add_bos_token"] = number(*says);
    return Tokenizer(definition_from_gguf({"m: ", values})).encode("ab").front().id;
  };
  for (const char* pre : {"llama-bpe", "llama3", "llama-v3", "falcon3"}) {
    EXPECT_EQ(first_of(pre, std::nullopt), 3u) << pre;
    EXPECT_EQ(first_of(pre, 0), 2u) << pre;
    EXPECT_EQ(first_of(pre, 1), 3u) << pre;
  }
  for (const char* pre : {"gpt-2", "qwen2", "smollm"}) {
    EXPECT_EQ(first_of(pre, std::nullopt), 2u) << pre;
    EXPECT_EQ(first_of(pre, 1), 3u) << pre;
  }
}

std::string error_of_json(const std::string& json, const std::string& text = "") {
  return error_of([&] { Tokenizer(definition_from_json(formats::parse_json(json, "t.json"))).encode(text); });
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

// Each step doubles its input: thirty of them would turn a word into gigabytes.
TEST(DamagedTokenizer, DoesNotFillTheMemory) {
  const auto thirty = [](const std::string& step) {
    std::string steps = step;
    for (int k = 1; k < 30; ++k) steps += ", " + step;
    return steps;
  };
  const char* refused =
      "the text cannot be cut into tokens: the steps of the tokenizer make more than 4194304 bytes of it";
  EXPECT_EQ(
      error_of_json(
          model("", R"(, "normalizer": {"type": "Sequence", "normalizers": [)" +
                        thirty(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})") + "]}"),
          "aaaa"),
      refused);
  EXPECT_EQ(error_of_json(model("", R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [)" +
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
  EXPECT_EQ(error_of_json(model(""), "a\xFF"), "expected text in UTF-8, got other bytes");
}

}  // namespace
}  // namespace core::tokenizers
