#pragma once

#include "core/importing/import.hpp"

/// What the sources of this room share.
namespace core::importing {

/// "attn_mask [6, 6]".
std::string tensor_words(const formats::TensorInfo& info);

/// Notes which tensors of a file were not used: those whose names begin as said, one by one as far as they
/// are few, the others by their number.
void note_unused(Account& account, const formats::TensorFile& file, const std::vector<std::string>& used,
                 const std::string& prefix);

/// Throws core::Error, "PLACEexpected …", when something that is not supported may not be ignored.
void require_ignored(const Account& account, const std::vector<std::string>& ignored,
                     const std::string& place);

/// Throws core::Error when a layer was chosen though the file has none.
void refuse_layer(const formats::TensorFile& file, const Choices& choices);

/// "L2" and "ln_1" of "L2.ln_1", "" and "x" of "x".
std::pair<std::string, std::string> owner_and_last(const std::string& name);

/// "scale 1/√8", "scale 0.125", "no scale".
std::string scale_words(const attention::Model& model);

/// The texts of a tensor "tokens" of that length in the file, or else "0", "1", …
std::vector<std::string> tokens_in(const formats::TensorFile& file, std::size_t n_tokens,
                                   const core::Token& progress);

/// Notes that the first line 0, 1, 2 … of a table was read as numbers, unless the user said what it is.
void note_index_header(const formats::TensorFile& file, const formats::Tensor& tensor,
                       const std::optional<bool>& said, Account& account);

/// Whether a first axis of four counts the sequences of a batch and not layers: because that was said, or
/// because no layer was asked for and a mask beside the stages has as many sequences.
bool counts_sequences(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                      const std::string& layer, const Choices& choices);

/// A model in which stages of one layer are given and nothing before them is known. Throws core::Error.
Imported import_stages(const formats::TensorFile& file, const std::vector<StageLayer>& found,
                       const Choices& choices, const core::Token& progress);

}  // namespace core::importing
