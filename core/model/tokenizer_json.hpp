#pragma once

#include <string>
#include <string_view>

#include "core/files/json.hpp"
#include "core/model/tokenizer.hpp"

namespace core::tokenizers {

/// What a tokenizer.json of the library tokenizers describes.
///
/// Throws core::Error, "FILE: PLACE: …", when it is damaged, or asks for what is not known here: a model but
/// BPE and WordPiece, or a step that is not among those of normalizer_of() and pre_tokenizers_of().
Recipe recipe_of_json(const formats::Json& top);

/// The steps of a "normalizer" and a "pre_tokenizer", which may be null. Throws core::Error.
std::vector<Normalizer> normalizers_of(const formats::Json& place);
std::vector<PreTokenizer> pre_tokenizers_of(const formats::Json& place);

/// Reads a "vocab" of pieces and numbers. Throws core::Error when a number is beyond reason.
void read_vocabulary(const formats::Json& pieces, Vocabulary& vocabulary);

}  // namespace core::tokenizers
