#include "core/model/tokenizer_files.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/base/words.hpp"
#include "core/files/gguf.hpp"
#include "core/files/json.hpp"
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

RegexSplit regex_split(const char* pattern, DelimiterBehavior delimiters) {
  return {Regex(pattern, ""), delimiters};
}

DelimiterBehavior delimiters_of(const Json& place) {
  static constexpr std::array words{Word{"Removed", DelimiterBehavior::removed},
                                    Word{"Isolated", DelimiterBehavior::isolated},
                                    Word{"MergedWithPrevious", DelimiterBehavior::merged_with_previous},
                                    Word{"MergedWithNext", DelimiterBehavior::merged_with_next},
                                    Word{"Contiguous", DelimiterBehavior::contiguous}};
  const auto behavior = place.member("behavior");
  return behavior ? behavior->word(words) : DelimiterBehavior::isolated;
}

Metaspace metaspace_of(const Json& place) {
  using enum Metaspace::Leading;
  static constexpr std::array words{Word{"always", always}, Word{"never", never}, Word{"first", first}};
  const Json replacement = place.required("replacement");
  if (text::character_count(replacement.text()) != 1) replacement.fail("one character");
  Metaspace step{replacement.text()};
  if (const auto scheme = place.member("prepend_scheme"))
    step.leading = scheme->word(words);
  else
    step.leading = flag(place, "add_prefix_space", true) ? always : never;
  step.splits = flag(place, "split", true);
  return step;
}

void add_normalizer(const Json& place, std::vector<Normalizer>& steps) {
  const std::string type = place.required("type").text();
  if (type == "Sequence") {
    for (const Json& item : place.required("normalizers").items_or_empty("a list of normalizers"))
      add_normalizer(item, steps);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    static constexpr std::array forms{Word{"NFC", NormalForm::nfc}, Word{"NFD", NormalForm::nfd},
                                      Word{"NFKC", NormalForm::nfkc}, Word{"NFKD", NormalForm::nfkd}};
    steps.push_back(UnicodeNormalize{place.required("type").word(forms)});
  } else if (type == "Lowercase") {
    steps.push_back(Lowercase{});
  } else if (type == "StripAccents") {
    steps.push_back(StripAccents{});
  } else if (type == "BertNormalizer") {
    const bool lower = flag(place, "lowercase", true);
    steps.push_back(BertNormalizer{flag(place, "clean_text", true), flag(place, "handle_chinese_chars", true),
                                   flag(place, "strip_accents", lower), lower});
  } else if (type == "Prepend") {
    steps.push_back(Prepend{place.required("prepend").text()});
  } else if (type == "Replace") {
    steps.push_back(Replace{pattern_of(place.required("pattern")), place.required("content").text()});
  } else if (type == "Strip") {
    steps.push_back(Strip{flag(place, "strip_left", true), flag(place, "strip_right", true)});
  } else {
    place.required("type").fail("a normalizer that is known here");
  }
}

void add_pre_tokenizer(const Json& place, std::vector<PreTokenizer>& steps) {
  const std::string type = place.required("type").text();
  if (type == "Sequence") {
    for (const Json& item : place.required("pretokenizers").items_or_empty("a list of pre-tokenizers"))
      add_pre_tokenizer(item, steps);
  } else if (type == "ByteLevel") {
    const bool adds_space = flag(place, "add_prefix_space", true);
    if (flag(place, "use_regex", true)) {
      if (adds_space) steps.push_back(Metaspace{" ", Metaspace::Leading::always, false});
      steps.push_back(regex_split(gpt2_pattern, DelimiterBehavior::isolated));
      steps.push_back(ByteLevel{});
    } else {
      steps.push_back(ByteLevel{adds_space});
    }
  } else if (type == "Split") {
    steps.push_back(RegexSplit{pattern_of(place.required("pattern")), delimiters_of(place),
                               flag(place, "invert", false)});
  } else if (type == "Digits") {
    steps.push_back(regex_split(flag(place, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)",
                                DelimiterBehavior::isolated));
  } else if (type == "Whitespace") {
    steps.push_back(
        RegexSplit{Regex(R"(\w+|[^\w\s]+)", "", Dialect::rust), DelimiterBehavior::removed, true});
  } else if (type == "WhitespaceSplit") {
    steps.push_back(regex_split(R"(\s)", DelimiterBehavior::removed));
  } else if (type == "Punctuation") {
    steps.push_back(RegexSplit{Regex(R"([!-/:-@\[-`{-~]|\p{P})", ""), delimiters_of(place)});
  } else if (type == "BertPreTokenizer") {
    steps.push_back(BertPreTokenizer{});
  } else if (type == "Metaspace") {
    steps.push_back(metaspace_of(place));
  } else {
    place.required("type").fail("a pre-tokenizer that is known here");
  }
}

