#pragma once

#include "core/files/gguf.hpp"
#include "core/model/tokenizer.hpp"

namespace core::tokenizers {

/// The tokenizer in the metadata of a GGUF file: of kind gpt2 (byte pairs), llama (pairs by score) or bert.
///
/// Throws core::Error, "FILE: KEY: …", when it is damaged, of another kind, or cuts words in a way that is
/// not known here.
Recipe recipe_of_gguf(const formats::GgufMetadata& metadata);

}  // namespace core::tokenizers
