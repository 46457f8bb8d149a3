#include "core/model/gguf_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.hpp"

namespace core::tokenizers {
namespace {

using formats::GgufMetadata;

/// Words as llama.cpp cuts them, by the name that a file calls it.
struct PreName {
  const char* names;  ///< blanks around each
  const char* pattern;
  bool digits_apart = false, takes_whole_words = false, composes = false;
  bool begins = false;  ///< with a token in front of every text, where the file does not say
};
constexpr const char* contractions_in_capitals =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* single_digits =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::array pre_names{
    PreName{" llama3 llama-v3 llama-bpe falcon3 ", contractions_in_capitals, false, true, false, true},
    PreName{" qwen2 deepseek-r1-qwen ", single_digits, false, false, true},
    PreName{" smollm starcoder refact command-r codeshell ", nullptr, true},
    PreName{" gpt-2 gpt2 phi-2 jina-es jina-de olmo mpt roberta-bpe ", nullptr},
};

const PreName& pre_name_of(const GgufMetadata& metadata) {
  // Without a name llama.cpp warns, and cuts in a way that belongs to no model.
  const auto name = metadata.text("tokenizer.ggml.pre");
  const auto row = std::ranges::find_if(pre_names, [&](const PreName& each) {
    return name && std::string_view(each.names).find(" " + *name + " ") != std::string_view::npos;
  });
  if (row == pre_names.end())
    throw Error(metadata.place() +
                "tokenizer.ggml.pre: expected gpt-2, llama-bpe, qwen2 or smollm, as others cut words in ways "
                "that are not known here, " +
                (name ? "got \"" + *name + "\"" : "there is none"));
  return *row;
}

/// Kinds of pieces, as sentencepiece numbers them.
constexpr double normal = 1, control = 3, user_defined = 4;

void read_pieces(const GgufMetadata& metadata, Recipe& recipe) {
  const auto& pieces = metadata.texts("tokenizer.ggml.tokens");
  const auto& kinds = metadata.numbers("tokenizer.ggml.token_type");
  if (pieces.empty())
    throw Error(metadata.place() + "tokenizer.ggml.tokens: expected pieces, there are none");
  if (!kinds.empty() && kinds.size() != pieces.size())
    throw Error(metadata.place() + "tokenizer.ggml.token_type: expected " + std::to_string(pieces.size()) +
                " kinds, one for each token, got " + std::to_string(kinds.size()));
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    recipe.vocabulary.put(pieces[id], id);
    const double kind = kinds.empty() ? normal : kinds[id];  // any number, of a damaged file
    if (kind == control || kind == user_defined) recipe.added.push_back({pieces[id], id, kind == control});
  }
}

std::size_t id_at(const GgufMetadata& metadata, const char* key, const Recipe& recipe) {
  const std::size_t id = metadata.required_whole(key);
  if (id >= recipe.vocabulary.size())
    throw Error(metadata.place() + key + ": expected a token below " +
                std::to_string(recipe.vocabulary.size()) + ", got " + std::to_string(id));
  return id;
}

void read_ends(const GgufMetadata& metadata, bool begins, Recipe& recipe) {
  if (metadata.number("tokenizer.ggml.add_bos_token").value_or(begins) != 0)
    recipe.in_front = {id_at(metadata, "tokenizer.ggml.bos_token_id", recipe)};
  if (metadata.number("tokenizer.ggml.add_eos_token").value_or(0) != 0)
    recipe.behind = {id_at(metadata, "tokenizer.ggml.eos_token_id", recipe)};
}

void read_byte_pairs(const GgufMetadata& metadata, Recipe& recipe) {
  const PreName& pre = pre_name_of(metadata);
  BytePairs pairs;
  pairs.takes_whole_words = pre.takes_whole_words;
  std::size_t rank = 0;
  for (const std::string& line : metadata.texts("tokenizer.ggml.merges")) {
    const std::string place = metadata.place() + "tokenizer.ggml.merges: " + std::to_string(rank) + ": ";
    const std::size_t blank = line.find(' ', 1);
    if (blank == line.npos) throw Error(place + "expected two pieces with a blank between them");
    add_merge(pairs, recipe.vocabulary, line.substr(0, blank), line.substr(blank + 1), rank++, place);
  }
  recipe.model = std::move(pairs);
  if (pre.composes) recipe.normalizers.push_back(ToForm{NormalForm::nfc});
  if (pre.digits_apart) recipe.pre_tokenizers.push_back(CutAt{Regex(R"(\p{N})", "")});
  recipe.pre_tokenizers.push_back(CutAt{Regex(pre.pattern ? pre.pattern : gpt2_pattern, "")});
  recipe.pre_tokenizers.push_back(ToBytes{});
  recipe.spelling = Spelling::bytes;
  read_ends(metadata, pre.begins, recipe);
}

void read_scored_pairs(const GgufMetadata& metadata, Recipe& recipe) {
  ScoredPairs pairs;
  for (const double score : metadata.numbers("tokenizer.ggml.scores"))
    pairs.scores.push_back(static_cast<float>(score));
  if (pairs.scores.size() != recipe.vocabulary.size())
    throw Error(metadata.place() + "tokenizer.ggml.scores: expected " +
                std::to_string(recipe.vocabulary.size()) + " numbers, one for each token, got " +
                std::to_string(pairs.scores.size()));
  if (metadata.whole("tokenizer.ggml.unknown_token_id"))
    pairs.unknown = id_at(metadata, "tokenizer.ggml.unknown_token_id", recipe);
  recipe.model = std::move(pairs);
  const bool puts_blank = metadata.number("tokenizer.ggml.add_space_prefix").value_or(1) != 0;
  // llama.cpp puts a blank in front of a text whether it begins with one or not.
  if (puts_blank) recipe.normalizers.push_back(Prepend{" "});
  recipe.normalizers.push_back(ReplaceAll{Regex(" ", ""), "\xE2\x96\x81"});
  recipe.spelling = Spelling::metaspace;
  recipe.strips_first_blank = puts_blank;
  read_ends(metadata, true, recipe);
}

/// Pieces as llama.cpp writes them, with U+2581 where a word begins and nothing where one goes on, put back
/// as BERT has them.
void read_word_pieces(const GgufMetadata& metadata, Recipe& recipe) {
  constexpr std::string_view begins = "\xE2\x96\x81";
  Vocabulary vocabulary;
  std::set<std::size_t> added;
  for (const AddedToken& token : recipe.added) added.insert(token.id);
  for (std::size_t id = 0; id < recipe.vocabulary.size(); ++id) {
    const std::string& piece = recipe.vocabulary.piece(id);
    const bool is_special = piece.starts_with('[') && piece.ends_with(']') && piece.size() > 2;
    const bool is_added = added.contains(id);
    if (piece.starts_with(begins))
      vocabulary.put(piece.substr(begins.size()), id);
    else
      vocabulary.put(is_special || is_added ? piece : "##" + piece, id);
    if (is_special && !is_added) recipe.added.push_back({piece, id, true});
  }
  recipe.vocabulary = std::move(vocabulary);
  WordPieces pieces;
  pieces.unknown = id_at(metadata, "tokenizer.ggml.unknown_token_id", recipe);
  recipe.model = pieces;
  recipe.normalizers = {CleanForBert{}};
  recipe.pre_tokenizers = {CutForBert{}};
  const char* first = metadata.whole("tokenizer.ggml.cls_token_id") ? "tokenizer.ggml.cls_token_id"
                                                                    : "tokenizer.ggml.bos_token_id";
  recipe.in_front = {id_at(metadata, first, recipe)};
  recipe.behind = {id_at(metadata,
                         metadata.whole("tokenizer.ggml.seperator_token_id")
                             ? "tokenizer.ggml.seperator_token_id"  // as the format spells it
                             : "tokenizer.ggml.eos_token_id",
                         recipe)};
  recipe.spelling = Spelling::word_pieces;
}

}  // namespace

Recipe recipe_of_gguf(const GgufMetadata& metadata) {
  const std::string kind = metadata.required_text("tokenizer.ggml.model");
  Recipe recipe;
  read_pieces(metadata, recipe);
  if (kind == "gpt2")
    read_byte_pairs(metadata, recipe);
  else if (kind == "llama")
    read_scored_pairs(metadata, recipe);
  else if (kind == "bert")
    read_word_pieces(metadata, recipe);
  else
    throw Error(metadata.place() + "tokenizer.ggml.model: expected gpt2, llama or bert, got \"" + kind +
                "\"");
  return recipe;
}

}  // namespace core::tokenizers