constexpr std::uint64_t max_pieces = 1u << 24, min_id_limit = 1u << 20;
constexpr std::size_t max_word_length = 512;  // as the time for a word grows with its cube

/// IDs need not be contiguous, but memory is taken for all up to the largest, which is thus limited.
std::size_t read_token_id(const Json& place, std::size_t n_pieces) {
  const std::uint64_t id = place.whole(0), id_limit = std::min(max_pieces, min_id_limit + 2 * n_pieces);
  if (id >= id_limit) place.fail("a number of a token below " + std::to_string(id_limit));
  return id;
}

/// Throws core::Error when an option is set that is not supported.
void require_unset(const Json& model, const char* key) {
  const auto member = model.given(key);
  if (member && !(member->is_text() && member->text().empty()) &&
      !(member->is_number() && member->number() == 0))
    member->fail("null, as this is not known here");
}

/// Adds a merge written as two pieces with one space between them, which allows_more_spaces relaxes to the
/// first space after the first character. Throws core::Error, "PLACE…".
void add_merge_of_line(BytePairEncoding& pairs, const Vocabulary& vocabulary, std::string_view line,
                       std::size_t rank, const std::string& place, bool allows_more_spaces = false) {
  const std::size_t space_at = line.find(' ', allows_more_spaces ? 1 : 0);
  if (space_at == line.npos || (!allows_more_spaces && line.find(' ', space_at + 1) != line.npos))
    throw Error(place + "expected two pieces with a blank between them");
  add_merge(pairs, vocabulary, line.substr(0, space_at), line.substr(space_at + 1), rank, place);
}

std::size_t id_of(const Json& place, const Vocabulary& vocabulary) {
  if (const auto id = vocabulary.find(place.text())) return *id;
  place.fail("a token of the vocabulary");
}

BytePairEncoding byte_pairs_of(const Json& model, const Vocabulary& vocabulary) {
  BytePairEncoding pairs;
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    require_unset(model, key);
  if (const auto unknown = model.given("unk_token")) pairs.unknown = id_of(*unknown, vocabulary);
  pairs.fuses_unknown = flag(model, "fuse_unk", false);
  pairs.byte_fallback = flag(model, "byte_fallback", false);
  pairs.ignores_merges = flag(model, "ignore_merges", false);
  std::size_t rank = 0;
  const auto add = [&](const Json& merge, std::string_view left, std::string_view right) {
    try {
      add_merge(pairs, vocabulary, left, right, rank++, "");
    } catch (const Error& error) {
      throw Error(merge.place() + error.what());
    }
  };
  for (const Json& merge : model.required("merges").items_or_empty("a list of merges")) {
    if (merge.is_text()) {
      const std::string& line = merge.text();
      const std::size_t space_at = line.find(' ');
      if (space_at == line.npos || line.find(' ', space_at + 1) != line.npos)
        merge.fail("two pieces with a blank between them");
      add(merge, std::string_view(line).substr(0, space_at), std::string_view(line).substr(space_at + 1));
    } else {
      const auto parts = merge.items("two pieces", 2);
      add(merge, parts[0].text(), parts[1].text());
    }
  }
  return pairs;
}

