#include "core/model/tokenizer.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

namespace core::tokenizers {

void Vocabulary::put(std::string piece, std::size_t id) {
  if (id >= pieces_.size()) pieces_.resize(id + 1);
  pieces_[id] = piece;
  ids_.insert_or_assign(std::move(piece), id);
}

std::optional<std::size_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string& Vocabulary::piece(std::size_t id) const {
  static const std::string none;
  return id < pieces_.size() ? pieces_[id] : none;
}

namespace {

/// A token of a word: its ID, and its end in the word, in bytes.
struct TokenPiece {
  std::size_t id = 0, end = 0;
};

/// The piece that two neighbors become; the lowest order is merged first.
struct Merge {
  double order = 0;
  std::size_t id = 0;
};

constexpr std::size_t no_symbol = static_cast<std::size_t>(-1);

struct Symbol {
  TokenPiece piece;
  std::size_t begin, left, right;
  bool is_gone = false;
};

/// Two neighbors as they were when they were queued.
struct MergeCandidate {
  double order;
  std::size_t left, right, left_end, right_end, id;
  bool operator>(const MergeCandidate& other) const {
    return std::tie(order, left) > std::tie(other.order, other.left);
  }
};

/// Merges neighbors until none can be: the lowest order first, and of equal ones the leftmost.
///
/// merge_of(left, left_begin, right) returns the merge of two pieces, if there is one.
template <class MergeOf>
std::vector<TokenPiece> merge_pieces(std::vector<TokenPiece> pieces, MergeOf merge_of) {
  std::vector<Symbol> symbols;
  for (std::size_t k = 0; k < pieces.size(); ++k)
    symbols.push_back({pieces[k], k == 0 ? 0 : pieces[k - 1].end, k == 0 ? no_symbol : k - 1,
                       k + 1 == pieces.size() ? no_symbol : k + 1});
  std::priority_queue<MergeCandidate, std::vector<MergeCandidate>, std::greater<>> waiting;
  const auto look_at = [&](std::size_t left, std::size_t right) {
    if (left == no_symbol || right == no_symbol) return;
    const Symbol &a = symbols[left], &b = symbols[right];
    if (const auto merge = merge_of(a.piece, a.begin, b.piece))
      waiting.push({merge->order, left, right, a.piece.end, b.piece.end, merge->id});
  };
  for (std::size_t k = 0; k + 1 < symbols.size(); ++k) look_at(k, k + 1);
  while (!waiting.empty()) {
    const MergeCandidate best = waiting.top();
    waiting.pop();
    Symbol &a = symbols[best.left], &b = symbols[best.right];
    if (a.is_gone || b.is_gone || a.piece.end != best.left_end || b.piece.end != best.right_end) continue;
    a.piece = {best.id, b.piece.end};
    b.is_gone = true;
    a.right = b.right;
    if (b.right != no_symbol) symbols[b.right].left = best.left;
    look_at(a.left, best.left);
    look_at(best.left, a.right);
  }
  pieces.clear();
  for (const Symbol& symbol : symbols)
    if (!symbol.is_gone) pieces.push_back(symbol.piece);
  return pieces;
}

/// Returns the end of the character that begins at a byte.
std::size_t end_of_character(std::string_view text, std::size_t at) {
  do ++at;
  while (at < text.size() && !text::is_character_start(text[at]));
  return at;
}

/// Returns pieces for the bytes from … end − 1 of a word, or none if the vocabulary lacks one of them.
std::vector<TokenPiece> fallback(const Vocabulary& vocabulary, std::string_view word, std::size_t from,
                                 std::size_t end) {
  std::vector<TokenPiece> pieces;
  for (std::size_t k = from; k < end; ++k) {
    const auto id = vocabulary.find(fallback_piece(static_cast<std::uint8_t>(word[k])));
    if (!id) return {};
    pieces.push_back({*id, k + 1});
  }
  return pieces;
}

std::uint64_t pair_key(std::size_t left, std::size_t right) {
  return static_cast<std::uint64_t>(left) << 32 | right;
}

/// Returns characters as pieces, with unknown ones as the model specifies.
std::vector<TokenPiece> characters(const BytePairEncoding& model, const Vocabulary& vocabulary,
                                   std::string_view word) {
  std::vector<TokenPiece> pieces;
  bool was_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = end_of_character(word, at);
    const auto known = vocabulary.find(word.substr(at, end - at));
    std::vector<TokenPiece> bytes;
    if (!known && model.byte_fallback) bytes = fallback(vocabulary, word, at, end);
    const bool is_unknown = !known && bytes.empty();
    if (known)
      pieces.push_back({*known, end});
    else if (!bytes.empty())
      pieces.insert(pieces.end(), bytes.begin(), bytes.end());
    else if (model.unknown && model.fuses_unknown && was_unknown)
      pieces.back().end = end;
    else if (model.unknown)
      pieces.push_back({*model.unknown, end});
    was_unknown = is_unknown;
    at = end;
  }
  return pieces;
}

std::vector<TokenPiece> pieces_of(const BytePairEncoding& model, const Vocabulary& vocabulary,
                                  std::string_view word) {
  if (model.ignores_merges)
    if (const auto whole = vocabulary.find(word)) return {{*whole, word.size()}};
  return merge_pieces(
      characters(model, vocabulary, word),
      [&](const TokenPiece& left, std::size_t, const TokenPiece& right) -> std::optional<Merge> {
        const auto found = model.merges.find(pair_key(left.id, right.id));
        if (found == model.merges.end()) return std::nullopt;
        return Merge{static_cast<double>(found->second.rank), found->second.id};
      });
}

std::vector<TokenPiece> pieces_of(const SentencePieceBpe& model, const Vocabulary& vocabulary,
                                  std::string_view word) {
  constexpr auto not_known = static_cast<std::size_t>(-1);
  std::vector<TokenPiece> letters;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = end_of_character(word, at);
    letters.push_back({vocabulary.find(word.substr(at, end - at)).value_or(not_known), end});
    at = end;
  }
  const auto pieces = merge_pieces(
      std::move(letters),
      [&](const TokenPiece&, std::size_t begin, const TokenPiece& right) -> std::optional<Merge> {
        const auto id = vocabulary.find(word.substr(begin, right.end - begin));
        if (!id || *id >= model.scores.size()) return std::nullopt;
        return Merge{-static_cast<double>(model.scores[*id]), *id};
      });
  std::vector<TokenPiece> result;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    if (pieces[k].id != not_known) {
      result.push_back(pieces[k]);
      continue;
    }
    const auto bytes = fallback(vocabulary, word, k == 0 ? 0 : pieces[k - 1].end, pieces[k].end);
    result.insert(result.end(), bytes.begin(), bytes.end());
    if (bytes.empty() && model.unknown) result.push_back({*model.unknown, pieces[k].end});
  }
  return result;
}

