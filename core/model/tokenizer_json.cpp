#include "core/model/tokenizer_json.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace core::tokenizers {
namespace {

using formats::Json;

constexpr std::uint64_t most_pieces = 1u << 24, least_room = 1u << 20;
constexpr std::size_t longest_word = 512;  // the time for a word grows with its cube

std::optional<Json> given_member(const Json& place, const char* key) {
  auto member = place.member(key);
  return member && !member->is_null() ? member : std::nullopt;
}

bool is_on(const Json& place, const char* key) {
  const auto member = given_member(place, key);
  return member && member->boolean();
}

/// Numbers need not follow one another, but memory is taken for all up to the largest.
std::size_t number_of_piece(const Json& place, std::size_t n_pieces) {
  const std::uint64_t id = place.whole(0), most = std::min(most_pieces, least_room + 2 * n_pieces);
  if (id >= most) place.fail("a number of a token below " + std::to_string(most));
  return id;
}

/// What this program has no way of doing must not be passed over.
void expect_nothing(const Json& model, const char* key) {
  const auto member = given_member(model, key);
  if (member && !(member->is_text() && member->text().empty()) &&
      !(member->is_number() && member->number() == 0))
    member->fail("null, as this is not known here");
}

std::size_t id_of(const Json& place, const Vocabulary& vocabulary) {
  if (const auto id = vocabulary.find(place.text())) return *id;
  place.fail("a token of the vocabulary");
}

BytePairs byte_pairs_of(const Json& model, const Vocabulary& vocabulary) {
  BytePairs pairs;
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    expect_nothing(model, key);
  if (const auto unknown = given_member(model, "unk_token")) pairs.unknown = id_of(*unknown, vocabulary);
  pairs.joins_unknown = is_on(model, "fuse_unk");
  pairs.falls_back_to_bytes = is_on(model, "byte_fallback");
  pairs.takes_whole_words = is_on(model, "ignore_merges");
  std::size_t rank = 0;
  for (const Json& merge : model.required("merges").items_if_any("a list of merges")) {
    if (merge.is_text()) {
      const std::string& line = merge.text();
      const std::size_t blank = line.find(' ');
      if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
        merge.fail("two pieces with a blank between them");
      add_merge(pairs, vocabulary, line.substr(0, blank), line.substr(blank + 1), rank++, merge.place());
    } else {
      const auto parts = merge.items("two pieces");
      if (parts.size() != 2) merge.fail("two pieces");
      add_merge(pairs, vocabulary, parts[0].text(), parts[1].text(), rank++, merge.place());
    }
  }
  return pairs;
}

WordPieces word_pieces_of(const Json& model, const Vocabulary& vocabulary) {
  WordPieces pieces;
  pieces.unknown = id_of(model.required("unk_token"), vocabulary);
  if (const auto prefix = given_member(model, "continuing_subword_prefix")) pieces.continues = prefix->text();
  if (const auto longest = given_member(model, "max_input_chars_per_word"))
    if (pieces.longest_word = longest->whole(1); pieces.longest_word > longest_word)
      longest->fail("a number of characters up to " + std::to_string(longest_word));
  return pieces;
}

std::string type_of_model(const Json& model) {
  if (const auto type = given_member(model, "type")) return type->text();
  return model.member("merges") ? "BPE" : "WordPiece";
}

void read_added(const Json& list, Recipe& recipe) {
  for (const Json& token : list.items_if_any("a list of tokens"))
    recipe.added.push_back({token.required("content").text(),
                            number_of_piece(token.required("id"), recipe.vocabulary.size()),
                            is_on(token, "special"), is_on(token, "normalized"), is_on(token, "lstrip"),
                            is_on(token, "rstrip"), is_on(token, "single_word")});
}

std::size_t id_in_pair(const Json& pair, const Recipe& recipe) {
  const auto items = pair.items("a token and its number");
  if (items.size() != 2) pair.fail("a token and its number");
  return number_of_piece(items[1], recipe.vocabulary.size());
}

/// The tokens that a template for one text has around it.
void read_template(const Json& place, Recipe& recipe) {
  bool is_behind = false;
  for (const Json& item : place.required("single").items_if_any("a list of pieces")) {
    if (const auto special = item.member("SpecialToken")) {
      const std::string name = special->required("id").text();
      const Json entry = place.required("special_tokens").required(name);
      for (const Json& id : entry.required("ids").items("a list of numbers of tokens"))
        (is_behind ? recipe.behind : recipe.in_front)
            .push_back(number_of_piece(id, recipe.vocabulary.size()));
    } else {
      is_behind = true;
    }
  }
}

void read_post_processor(const Json& place, Recipe& recipe) {
  if (place.is_null()) return;
  const std::string type = place.required("type").text();
  if (type == "TemplateProcessing") {
    read_template(place, recipe);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    recipe.in_front.push_back(id_in_pair(place.required("cls"), recipe));
    recipe.behind.push_back(id_in_pair(place.required("sep"), recipe));
  } else if (type == "Sequence") {
    for (const Json& item : place.required("processors").items_if_any("a list of processors"))
      read_post_processor(item, recipe);
  } else if (type != "ByteLevel") {
    place.required("type").fail("a post-processor that is known here");
  }
}

Spelling spelling_of(const Recipe& recipe) {
  const auto has = [&](auto is) { return std::ranges::any_of(recipe.pre_tokenizers, is); };
  if (std::holds_alternative<WordPieces>(recipe.model)) return Spelling::word_pieces;
  if (has([](const PreTokenizer& step) { return std::holds_alternative<ToBytes>(step); }))
    return Spelling::bytes;
  const bool writes_blanks =
      has([](const PreTokenizer& step) { return std::holds_alternative<ToMetaspace>(step); }) ||
      std::ranges::any_of(recipe.normalizers,
                          [](const Normalizer& step) { return std::holds_alternative<ReplaceAll>(step); });
  return writes_blanks ? Spelling::metaspace : Spelling::plain;
}

/// Whether a blank is put in front of a text before it is cut.
bool puts_blank_in_front(const Recipe& recipe) {
  return std::ranges::any_of(recipe.normalizers,
                             [](const Normalizer& step) { return std::holds_alternative<Prepend>(step); }) ||
         std::ranges::any_of(recipe.pre_tokenizers, [](const PreTokenizer& step) {
           const auto* metaspace = std::get_if<ToMetaspace>(&step);
           return metaspace && metaspace->character != " " &&
                  metaspace->in_front != ToMetaspace::InFront::never;
         });
}

}  // namespace