WordPiece word_pieces_of(const Json& model, const Vocabulary& vocabulary) {
  WordPiece pieces;
  pieces.unknown = id_of(model.required("unk_token"), vocabulary);
  if (const auto prefix = model.given("continuing_subword_prefix")) pieces.continuation = prefix->text();
  if (const auto longest = model.given("max_input_chars_per_word"))
    if (pieces.max_word_length = longest->whole(1); pieces.max_word_length > max_word_length)
      longest->fail("a number of characters up to " + std::to_string(max_word_length));
  return pieces;
}

std::string type_of_model(const Json& model) {
  if (const auto type = model.given("type")) return type->text();
  return model.member("merges") ? "BPE" : "WordPiece";
}

void read_added(const Json& list, TokenizerDefinition& definition) {
  for (const Json& token : list.items_or_empty("a list of tokens"))
    definition.added.push_back(
        {token.required("content").text(), read_token_id(token.required("id"), definition.vocabulary.size()),
         flag(token, "special", false), flag(token, "normalized", false), flag(token, "lstrip", false),
         flag(token, "rstrip", false), flag(token, "single_word", false)});
}

std::size_t id_in_pair(const Json& pair, const TokenizerDefinition& definition) {
  return read_token_id(pair.items("a token and its number", 2)[1], definition.vocabulary.size());
}

/// Reads the tokens that a template for one text puts around it.
void read_template(const Json& place, TokenizerDefinition& definition) {
  bool is_after_text = false;
  for (const Json& item : place.required("single").items_or_empty("a list of pieces")) {
    if (const auto special = item.member("SpecialToken")) {
      const std::string name = special->required("id").text();
      const Json entry = place.required("special_tokens").required(name);
      for (const Json& id : entry.required("ids").items("a list of numbers of tokens"))
        (is_after_text ? definition.trailing : definition.leading)
            .push_back(read_token_id(id, definition.vocabulary.size()));
    } else {
      is_after_text = true;
    }
  }
}

void read_post_processor(const Json& place, TokenizerDefinition& definition) {
  if (place.is_null()) return;
  const std::string type = place.required("type").text();
  if (type == "TemplateProcessing") {
    read_template(place, definition);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    definition.leading.push_back(id_in_pair(place.required("cls"), definition));
    definition.trailing.push_back(id_in_pair(place.required("sep"), definition));
  } else if (type == "Sequence") {
    for (const Json& item : place.required("processors").items_or_empty("a list of processors"))
      read_post_processor(item, definition);
  } else if (type != "ByteLevel") {
    place.required("type").fail("a post-processor that is known here");
  }
}

template <class Kind, class Steps>
bool has_step(const Steps& steps) {
  return std::ranges::any_of(steps, [](const auto& step) { return std::holds_alternative<Kind>(step); });
}

Spelling spelling_of(const TokenizerDefinition& definition) {
  if (std::holds_alternative<WordPiece>(definition.model)) return Spelling::word_pieces;
  if (has_step<ByteLevel>(definition.pre_tokenizers)) return Spelling::bytes;
  const bool uses_metaspace =
      has_step<Metaspace>(definition.pre_tokenizers) || has_step<Replace>(definition.normalizers);
  return uses_metaspace ? Spelling::metaspace : Spelling::plain;
}

/// Returns whether a space is put in front of a text.
bool prepends_space(const TokenizerDefinition& definition) {
  return has_step<Prepend>(definition.normalizers) ||
         std::ranges::any_of(definition.pre_tokenizers, [](const PreTokenizer& step) {
           const auto* metaspace = std::get_if<Metaspace>(&step);
           return metaspace && metaspace->character != " " && metaspace->leading != Metaspace::Leading::never;
         });
}

void read_vocabulary(const Json& pieces, Vocabulary& vocabulary) {
  const auto members = pieces.members();
  for (const auto& [piece, id] : members) vocabulary.put(piece, read_token_id(id, members.size()));
}

/// A way in which llama.cpp splits words, by its names in files.
struct PreTokenizerType {
  const char* names;  ///< separated by spaces
  const char* pattern;
  bool isolates_digits = false, ignores_merges = false, applies_nfc = false;
  bool begins = false;  ///< with a BOS token, unless the file says
};
constexpr const char* llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::array pre_tokenizer_types{
    PreTokenizerType{"llama3 llama-v3 llama-bpe falcon3", llama3_pattern, false, true, false, true},
    PreTokenizerType{"qwen2 deepseek-r1-qwen", qwen2_pattern, false, false, true},
    PreTokenizerType{"smollm starcoder refact command-r codeshell", nullptr, true},
    PreTokenizerType{"gpt-2 gpt2 phi-2 jina-es jina-de olmo mpt roberta-bpe", nullptr},
};

