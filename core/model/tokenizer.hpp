#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/added_tokens.hpp"
#include "core/model/models.hpp"
#include "core/model/normalizers.hpp"
#include "core/model/pre_tokenizers.hpp"
#include "core/model/vocabulary.hpp"

namespace core::tokenizers {

/// What the pieces of a vocabulary say of the text that they stand for.
enum class Spelling { plain, bytes, metaspace, word_pieces };

/// Everything that makes a tokenizer.
struct Recipe {
  Vocabulary vocabulary;
  std::vector<AddedToken> added;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  WordModel model;
  std::vector<std::size_t> in_front, behind;  ///< tokens around every text
  Spelling spelling = Spelling::plain;
  bool strips_first_blank = false;  ///< of a text that is put together again, as one was put in front
};

/// A token of a text.
struct TextToken {
  std::size_t id = 0;
  std::string text;         ///< what of the source it stands for; all of them together are the source
  bool is_special = false;  ///< of the model, not of the text's language
  bool is_put_in = false;   ///< stands for nothing in the text
  friend bool operator==(const TextToken&, const TextToken&) = default;
};

/// Text to tokens and back, as the model was trained with. Copying copies the vocabulary.
class Tokenizer {
 public:
  explicit Tokenizer(Recipe recipe);

  /// The tokens of a text, with those that the model wants around it.
  ///
  /// A character that is cut into several tokens is in the text of the last of them. Throws core::Error when
  /// the text is not UTF-8.
  std::vector<TextToken> encode(std::string_view text) const;

  /// The text that tokens stand for, without those that are special; bytes that are no UTF-8 stay.
  std::string decode(std::span<const std::size_t> ids) const;

  /// As it is in the vocabulary; "" beyond it.
  const std::string& piece(std::size_t id) const { return recipe_.vocabulary.piece(id); }
  /// The bytes of text that a token stands for; of WordPiece the piece itself.
  std::string bytes(std::size_t id) const;
  bool is_special(std::size_t id) const;
  std::optional<std::size_t> find(std::string_view piece) const { return recipe_.vocabulary.find(piece); }
  /// One more than the largest number.
  std::size_t size() const { return recipe_.vocabulary.size(); }

 private:
  void encode_words(AlignedText text, std::vector<std::pair<std::size_t, std::size_t>>& tokens) const;

  Recipe recipe_;
  std::vector<AddedToken> raw_, normalised_;  // of the added ones
  std::vector<bool> is_added_, is_special_;   // [id]
};

}  // namespace core::tokenizers