std::vector<TokenPiece> pieces_of(const WordPiece& model, const Vocabulary& vocabulary,
                                  std::string_view word) {
  const std::vector<TokenPiece> unknown{{model.unknown, word.size()}};
  if (text::character_count(word) > model.max_word_length) return unknown;
  std::vector<TokenPiece> pieces;
  for (std::size_t at = 0; at < word.size();) {
    const std::string front = at == 0 ? "" : model.continuation;
    std::size_t end = word.size();
    std::optional<std::size_t> id;
    while (end > at && !(id = vocabulary.find(front + std::string(word.substr(at, end - at))))) {
      do --end;
      while (end > at && !text::is_character_start(word[end]));
    }
    if (!id) return unknown;
    pieces.push_back({*id, end});
    at = end;
  }
  return pieces;
}

constexpr const char* metaspace_character = "\xE2\x96\x81";

std::string replace_all(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Removes spaces before punctuation, and within contractions, as English has none there.
std::string clean_up_spaces(std::string text) {
  for (const char* sign : {".", "?", "!", ",", "'m", "'s", "'ve", "'re"})
    text = replace_all(std::move(text), " " + std::string(sign), sign);
  return replace_all(replace_all(std::move(text), " n't", "n't"), " do not", " don't");
}

}  // namespace

void add_merge(BytePairEncoding& model, const Vocabulary& vocabulary, std::string_view left,
               std::string_view right, std::size_t rank, const std::string& place) {
  if (left.empty() || right.empty())
    throw Error(place + "expected a merge of two pieces, got an empty one, which would merge without end");
  const auto id_of = [&](std::string_view piece) {
    if (const auto id = vocabulary.find(piece)) return *id;
    throw Error(place + "expected a piece of the vocabulary, got \"" + std::string(piece) + "\"");
  };
  const std::size_t from = id_of(left), to = id_of(right);
  const std::size_t made = id_of(std::string(left) + std::string(right));
  model.merges.insert_or_assign(pair_key(from, to), BytePairEncoding::Rank{static_cast<std::uint32_t>(rank),
                                                                           static_cast<std::uint32_t>(made)});
}

std::vector<std::size_t> ids_of(std::span<const TextToken> tokens) {
  std::vector<std::size_t> ids;
  for (const TextToken& token : tokens) ids.push_back(token.id);
  return ids;
}

Tokenizer::Tokenizer(TokenizerDefinition definition) : definition_(std::move(definition)) {
  for (const AddedToken& token : definition_.added) {
    definition_.vocabulary.put(token.text, token.id);
    if (!token.is_normalized) {
      raw_.push_back(token);
      continue;
    }
    normalized_.push_back(token);
    normalized_.back().text = normalize(definition_.normalizers, align_text(token.text, 0)).text;
  }
  is_added_.resize(size());
  is_special_.resize(size());
  for (const AddedToken& token : definition_.added) {
    is_added_[token.id] = true;
    is_special_[token.id] = token.is_special;
  }
  for (const auto& ids : {definition_.leading, definition_.trailing})
    for (const std::size_t id : ids)
      if (id < size()) is_special_[id] = true;
}