const PreTokenizerType& pre_tokenizer_type_of(const GgufMetadata& metadata) {
  // Without a name llama.cpp warns, and splits in a way that no model uses.
  const auto name = metadata.text("tokenizer.ggml.pre");
  const auto row = std::ranges::find_if(pre_tokenizer_types, [&](const PreTokenizerType& each) {
    return name && text::has_word(each.names, *name);
  });
  if (row == pre_tokenizer_types.end())
    throw Error(metadata.place() +
                "tokenizer.ggml.pre: expected gpt-2, llama-bpe, qwen2 or smollm, as others cut words in ways "
                "that are not known here, " +
                (name ? "got \"" + *name + "\"" : "there is none"));
  return *row;
}

/// Kinds of pieces, as sentencepiece numbers them.
constexpr double normal = 1, control = 3, user_defined = 4;

void read_pieces(const GgufMetadata& metadata, TokenizerDefinition& definition) {
  const auto& pieces = metadata.texts("tokenizer.ggml.tokens");
  const auto& kinds = metadata.numbers("tokenizer.ggml.token_type");
  if (pieces.empty())
    throw Error(metadata.place() + "tokenizer.ggml.tokens: expected pieces, there are none");
  if (!kinds.empty() && kinds.size() != pieces.size())
    throw Error(fmt::format("{}tokenizer.ggml.token_type: expected {} kinds, one for each token, got {}",
                            metadata.place(), pieces.size(), kinds.size()));
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    definition.vocabulary.put(pieces[id], id);
    const double kind = kinds.empty() ? normal : kinds[id];  // may be any number in a damaged file
    if (kind == control || kind == user_defined)
      definition.added.push_back({pieces[id], id, kind == control});
  }
}

std::size_t id_at(const GgufMetadata& metadata, const char* key, const TokenizerDefinition& definition) {
  const std::size_t id = metadata.required_whole(key);
  if (id >= definition.vocabulary.size())
    throw Error(fmt::format("{}{}: expected a token below {}, got {}", metadata.place(), key,
                            definition.vocabulary.size(), id));
  return id;
}

void read_bos_and_eos(const GgufMetadata& metadata, bool begins, TokenizerDefinition& definition) {
  if (metadata.number("tokenizer.ggml.add_bos_token").value_or(begins) != 0)
    definition.leading = {id_at(metadata, "tokenizer.ggml.bos_token_id", definition)};
  if (metadata.number("tokenizer.ggml.add_eos_token").value_or(0) != 0)
    definition.trailing = {id_at(metadata, "tokenizer.ggml.eos_token_id", definition)};
}

void read_byte_pairs(const GgufMetadata& metadata, TokenizerDefinition& definition) {
  const PreTokenizerType& pre = pre_tokenizer_type_of(metadata);
  BytePairEncoding pairs;
  pairs.ignores_merges = pre.ignores_merges;
  std::size_t rank = 0;
  for (const std::string& line : metadata.texts("tokenizer.ggml.merges")) {
    const std::string place = fmt::format("{}tokenizer.ggml.merges: {}: ", metadata.place(), rank);
    add_merge_of_line(pairs, definition.vocabulary, line, rank++, place, true);
  }
  definition.model = std::move(pairs);
  if (pre.applies_nfc) definition.normalizers.push_back(UnicodeNormalize{NormalForm::nfc});
  if (pre.isolates_digits) definition.pre_tokenizers.push_back(RegexSplit{Regex(R"(\p{N})", "")});
  definition.pre_tokenizers.push_back(RegexSplit{Regex(pre.pattern ? pre.pattern : gpt2_pattern, "")});
  definition.pre_tokenizers.push_back(ByteLevel{});
  definition.spelling = Spelling::bytes;
  read_bos_and_eos(metadata, pre.begins, definition);
}

