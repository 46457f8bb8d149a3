#pragma once

#include <filesystem>
#include <optional>

#include "core/model/tokenizer.hpp"

namespace core::tokenizers {

/// The tokenizer in a folder: tokenizer.json, or else vocab.json with merges.txt, or vocab.txt.
///
/// Of vocab.txt it is BERT's, which a tokenizer_config.json beside it says how to lower-case. Throws
/// core::Error when there is none of them or one is damaged.
Tokenizer open_tokenizer(const std::filesystem::path& folder);

/// Whether a folder has a file that open_tokenizer() would read.
bool has_tokenizer(const std::filesystem::path& folder);

}  // namespace core::tokenizers
