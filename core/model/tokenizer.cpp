#include "core/model/tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/model/byte_level.hpp"

namespace core::tokenizers {
namespace {

constexpr const char* written_blank = "\xE2\x96\x81";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Blanks before signs, and within contractions, as English has them.
std::string tidied(std::string text) {
  for (const char* sign : {".", "?", "!", ",", "'m", "'s", "'ve", "'re"})
    text = replaced(std::move(text), " " + std::string(sign), sign);
  return replaced(replaced(std::move(text), " n't", "n't"), " do not", " don't");
}

}  // namespace

Tokenizer::Tokenizer(Recipe recipe) : recipe_(std::move(recipe)) {
  for (const AddedToken& token : recipe_.added) {
    recipe_.vocabulary.put(token.text, token.id);
    if (!token.is_normalised) {
      raw_.push_back(token);
      continue;
    }
    normalised_.push_back(token);
    normalised_.back().text = normalised(recipe_.normalizers, aligned(token.text, 0)).text;
  }
  is_added_.resize(size());
  is_special_.resize(size());
  for (const AddedToken& token : recipe_.added) {
    is_added_[token.id] = true;
    is_special_[token.id] = token.is_special;
  }
  for (const auto& ids : {recipe_.in_front, recipe_.behind})
    for (const std::size_t id : ids)
      if (id < size()) is_special_[id] = true;
}

void Tokenizer::encode_words(AlignedText text,
                             std::vector<std::pair<std::size_t, std::size_t>>& tokens) const {
  for (const AlignedText& word : words_of(recipe_.pre_tokenizers, std::move(text))) {
    const auto pieces = std::visit(
        [&](const auto& model) { return pieces_of(model, recipe_.vocabulary, word.text); }, recipe_.model);
    for (const Piece& piece : pieces) tokens.emplace_back(piece.id, word.ends[piece.end - 1]);
  }
}

std::vector<TextToken> Tokenizer::encode(std::string_view text) const {
  if (!text::is_utf8(text)) throw Error("expected text in UTF-8, got other bytes");
  std::vector<std::pair<std::size_t, std::size_t>> tokens;  // numbers, and where in the text they end
  const auto encode_normalised = [&](AlignedText part) {
    std::size_t at = 0;
    for (const FoundToken& found : find_added(normalised_, part.text)) {
      if (found.span.begin > at) encode_words(part.part(at, found.span.begin - at), tokens);
      tokens.emplace_back(found.id, part.ends[found.span.end - 1]);
      at = found.span.end;
    }
    if (at < part.text.size()) encode_words(part.part(at, part.text.size() - at), tokens);
  };
  std::size_t at = 0;
  const auto encode_raw = [&](std::size_t end) {
    if (end > at) encode_normalised(normalised(recipe_.normalizers, aligned(text.substr(at, end - at), at)));
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
  put_in(recipe_.in_front);
  std::size_t begin = 0;
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    std::size_t end = k + 1 == tokens.size() ? text.size() : std::max(tokens[k].second, begin);
    while (end > begin && end < text.size() && !text::starts_character(text[end])) --end;
    result.push_back(
        {tokens[k].first, std::string(text.substr(begin, end - begin)), is_special(tokens[k].first), false});
    begin = end;
  }
  put_in(recipe_.behind);
  if (tokens.empty() && !result.empty()) result.back().text = text;  // blanks that no token stands for
  return result;
}

bool Tokenizer::is_special(std::size_t id) const {
  return id < is_special_.size() && is_special_[id];
}

std::string Tokenizer::bytes(std::size_t id) const {
  const std::string& word = piece(id);
  if (id < is_added_.size() && is_added_[id]) return word;
  switch (recipe_.spelling) {
    case Spelling::bytes:
      return bytes_of_piece(word);
    case Spelling::metaspace:
      if (const auto byte = byte_of_fallback(word)) return std::string(1, static_cast<char>(*byte));
      return replaced(word, written_blank, " ");
    case Spelling::plain:
    case Spelling::word_pieces:
      break;
  }
  return word;
}

std::string Tokenizer::decode(std::span<const std::size_t> ids) const {
  std::string text;
  const auto* pieces = std::get_if<WordPieces>(&recipe_.model);
  for (const std::size_t id : ids) {
    if (is_special(id)) continue;
    std::string part = bytes(id);
    if (pieces) {
      const bool continues = part.starts_with(pieces->continues) && !pieces->continues.empty();
      if (continues)
        part.erase(0, pieces->continues.size());
      else if (!text.empty())
        part.insert(0, " ");
    }
    text += part;
  }
  if (recipe_.strips_first_blank && text.starts_with(' ')) text.erase(0, 1);
  return pieces ? tidied(std::move(text)) : text;
}

}  // namespace core::tokenizers
