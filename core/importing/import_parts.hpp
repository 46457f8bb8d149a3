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

/// "scale 1/√8", "scale 0.125", "no scale".
std::string scale_words(const attention::Model& model);

/// The texts of a tensor "tokens" of that length in the file, or else "0", "1", …
std::vector<std::string> tokens_in(const formats::TensorFile& file, std::size_t n_tokens,
                                   const core::Token& progress);

/// Says of a table whose first line counts, when nobody has said what that is, that it was taken for numbers.
void note_counting_line(const formats::TensorFile& file, const formats::Tensor& tensor,
                        const std::optional<bool>& said, Account& account);

/// Whether a first axis of four counts the sequences of a batch and not layers: because that was said, or
/// because no layer was asked for and a mask beside the stages has as many sequences.
bool counts_sequences(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                      const std::string& layer, const Choices& choices);

/// A model in which stages of one layer are given and nothing before them is known. Throws core::Error.
Imported import_stages(const formats::TensorFile& file, const std::vector<StageLayer>& found,
                       const Choices& choices, const core::Token& progress);

/// Tensors beside stages that say how they go on: a scale, masks, a bias, whether it is causal.
struct MaskAndScale {
  const formats::TensorInfo *scale = nullptr, *is_causal = nullptr;
  std::vector<const formats::TensorInfo*> masks;  ///< and biases, which are added as well
};

/// Those of a layer of that name, or of all layers.
MaskAndScale mask_and_scale_in(const formats::TensorFile& file, const std::string& layer);

/// A layer along a first axis that counts layers; n is 0 when there is none.
struct LayerOf {
  std::size_t index = 0, n = 0;
};

/// Puts what companions say into a model of given stages, as far as these leave it open, and gives the names
/// of those that were used.
///
/// Throws core::Error as TensorFile::read() does.
std::vector<std::string> apply_mask_and_scale(const formats::TensorFile& file, const MaskAndScale& beside,
                                              const LayerOf& layer, Imported& result,
                                              const core::Token& progress);

}  // namespace core::importing
