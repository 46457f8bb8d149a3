#pragma once

#include <string>
#include <vector>

#include "core/importing/import.hpp"

namespace core::importing {

/// The texts of a tensor "tokens" of that length in the file, or else "0", "1", …
std::vector<std::string> tokens_in(const formats::TensorFile& file, std::size_t n_tokens,
                                   const core::Token& progress);

/// The tensor of a file whose name says that it is embeddings, or else the only one of two or three axes; or
/// nullptr.
const formats::TensorInfo* usual_embeddings(const formats::TensorFile& file);

/// The sequences in a tensor of a file: [tokens, d_model], or a batch of such. Without a name it is that of
/// usual_embeddings().
///
/// Tokens are the names of its rows, or the texts of a tensor "tokens" of that length, or numbers. Throws
/// core::Error.
std::vector<attention::Sequence> embeddings_in(const formats::TensorFile& file, const std::string& name,
                                               const core::Token& progress);

/// The sequences that a checkpoint's attention of d_in columns is to work on: those that were chosen, or else
/// drawn; which they are, and what is assumed of them, is added to what is said of the result.
std::vector<attention::Sequence> embeddings_for(const formats::TensorFile& checkpoint, const Choices& choices,
                                                std::size_t d_in, bool norm_before, Imported& result,
                                                const core::Token& progress);

}  // namespace core::importing
