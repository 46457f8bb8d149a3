#include "core/model/open_tokenizer.hpp"

#include <string>
#include <string_view>
#include <system_error>

#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/model/tokenizer_json.hpp"

namespace core::tokenizers {
namespace {

namespace fs = std::filesystem;
using formats::Json;

constexpr std::size_t largest_file = std::size_t{256} << 20;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

Json json_of(const fs::path& path) {
  return formats::parse_json(formats::read_file(path, largest_file), path.string());
}

/// Calls use(line, number from 1) for every line.
template <class Use>
void for_each_line(std::string_view text, Use use) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line, number);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

/// Adds the tokens of that text that the vocabulary has as special ones.
void add_special(Recipe& recipe, std::initializer_list<const char*> texts) {
  for (const char* text : texts)
    if (const auto id = recipe.vocabulary.find(text)) recipe.added.push_back({text, *id, true});
}

Recipe recipe_of_merges(const fs::path& folder) {
  Recipe recipe;
  read_vocabulary(json_of(folder / "vocab.json"), recipe.vocabulary);
  const fs::path path = folder / "merges.txt";
  const std::string text = formats::read_file(path, largest_file);
  BytePairs pairs;
  std::size_t rank = 0;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    const std::string place = path.string() + ": line " + std::to_string(number) + ": ";
    const std::size_t blank = line.find(' ');
    if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
      throw Error(place + "expected two pieces with a blank between them");
    add_merge(pairs, recipe.vocabulary, line.substr(0, blank), line.substr(blank + 1), rank++, place);
  });
  recipe.model = std::move(pairs);
  recipe.pre_tokenizers = {CutAt{Regex(gpt2_pattern, "")}, ToBytes{}};
  recipe.spelling = Spelling::bytes;
  add_special(recipe, {"<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"});
  return recipe;
}

bool lowers(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!is_file(path)) return true;
  const auto said = json_of(path).member("do_lower_case");
  return !said || !said->is_boolean() || said->boolean();
}

Recipe recipe_of_lines(const fs::path& folder) {
  const fs::path path = folder / "vocab.txt";
  Recipe recipe;
  for_each_line(formats::read_file(path, largest_file), [&](std::string_view line, std::size_t number) {
    recipe.vocabulary.put(std::string(line), number - 1);
  });
  const auto id_of = [&](const char* piece) {
    if (const auto id = recipe.vocabulary.find(piece)) return *id;
    throw Error(path.string() + ": expected " + piece + " among its lines");
  };
  recipe.model = WordPieces{id_of("[UNK]")};
  const bool lower = lowers(folder);
  recipe.normalizers = {CleanForBert{true, true, lower, lower}};
  recipe.pre_tokenizers = {CutForBert{}};
  recipe.in_front = {id_of("[CLS]")};
  recipe.behind = {id_of("[SEP]")};
  recipe.spelling = Spelling::word_pieces;
  add_special(recipe, {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"});
  return recipe;
}

}  // namespace

bool has_tokenizer(const fs::path& folder) {
  return is_file(folder / "tokenizer.json") || is_file(folder / "vocab.txt") ||
         (is_file(folder / "vocab.json") && is_file(folder / "merges.txt"));
}

Tokenizer open_tokenizer(const fs::path& folder) {
  if (is_file(folder / "tokenizer.json"))
    return Tokenizer(recipe_of_json(json_of(folder / "tokenizer.json")));
  if (is_file(folder / "vocab.json") && is_file(folder / "merges.txt"))
    return Tokenizer(recipe_of_merges(folder));
  if (is_file(folder / "vocab.txt")) return Tokenizer(recipe_of_lines(folder));
  throw Error(folder.string() +
              ": expected a tokenizer: tokenizer.json, vocab.json with merges.txt, or vocab.txt");
}

}  // namespace core::tokenizers
