#pragma once

#include <filesystem>

#include "core/model/tokenizer.hpp"

namespace core::formats {
class Json;
class GgufMetadata;
}  // namespace core::formats

/// Tokenizers in files: tokenizer.json and the older files of Hugging Face, and GGUF's metadata.
namespace core::tokenizers {

/// Opens the tokenizer in a folder: tokenizer.json, or else vocab.json with merges.txt, or BERT's vocab.txt,
/// for which tokenizer_config.json says whether to lower-case.
///
/// Throws core::Error when there is none of them or one is damaged.
Tokenizer open_tokenizer(const std::filesystem::path& folder);
/// Returns whether a folder has a file that open_tokenizer() would read.
bool has_tokenizer(const std::filesystem::path& folder);

/// Reads a tokenizer.json of the library tokenizers.
///
/// Throws core::Error, "FILE: PLACE: …", when it is damaged, or has a model other than BPE and WordPiece or
/// an unsupported step.
TokenizerDefinition definition_from_json(const formats::Json& top);

/// Reads the tokenizer in the metadata of a GGUF file: gpt2 (byte pairs), llama (scored pairs) or bert.
///
/// Throws core::Error, "FILE: KEY: …", when it is damaged, of another kind, or splits words in an unsupported
/// way.
TokenizerDefinition definition_from_gguf(const formats::GgufMetadata& metadata);

}  // namespace core::tokenizers
