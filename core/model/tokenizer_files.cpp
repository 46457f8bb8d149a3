// Tokenizers in files: tokenizer.json and the older files of Hugging Face, and GGUF's metadata.
#include <algorithm>
#include <array>
#include <set>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/base/words.hpp"
#include "core/files/gguf.hpp"
#include "core/files/json.hpp"
#include "core/model/tokenizer.hpp"
#include "core/system/file.hpp"

namespace core::tokenizers {
namespace {

namespace fs = std::filesystem;
using formats::GgufMetadata;
using formats::Json;
using formats::Word;

bool flag(const Json& place, const char* key, bool otherwise) {
  const auto member = place.given(key);
  return member ? member->boolean() : otherwise;
}

/// Reads a "pattern": {"String": TEXT} or {"Regex": PATTERN}.
Regex pattern_of(const Json& place) {
  if (const auto regex = place.member("Regex")) return Regex(regex->text(), regex->place());
  return Regex(escaped_pattern(place.required("String").text()), place.place());
}

SplitAt split_at(const char* pattern, Delimiters delimiters) {
  return {Regex(pattern, ""), delimiters};
}

Delimiters delimiters_of(const Json& place) {
  static constexpr std::array words{
      Word{"Removed", Delimiters::removed}, Word{"Isolated", Delimiters::isolated},
      Word{"MergedWithPrevious", Delimiters::merged_with_previous},
      Word{"MergedWithNext", Delimiters::merged_with_next}, Word{"Contiguous", Delimiters::contiguous}};
  const auto behavior = place.member("behavior");
  return behavior ? behavior->word(words) : Delimiters::isolated;
}

ToMetaspace metaspace_of(const Json& place) {
  using enum ToMetaspace::InFront;
  static constexpr std::array words{Word{"always", always}, Word{"never", never}, Word{"first", first}};
  const Json replacement = place.required("replacement");
  if (text::character_count(replacement.text()) != 1) replacement.fail("one character");
  ToMetaspace step{replacement.text()};
  if (const auto scheme = place.member("prepend_scheme"))
    step.in_front = scheme->word(words);
  else
    step.in_front = flag(place, "add_prefix_space", true) ? always : never;
  step.splits = flag(place, "split", true);
  return step;
}

void add_normalizer(const Json& place, std::vector<Normalizer>& steps) {
  const std::string type = place.required("type").text();
  if (type == "Sequence") {
    for (const Json& item : place.required("normalizers").items_if_any("a list of normalizers"))
      add_normalizer(item, steps);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    static constexpr std::array forms{Word{"NFC", NormalForm::nfc}, Word{"NFD", NormalForm::nfd},
                                      Word{"NFKC", NormalForm::nfkc}, Word{"NFKD", NormalForm::nfkd}};
    steps.push_back(ToForm{place.required("type").word(forms)});
  } else if (type == "Lowercase") {
    steps.push_back(ToLower{});
  } else if (type == "StripAccents") {
    steps.push_back(StripAccents{});
  } else if (type == "BertNormalizer") {
    const bool lower = flag(place, "lowercase", true);
    steps.push_back(CleanForBert{flag(place, "clean_text", true), flag(place, "handle_chinese_chars", true),
                                 flag(place, "strip_accents", lower), lower});
  } else if (type == "Prepend") {
    steps.push_back(Prepend{place.required("prepend").text()});
  } else if (type == "Replace") {
    steps.push_back(ReplaceAll{pattern_of(place.required("pattern")), place.required("content").text()});
  } else if (type == "Strip") {
    steps.push_back(StripBlanks{flag(place, "strip_left", true), flag(place, "strip_right", true)});
  } else {
    place.required("type").fail("a normalizer that is known here");
  }
}

void add_pre_tokenizer(const Json& place, std::vector<PreTokenizer>& steps) {
  const std::string type = place.required("type").text();
  if (type == "Sequence") {
    for (const Json& item : place.required("pretokenizers").items_if_any("a list of pre-tokenizers"))
      add_pre_tokenizer(item, steps);
  } else if (type == "ByteLevel") {
    const bool adds_blank = flag(place, "add_prefix_space", true);
    if (flag(place, "use_regex", true)) {
      if (adds_blank) steps.push_back(ToMetaspace{" ", ToMetaspace::InFront::always, false});
      steps.push_back(split_at(gpt2_pattern, Delimiters::isolated));
      steps.push_back(ToBytes{});
    } else {
      steps.push_back(ToBytes{adds_blank});
    }
  } else if (type == "Split") {
    steps.push_back(
        SplitAt{pattern_of(place.required("pattern")), delimiters_of(place), flag(place, "invert", false)});
  } else if (type == "Digits") {
    steps.push_back(
        split_at(flag(place, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", Delimiters::isolated));
  } else if (type == "Whitespace") {
    steps.push_back(SplitAt{Regex(R"(\w+|[^\w\s]+)", "", Dialect::rust), Delimiters::removed, true});
  } else if (type == "WhitespaceSplit") {
    steps.push_back(split_at(R"(\s)", Delimiters::removed));
  } else if (type == "Punctuation") {
    steps.push_back(SplitAt{Regex(R"([!-/:-@\[-`{-~]|\p{P})", ""), delimiters_of(place)});
  } else if (type == "BertPreTokenizer") {
    steps.push_back(SplitForBert{});
  } else if (type == "Metaspace") {
    steps.push_back(metaspace_of(place));
  } else {
    place.required("type").fail("a pre-tokenizer that is known here");
  }
}

constexpr std::uint64_t most_pieces = 1u << 24, least_room = 1u << 20;
constexpr std::size_t longest_word = 512;  // as the time for a word grows with its cube

/// IDs need not be contiguous, but memory is taken for all up to the largest, which is thus limited.
std::size_t number_of_piece(const Json& place, std::size_t n_pieces) {
  const std::uint64_t id = place.whole(0), most = std::min(most_pieces, least_room + 2 * n_pieces);
  if (id >= most) place.fail("a number of a token below " + std::to_string(most));
  return id;
}

/// Throws core::Error when an option is set that is not supported.
void expect_nothing(const Json& model, const char* key) {
  const auto member = model.given(key);
  if (member && !(member->is_text() && member->text().empty()) &&
      !(member->is_number() && member->number() == 0))
    member->fail("null, as this is not known here");
}

/// Adds a merge written as two pieces with one space between them, which may_have_more_blanks relaxes to the
/// first space after the first character. Throws core::Error, "PLACE…".
void add_merge_of_line(BytePairs& pairs, const Vocabulary& vocabulary, std::string_view line,
                       std::size_t rank, const std::string& place, bool may_have_more_blanks = false) {
  const std::size_t blank = line.find(' ', may_have_more_blanks ? 1 : 0);
  if (blank == line.npos || (!may_have_more_blanks && line.find(' ', blank + 1) != line.npos))
    throw Error(place + "expected two pieces with a blank between them");
  add_merge(pairs, vocabulary, line.substr(0, blank), line.substr(blank + 1), rank, place);
}

std::size_t id_of(const Json& place, const Vocabulary& vocabulary) {
  if (const auto id = vocabulary.find(place.text())) return *id;
  place.fail("a token of the vocabulary");
}

BytePairs byte_pairs_of(const Json& model, const Vocabulary& vocabulary) {
  BytePairs pairs;
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    expect_nothing(model, key);
  if (const auto unknown = model.given("unk_token")) pairs.unknown = id_of(*unknown, vocabulary);
  pairs.joins_unknown = flag(model, "fuse_unk", false);
  pairs.falls_back_to_bytes = flag(model, "byte_fallback", false);
  pairs.takes_whole_words = flag(model, "ignore_merges", false);
  std::size_t rank = 0;
  const auto add = [&](const Json& merge, std::string_view left, std::string_view right) {
    try {
      add_merge(pairs, vocabulary, left, right, rank++, "");
    } catch (const Error& error) {
      throw Error(merge.place() + error.what());
    }
  };
  for (const Json& merge : model.required("merges").items_if_any("a list of merges")) {
    if (merge.is_text()) {
      const std::string& line = merge.text();
      const std::size_t blank = line.find(' ');
      if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
        merge.fail("two pieces with a blank between them");
      add(merge, std::string_view(line).substr(0, blank), std::string_view(line).substr(blank + 1));
    } else {
      const auto parts = merge.items("two pieces", 2);
      add(merge, parts[0].text(), parts[1].text());
    }
  }
  return pairs;
}

WordPieces word_pieces_of(const Json& model, const Vocabulary& vocabulary) {
  WordPieces pieces;
  pieces.unknown = id_of(model.required("unk_token"), vocabulary);
  if (const auto prefix = model.given("continuing_subword_prefix")) pieces.continues = prefix->text();
  if (const auto longest = model.given("max_input_chars_per_word"))
    if (pieces.longest_word = longest->whole(1); pieces.longest_word > longest_word)
      longest->fail("a number of characters up to " + std::to_string(longest_word));
  return pieces;
}

std::string type_of_model(const Json& model) {
  if (const auto type = model.given("type")) return type->text();
  return model.member("merges") ? "BPE" : "WordPiece";
}

void read_added(const Json& list, Recipe& recipe) {
  for (const Json& token : list.items_if_any("a list of tokens"))
    recipe.added.push_back(
        {token.required("content").text(), number_of_piece(token.required("id"), recipe.vocabulary.size()),
         flag(token, "special", false), flag(token, "normalized", false), flag(token, "lstrip", false),
         flag(token, "rstrip", false), flag(token, "single_word", false)});
}

std::size_t id_in_pair(const Json& pair, const Recipe& recipe) {
  return number_of_piece(pair.items("a token and its number", 2)[1], recipe.vocabulary.size());
}

/// Reads the tokens that a template for one text puts around it.
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

template <class Kind, class Steps>
bool has_step(const Steps& steps) {
  return std::ranges::any_of(steps, [](const auto& step) { return std::holds_alternative<Kind>(step); });
}

Spelling spelling_of(const Recipe& recipe) {
  if (std::holds_alternative<WordPieces>(recipe.model)) return Spelling::word_pieces;
  if (has_step<ToBytes>(recipe.pre_tokenizers)) return Spelling::bytes;
  const bool writes_blanks =
      has_step<ToMetaspace>(recipe.pre_tokenizers) || has_step<ReplaceAll>(recipe.normalizers);
  return writes_blanks ? Spelling::metaspace : Spelling::plain;
}

/// Returns whether a space is put in front of a text.
bool puts_blank_in_front(const Recipe& recipe) {
  return has_step<Prepend>(recipe.normalizers) ||
         std::ranges::any_of(recipe.pre_tokenizers, [](const PreTokenizer& step) {
           const auto* metaspace = std::get_if<ToMetaspace>(&step);
           return metaspace && metaspace->character != " " &&
                  metaspace->in_front != ToMetaspace::InFront::never;
         });
}

void read_vocabulary(const Json& pieces, Vocabulary& vocabulary) {
  const auto members = pieces.members();
  for (const auto& [piece, id] : members) vocabulary.put(piece, number_of_piece(id, members.size()));
}

/// A way in which llama.cpp splits words, by its names in files.
struct PreName {
  const char* names;  ///< separated by spaces
  const char* pattern;
  bool digits_apart = false, takes_whole_words = false, composes = false;
  bool begins = false;  ///< with a BOS token, unless the file says
};
constexpr const char* contractions_in_capitals =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* single_digits =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::array pre_names{
    PreName{"llama3 llama-v3 llama-bpe falcon3", contractions_in_capitals, false, true, false, true},
    PreName{"qwen2 deepseek-r1-qwen", single_digits, false, false, true},
    PreName{"smollm starcoder refact command-r codeshell", nullptr, true},
    PreName{"gpt-2 gpt2 phi-2 jina-es jina-de olmo mpt roberta-bpe", nullptr},
};

const PreName& pre_name_of(const GgufMetadata& metadata) {
  // Without a name llama.cpp warns, and splits in a way that no model uses.
  const auto name = metadata.text("tokenizer.ggml.pre");
  const auto row = std::ranges::find_if(
      pre_names, [&](const PreName& each) { return name && text::has_word(each.names, *name); });
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
    const double kind = kinds.empty() ? normal : kinds[id];  // may be any number in a damaged file
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
    add_merge_of_line(pairs, recipe.vocabulary, line, rank++, place, true);
  }
  recipe.model = std::move(pairs);
  if (pre.composes) recipe.normalizers.push_back(ToForm{NormalForm::nfc});
  if (pre.digits_apart) recipe.pre_tokenizers.push_back(SplitAt{Regex(R"(\p{N})", "")});
  recipe.pre_tokenizers.push_back(SplitAt{Regex(pre.pattern ? pre.pattern : gpt2_pattern, "")});
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
  // llama.cpp puts a space in front of a text whether it begins with one or not.
  if (puts_blank) recipe.normalizers.push_back(Prepend{" "});
  recipe.normalizers.push_back(ReplaceAll{Regex(" ", ""), "\xE2\x96\x81"});
  recipe.spelling = Spelling::metaspace;
  recipe.strips_first_blank = puts_blank;
  read_ends(metadata, true, recipe);
}

/// Reads pieces as llama.cpp writes them, with U+2581 at the beginning of a word and nothing at a
/// continuation, and spells them as BERT does.
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
  recipe.pre_tokenizers = {SplitForBert{}};
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

constexpr std::size_t largest_file = std::size_t{256} << 20;

Json json_of(const fs::path& path) {
  return formats::parse_json(system::read_file(path, largest_file), path.string());
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

/// Adds those of the texts that are in the vocabulary as special tokens.
void add_special(Recipe& recipe, std::initializer_list<const char*> texts) {
  for (const char* text : texts)
    if (const auto id = recipe.vocabulary.find(text)) recipe.added.push_back({text, *id, true});
}

Recipe recipe_of_merges(const fs::path& folder) {
  Recipe recipe;
  read_vocabulary(json_of(folder / "vocab.json"), recipe.vocabulary);
  const fs::path path = folder / "merges.txt";
  const std::string text = system::read_file(path, largest_file);
  BytePairs pairs;
  std::size_t rank = 0;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    add_merge_of_line(pairs, recipe.vocabulary, line, rank++,
                      path.string() + ": line " + std::to_string(number) + ": ");
  });
  recipe.model = std::move(pairs);
  recipe.pre_tokenizers = {SplitAt{Regex(gpt2_pattern, "")}, ToBytes{}};
  recipe.spelling = Spelling::bytes;
  add_special(recipe, {"<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"});
  return recipe;
}

bool lowers(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!system::is_file(path)) return true;
  const auto said = json_of(path).member("do_lower_case");
  return !said || !said->is_boolean() || said->boolean();
}

Recipe recipe_of_lines(const fs::path& folder) {
  const fs::path path = folder / "vocab.txt";
  Recipe recipe;
  for_each_line(system::read_file(path, largest_file), [&](std::string_view line, std::size_t number) {
    recipe.vocabulary.put(std::string(line), number - 1);
  });
  const auto id_of = [&](const char* piece) {
    if (const auto id = recipe.vocabulary.find(piece)) return *id;
    throw Error(path.string() + ": expected " + piece + " among its lines");
  };
  recipe.model = WordPieces{id_of("[UNK]")};
  const bool lower = lowers(folder);
  recipe.normalizers = {CleanForBert{true, true, lower, lower}};
  recipe.pre_tokenizers = {SplitForBert{}};
  recipe.in_front = {id_of("[CLS]")};
  recipe.behind = {id_of("[SEP]")};
  recipe.spelling = Spelling::word_pieces;
  add_special(recipe, {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"});
  return recipe;
}

}  // namespace

Recipe recipe_of_json(const Json& top) {
  if (!top.is_object()) top.fail("an object");
  const Json model = top.required("model");
  const std::string type = type_of_model(model);
  if (type != "BPE" && type != "WordPiece")
    model.fail("a model BPE or WordPiece, the only ones known here", "\"" + type + "\"");
  Recipe recipe;
  read_vocabulary(model.required("vocab"), recipe.vocabulary);
  if (const auto list = top.given("added_tokens")) {
    read_added(*list, recipe);
    for (const AddedToken& token : recipe.added) recipe.vocabulary.put(token.text, token.id);
  }
  if (type == "BPE")
    recipe.model = byte_pairs_of(model, recipe.vocabulary);
  else
    recipe.model = word_pieces_of(model, recipe.vocabulary);
  if (const auto place = top.given("normalizer")) add_normalizer(*place, recipe.normalizers);
  if (const auto place = top.given("pre_tokenizer")) add_pre_tokenizer(*place, recipe.pre_tokenizers);
  if (const auto place = top.given("post_processor")) read_post_processor(*place, recipe);
  recipe.spelling = spelling_of(recipe);
  recipe.strips_first_blank = puts_blank_in_front(recipe);
  return recipe;
}

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

bool has_tokenizer(const fs::path& folder) {
  return system::is_file(folder / "tokenizer.json") || system::is_file(folder / "vocab.txt") ||
         (system::is_file(folder / "vocab.json") && system::is_file(folder / "merges.txt"));
}

Tokenizer open_tokenizer(const fs::path& folder) {
  if (system::is_file(folder / "tokenizer.json"))
    return Tokenizer(recipe_of_json(json_of(folder / "tokenizer.json")));
  if (system::is_file(folder / "vocab.json") && system::is_file(folder / "merges.txt"))
    return Tokenizer(recipe_of_merges(folder));
  if (system::is_file(folder / "vocab.txt")) return Tokenizer(recipe_of_lines(folder));
  throw Error(folder.string() +
              ": expected a tokenizer: tokenizer.json, vocab.json with merges.txt, or vocab.txt");
}

}  // namespace core::tokenizers
