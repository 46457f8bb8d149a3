#include "core/model/models.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/model/byte_level.hpp"
#include "core/model/merging.hpp"

namespace core::tokenizers {
namespace {

/// The end of the character that begins at a byte.
std::size_t end_of_character(std::string_view text, std::size_t at) {
  do ++at;
  while (at < text.size() && !text::starts_character(text[at]));
  return at;
}

/// Pieces for the bytes from … end − 1 of a word, or none when the vocabulary lacks one of them.
std::vector<Piece> fallback(const Vocabulary& vocabulary, std::string_view word, std::size_t from,
                            std::size_t end) {
  std::vector<Piece> pieces;
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

/// Characters as pieces; what is unknown becomes what the model says.
std::vector<Piece> characters(const BytePairs& model, const Vocabulary& vocabulary, std::string_view word) {
  std::vector<Piece> pieces;
  bool was_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = end_of_character(word, at);
    const auto known = vocabulary.find(word.substr(at, end - at));
    std::vector<Piece> bytes;
    if (!known && model.falls_back_to_bytes) bytes = fallback(vocabulary, word, at, end);
    const bool is_unknown = !known && bytes.empty();
    if (known)
      pieces.push_back({*known, end});
    else if (!bytes.empty())
      pieces.insert(pieces.end(), bytes.begin(), bytes.end());
    else if (model.unknown && model.joins_unknown && was_unknown)
      pieces.back().end = end;
    else if (model.unknown)
      pieces.push_back({*model.unknown, end});
    was_unknown = is_unknown;
    at = end;
  }
  return pieces;
}

}  // namespace

std::vector<Piece> pieces_of(const BytePairs& model, const Vocabulary& vocabulary, std::string_view word) {
  if (model.takes_whole_words)
    if (const auto whole = vocabulary.find(word)) return {{*whole, word.size()}};
  return merged(characters(model, vocabulary, word),
                [&](const Piece& left, std::size_t, const Piece& right) -> std::optional<Merge> {
                  const auto found = model.merges.find(pair_key(left.id, right.id));
                  if (found == model.merges.end()) return std::nullopt;
                  return Merge{static_cast<double>(found->second.rank), found->second.id};
                });
}

std::vector<Piece> pieces_of(const ScoredPairs& model, const Vocabulary& vocabulary, std::string_view word) {
  constexpr auto not_known = static_cast<std::size_t>(-1);
  std::vector<Piece> letters;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = end_of_character(word, at);
    letters.push_back({vocabulary.find(word.substr(at, end - at)).value_or(not_known), end});
    at = end;
  }
  const auto pieces = merged(
      std::move(letters), [&](const Piece&, std::size_t begin, const Piece& right) -> std::optional<Merge> {
        const auto id = vocabulary.find(word.substr(begin, right.end - begin));
        if (!id || *id >= model.scores.size()) return std::nullopt;
        return Merge{-static_cast<double>(model.scores[*id]), *id};
      });
  std::vector<Piece> result;
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

std::vector<Piece> pieces_of(const WordPieces& model, const Vocabulary& vocabulary, std::string_view word) {
  const std::vector<Piece> unknown{{model.unknown, word.size()}};
  if (text::character_count(word) > model.longest_word) return unknown;
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < word.size();) {
    const std::string front = at == 0 ? "" : model.continues;
    std::size_t end = word.size();
    std::optional<std::size_t> id;
    while (end > at && !(id = vocabulary.find(front + std::string(word.substr(at, end - at))))) {
      do --end;
      while (end > at && !text::starts_character(word[end]));
    }
    if (!id) return unknown;
    pieces.push_back({*id, end});
    at = end;
  }
  return pieces;
}

void add_merge(BytePairs& model, const Vocabulary& vocabulary, std::string_view left, std::string_view right,
               std::size_t rank, const std::string& place) {
  if (left.empty() || right.empty())
    throw Error(place + "expected a merge of two pieces, got an empty one, which would merge without end");
  const auto id_of = [&](std::string_view piece) {
    if (const auto id = vocabulary.find(piece)) return *id;
    throw Error(place + "expected a piece of the vocabulary, got \"" + std::string(piece) + "\"");
  };
  const std::size_t from = id_of(left), to = id_of(right);
  const std::size_t made = id_of(std::string(left) + std::string(right));
  model.merges.insert_or_assign(pair_key(from, to), BytePairs::Rank{static_cast<std::uint32_t>(rank),
                                                                    static_cast<std::uint32_t>(made)});
}

}  // namespace core::tokenizers