void read_vocabulary(const Json& pieces, Vocabulary& vocabulary) {
  const auto members = pieces.members();
  for (const auto& [piece, id] : members) vocabulary.put(piece, number_of_piece(id, members.size()));
}

Recipe recipe_of_json(const Json& top) {
  if (!top.is_object()) top.fail("an object");
  const Json model = top.required("model");
  const std::string type = type_of_model(model);
  if (type != "BPE" && type != "WordPiece")
    model.fail("a model BPE or WordPiece, the only ones known here", "\"" + type + "\"");
  Recipe recipe;
  read_vocabulary(model.required("vocab"), recipe.vocabulary);
  if (const auto list = given_member(top, "added_tokens")) {
    read_added(*list, recipe);
    for (const AddedToken& token : recipe.added) recipe.vocabulary.put(token.text, token.id);
  }
  if (type == "BPE")
    recipe.model = byte_pairs_of(model, recipe.vocabulary);
  else
    recipe.model = word_pieces_of(model, recipe.vocabulary);
  if (const auto place = given_member(top, "normalizer")) recipe.normalizers = normalizers_of(*place);
  if (const auto place = given_member(top, "pre_tokenizer"))
    recipe.pre_tokenizers = pre_tokenizers_of(*place);
  if (const auto place = given_member(top, "post_processor")) read_post_processor(*place, recipe);
  recipe.spelling = spelling_of(recipe);
  recipe.strips_first_blank = puts_blank_in_front(recipe);
  return recipe;
}

}  // namespace core::tokenizers