void read_scored_pairs(const GgufMetadata& metadata, TokenizerDefinition& definition) {
  SentencePieceBpe pairs;
  for (const double score : metadata.numbers("tokenizer.ggml.scores"))
    pairs.scores.push_back(static_cast<float>(score));
  if (pairs.scores.size() != definition.vocabulary.size())
    throw Error(fmt::format("{}tokenizer.ggml.scores: expected {} numbers, one for each token, got {}",
                            metadata.place(), definition.vocabulary.size(), pairs.scores.size()));
  if (metadata.whole("tokenizer.ggml.unknown_token_id"))
    pairs.unknown = id_at(metadata, "tokenizer.ggml.unknown_token_id", definition);
  definition.model = std::move(pairs);
  const bool adds_space_prefix = metadata.number("tokenizer.ggml.add_space_prefix").value_or(1) != 0;
  // llama.cpp puts a space in front of a text whether it begins with one or not.
  if (adds_space_prefix) definition.normalizers.push_back(Prepend{" "});
  definition.normalizers.push_back(Replace{Regex(" ", ""), "\xE2\x96\x81"});
  definition.spelling = Spelling::metaspace;
  definition.strips_first_space = adds_space_prefix;
  read_bos_and_eos(metadata, true, definition);
}

/// Reads pieces as llama.cpp writes them, with U+2581 at the beginning of a word and nothing at a
/// continuation, and spells them as BERT does.
void read_word_pieces(const GgufMetadata& metadata, TokenizerDefinition& definition) {
  constexpr std::string_view begins = "\xE2\x96\x81";
  Vocabulary vocabulary;
  std::set<std::size_t> added;
  for (const AddedToken& token : definition.added) added.insert(token.id);
  for (std::size_t id = 0; id < definition.vocabulary.size(); ++id) {
    const std::string& piece = definition.vocabulary.piece(id);
    const bool is_special = piece.starts_with('[') && piece.ends_with(']') && piece.size() > 2;
    const bool is_added = added.contains(id);
    if (piece.starts_with(begins))
      vocabulary.put(piece.substr(begins.size()), id);
    else
      vocabulary.put(is_special || is_added ? piece : "##" + piece, id);
    if (is_special && !is_added) definition.added.push_back({piece, id, true});
  }
  definition.vocabulary = std::move(vocabulary);
  WordPiece pieces;
  pieces.unknown = id_at(metadata, "tokenizer.ggml.unknown_token_id", definition);
  definition.model = pieces;
  definition.normalizers = {BertNormalizer{}};
  definition.pre_tokenizers = {BertPreTokenizer{}};
  const char* first = metadata.whole("tokenizer.ggml.cls_token_id") ? "tokenizer.ggml.cls_token_id"
                                                                    : "tokenizer.ggml.bos_token_id";
  definition.leading = {id_at(metadata, first, definition)};
  definition.trailing = {id_at(metadata,
                               metadata.whole("tokenizer.ggml.seperator_token_id")
                                   ? "tokenizer.ggml.seperator_token_id"  // as the format spells it
                                   : "tokenizer.ggml.eos_token_id",
                               definition)};
  definition.spelling = Spelling::word_pieces;
}

constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

Json json_of(const fs::path& path) {
  return formats::parse_json(system::read_file(path, max_file_bytes), path.string());
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
void add_special(TokenizerDefinition& definition, std::initializer_list<const char*> texts) {
  for (const char* text : texts)
    if (const auto id = definition.vocabulary.find(text)) definition.added.push_back({text, *id, true});
}

TokenizerDefinition definition_from_merges(const fs::path& folder) {
  TokenizerDefinition definition;
  read_vocabulary(json_of(folder / "vocab.json"), definition.vocabulary);
  const fs::path path = folder / "merges.txt";
  const std::string text = system::read_file(path, max_file_bytes);
  BytePairEncoding pairs;
  std::size_t rank = 0;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    add_merge_of_line(pairs, definition.vocabulary, line, rank++,
                      fmt::format("{}: line {}: ", path.string(), number));
  });
  definition.model = std::move(pairs);
  definition.pre_tokenizers = {RegexSplit{Regex(gpt2_pattern, "")}, ByteLevel{}};
  definition.spelling = Spelling::bytes;
  add_special(definition, {"<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"});
  return definition;
}

