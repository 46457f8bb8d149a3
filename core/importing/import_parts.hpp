#pragma once

#include <vector>

#include "core/importing/import.hpp"

namespace core::importing {

/// A model of a layer of a checkpoint, or of projections that are named by hand. Throws core::Error.
Imported import_checkpoint(const formats::TensorFile& file,
                           const std::vector<formats::checkpoints::Layer>& layers, const Choices& choices,
                           const core::Token& progress);

/// A model of embeddings alone, whose queries, keys and values they are. Throws core::Error.
Imported import_embeddings(const formats::TensorFile& file, const Choices& choices,
                           const core::Token& progress);

}  // namespace core::importing
