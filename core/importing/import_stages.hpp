#pragma once

#include "core/importing/import.hpp"

/// Stages of attention that a file gives: found by the names of its tensors, read for each head, and made
/// into a model with the masks and the scale next to them. Also what this and import.cpp share.
namespace core::importing {

/// Returns "attn_mask [6, 6]".
std::string tensor_words(const formats::TensorInfo& info);

/// Notes the tensors of a file that were not used: those with the prefix one by one, several others only by
/// their number.
void note_unused(ImportReport& import_report, const formats::TensorFile& file,
                 const std::vector<std::string>& used, const std::string& prefix);

/// Throws core::Error, "PLACEexpected …", when an unsupported feature may not be ignored.
void require_ignored(const ImportReport& import_report, const std::vector<std::string>& ignored,
                     const std::string& place);

/// Throws core::Error when a layer was chosen though the file has none.
void refuse_layer(const formats::TensorFile& file, const Choices& choices);

/// Returns "L2" and "ln_1" for "L2.ln_1", "" and "x" for "x".
std::pair<std::string, std::string> owner_and_last(const std::string& name);

/// Returns "scale 1/√8", "scale 0.125" or "no scale".
std::string scale_words(const attention::Model& model);

/// Returns the texts of a tensor "tokens" of that length in the file, or else "0", "1", …
std::vector<std::string> tokens_in(const formats::TensorFile& file, std::size_t n_tokens,
                                   const core::StopToken& progress);

/// Notes that the first line or column 0, 1, 2 … of a table was read as numbers, unless the user said what it
/// is.
void note_index(const formats::TensorFile& file, const formats::Tensor& tensor,
                const formats::IndexChoice& choice, ImportReport& import_report);

/// Returns whether a first axis of four counts the sequences of a batch and not layers: by the user's choice,
/// or because no layer was chosen and a mask next to the stages has as many sequences.
bool counts_sequences(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                      const std::string& layer, const Choices& choices);

/// Makes a model in which stages of one layer are given, without anything before them. Throws core::Error.
ImportResult import_stages(const formats::TensorFile& file, const std::vector<StageLayer>& found,
                           const Choices& choices, const core::StopToken& progress);

}  // namespace core::importing
