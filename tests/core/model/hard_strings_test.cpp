#include <gtest/gtest.h>

#include "core/files/file.hpp"
#include "core/files/json.hpp"
#include "core/model/tokenizer.hpp"

namespace core::tokenizers {
namespace {

const std::string fixtures = FIXTURES "/tokenizers/";

formats::Json json_in(const std::string& path) {
  return formats::parse_json(formats::read_file(path, 1 << 24), path);
}

std::vector<std::size_t> ids_of(const std::vector<TextToken>& tokens) {
  std::vector<std::size_t> ids;
  for (const TextToken& token : tokens) ids.push_back(token.id);
  return ids;
}

/// Ids and texts that the library tokenizers gave, on strings that are cut wrongly most easily.
TEST(Tokenizer, CutsHardStringsAsTheLibraryDoes) {
  std::size_t n_texts = 0;
  for (const auto& [name, cases] : json_in(fixtures + "ids.json").required("ids").members()) {
    const Tokenizer tokenizer(recipe_of_json(json_in(fixtures + name + ".json")));
    for (const formats::Json& each : cases.items("cases")) {
      const std::string text = each.required("text").text();
      std::vector<std::size_t> expected;
      for (const formats::Json& id : each.required("ids").items_if_any("ids"))
        expected.push_back(id.whole(0));
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

/// What a word is in scripts with marks: every word of the library's is one token of these.
TEST(Tokenizer, CutsWordsAsTheLibraryDoes) {
  std::size_t n_texts = 0;
  for (const auto& [name, made] : json_in(fixtures + "words.json").required("made").members()) {
    const Tokenizer tokenizer(recipe_of_json(made.required("tokenizer")));
    for (const formats::Json& each : made.required("cases").items("cases")) {
      const std::string text = each.required("text").text();
      std::vector<std::size_t> expected;
      for (const formats::Json& id : each.required("ids").items_if_any("ids"))
        expected.push_back(id.whole(0));
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
  const Tokenizer tokenizer(recipe_of_json(json_in(fixtures + "gpt2.json")));
  std::vector<std::string> texts;
  for (const TextToken& token : tokenizer.encode("x\xE2\x82\xACy")) texts.push_back(token.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"x", "", "", "\xE2\x82\xAC", "y"}));
}

}  // namespace
}  // namespace core::tokenizers
