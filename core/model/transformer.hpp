#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "core/model/architecture.hpp"
#include "core/model/tokenizer.hpp"
#include "core/model/weights.hpp"

namespace core::transformer {

/// A whole model: copies share its weights and its tokenizer.
struct Transformer {
  std::filesystem::path path;
  Architecture architecture;
  std::shared_ptr<const Weights> weights;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer;
};

/// Opens a GGUF file, or a folder as Hugging Face writes it: config.json, tensors in one file or several, a
/// tokenizer.
///
/// Reads headers alone. Of the weights so many bytes at most are kept, as float32, once they were read.
/// Throws core::Error, one line, when a file is missing or damaged, the model is of no family that is known,
/// or the tokenizer has tokens that the model has not.
Transformer open_transformer(const std::filesystem::path& path, std::uint64_t keep_at_most);

/// Whether a path looks like a whole model, and not like tensors alone: a GGUF file, or a folder with a
/// configuration and a tokenizer.
bool is_transformer(const std::filesystem::path& path);

}  // namespace core::transformer