void Tokenizer::encode_words(AlignedText text,
                             std::vector<std::pair<std::size_t, std::size_t>>& tokens) const {
  for (const AlignedText& word : pre_tokenize(definition_.pre_tokenizers, std::move(text))) {
    const auto pieces =
        std::visit([&](const auto& model) { return pieces_of(model, definition_.vocabulary, word.text); },
                   definition_.model);
    for (const TokenPiece& piece : pieces) tokens.emplace_back(piece.id, word.ends[piece.end - 1]);
  }
}

std::vector<TextToken> Tokenizer::encode(std::string_view text) const {
  if (!text::is_utf8(text)) throw Error("expected text in UTF-8, got other bytes");
  std::vector<std::pair<std::size_t, std::size_t>> tokens;  // IDs, and their ends in the text
  const auto encode_normalized = [&](AlignedText part) {
    std::size_t at = 0;
    for (const FoundToken& found : find_added(normalized_, part.text)) {
      if (found.span.begin > at) encode_words(part.part(at, found.span.begin - at), tokens);
      tokens.emplace_back(found.id, part.ends[found.span.end - 1]);
      at = found.span.end;
    }
    if (at < part.text.size()) encode_words(part.part(at, part.text.size() - at), tokens);
  };
  std::size_t at = 0;
  const auto encode_raw = [&](std::size_t end) {
    if (end > at)
      encode_normalized(normalize(definition_.normalizers, align_text(text.substr(at, end - at), at)));
  };
  for (const FoundToken& found : find_added(raw_, text)) {
    encode_raw(found.span.begin);
    tokens.emplace_back(found.id, found.span.end);
    at = found.span.end;
  }
  encode_raw(text.size());

  std::vector<TextToken> result;
  const auto put_in = [&](const std::vector<std::size_t>& ids) {
    for (const std::size_t id : ids) result.push_back({id, "", true, true});
  };
  put_in(definition_.leading);
  std::size_t begin = 0;
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    std::size_t end = k + 1 == tokens.size() ? text.size() : std::max(tokens[k].second, begin);
    while (end > begin && end < text.size() && !text::is_character_start(text[end])) --end;
    result.push_back(
        {tokens[k].first, std::string(text.substr(begin, end - begin)), is_special(tokens[k].first), false});
    begin = end;
  }
  put_in(definition_.trailing);
  if (tokens.empty() && !result.empty()) result.back().text = text;  // spaces that belong to no token
  return result;
}

bool Tokenizer::is_special(std::size_t id) const {
  return id < is_special_.size() && is_special_[id];
}

std::string Tokenizer::bytes(std::size_t id) const {
  const std::string& word = piece(id);
  if (id < is_added_.size() && is_added_[id]) return word;
  switch (definition_.spelling) {
    case Spelling::bytes:
      return bytes_of_piece(word);
    case Spelling::metaspace:
      if (const auto byte = byte_of_fallback(word)) return std::string(1, static_cast<char>(*byte));
      return replace_all(word, metaspace_character, " ");
    case Spelling::plain:
    case Spelling::word_pieces:
      break;
  }
  return word;
}

std::vector<std::string> Tokenizer::characters_without_token(std::string_view text) const {
  const auto* model = std::get_if<BytePairEncoding>(&definition_.model);
  if (!model || model->unknown || model->byte_fallback || definition_.spelling != Spelling::plain ||
      !text::is_utf8(text))
    return {};
  std::vector<std::string> missing;
  for (const text::CodePoint& point : text::code_points(text)) {
    std::string character(text.substr(point.at, point.size));
    if (!definition_.vocabulary.find(character) && std::ranges::find(missing, character) == missing.end())
      missing.push_back(std::move(character));
  }
  return missing;
}

std::string Tokenizer::decode(std::span<const std::size_t> ids) const {
  std::string text;
  const auto* pieces = std::get_if<WordPiece>(&definition_.model);
  for (const std::size_t id : ids) {
    if (is_special(id)) continue;
    std::string part = bytes(id);
    if (pieces) {
      const bool continuation = part.starts_with(pieces->continuation) && !pieces->continuation.empty();
      if (continuation)
        part.erase(0, pieces->continuation.size());
      else if (!text.empty())
        part.insert(0, " ");
    }
    text += part;
  }
  if (definition_.strips_first_space && text.starts_with(' ')) text.erase(0, 1);
  return pieces ? clean_up_spaces(std::move(text)) : text;
}

}  // namespace core::tokenizers