bool is_uncased(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!system::is_file(path)) return true;
  const auto lower_case = json_of(path).member("do_lower_case");
  return !lower_case || !lower_case->is_boolean() || lower_case->boolean();
}

TokenizerDefinition definition_from_vocab(const fs::path& folder) {
  const fs::path path = folder / "vocab.txt";
  TokenizerDefinition definition;
  for_each_line(system::read_file(path, max_file_bytes), [&](std::string_view line, std::size_t number) {
    definition.vocabulary.put(std::string(line), number - 1);
  });
  const auto id_of = [&](const char* piece) {
    if (const auto id = definition.vocabulary.find(piece)) return *id;
    throw Error(path.string() + ": expected " + piece + " among its lines");
  };
  definition.model = WordPiece{id_of("[UNK]")};
  const bool lower = is_uncased(folder);
  definition.normalizers = {BertNormalizer{true, true, lower, lower}};
  definition.pre_tokenizers = {BertPreTokenizer{}};
  definition.leading = {id_of("[CLS]")};
  definition.trailing = {id_of("[SEP]")};
  definition.spelling = Spelling::word_pieces;
  add_special(definition, {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"});
  return definition;
}

}  // namespace

TokenizerDefinition definition_from_json(const Json& top) {
  if (!top.is_object()) top.fail("an object");
  const Json model = top.required("model");
  const std::string type = type_of_model(model);
  if (type != "BPE" && type != "WordPiece")
    model.fail("a model BPE or WordPiece, the only ones known here", "\"" + type + "\"");
  TokenizerDefinition definition;
  read_vocabulary(model.required("vocab"), definition.vocabulary);
  if (const auto list = top.given("added_tokens")) {
    read_added(*list, definition);
    for (const AddedToken& token : definition.added) definition.vocabulary.put(token.text, token.id);
  }
  if (type == "BPE")
    definition.model = byte_pairs_of(model, definition.vocabulary);
  else
    definition.model = word_pieces_of(model, definition.vocabulary);
  if (const auto place = top.given("normalizer")) add_normalizer(*place, definition.normalizers);
  if (const auto place = top.given("pre_tokenizer")) add_pre_tokenizer(*place, definition.pre_tokenizers);
  if (const auto place = top.given("post_processor")) read_post_processor(*place, definition);
  definition.spelling = spelling_of(definition);
  definition.strips_first_space = prepends_space(definition);
  return definition;
}

TokenizerDefinition definition_from_gguf(const GgufMetadata& metadata) {
  const std::string kind = metadata.required_text("tokenizer.ggml.model");
  TokenizerDefinition definition;
  read_pieces(metadata, definition);
  if (kind == "gpt2")
    read_byte_pairs(metadata, definition);
  else if (kind == "llama")
    read_scored_pairs(metadata, definition);
  else if (kind == "bert")
    read_word_pieces(metadata, definition);
  else
    throw Error(metadata.place() + "tokenizer.ggml.model: expected gpt2, llama or bert, got \"" + kind +
                "\"");
  return definition;
}

bool has_tokenizer(const fs::path& folder) {
  return system::is_file(folder / "tokenizer.json") || system::is_file(folder / "vocab.txt") ||
         (system::is_file(folder / "vocab.json") && system::is_file(folder / "merges.txt"));
}

Tokenizer open_tokenizer(const fs::path& folder) {
  if (system::is_file(folder / "tokenizer.json"))
    return Tokenizer(definition_from_json(json_of(folder / "tokenizer.json")));
  if (system::is_file(folder / "vocab.json") && system::is_file(folder / "merges.txt"))
    return Tokenizer(definition_from_merges(folder));
  if (system::is_file(folder / "vocab.txt")) return Tokenizer(definition_from_vocab(folder));
  throw Error(folder.string() +
              ": expected a tokenizer: tokenizer.json, vocab.json with merges.txt, or vocab.txt");
}

}  // namespace core::tokenizers
