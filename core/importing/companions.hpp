#pragma once

#include "core/importing/stages_in.hpp"

namespace core::importing {

/// Tensors beside stages that say how they go on: a scale, masks, a bias, whether it is causal.
struct Companions {
  const formats::TensorInfo *scale = nullptr, *is_causal = nullptr;
  std::vector<const formats::TensorInfo*> masks;  ///< and biases, which are added as well
};

/// Those of a layer of that name, or of all layers.
Companions companions_in(const formats::TensorFile& file, const std::string& layer);

/// A layer along a first axis that counts layers; n is 0 when there is none.
struct LayerOf {
  std::size_t index = 0, n = 0;
};

/// Puts what companions say into a model of given stages, as far as these leave it open, and gives the names
/// of those that were used.
///
/// Throws core::Error as TensorFile::read() does.
std::vector<std::string> apply_companions(const formats::TensorFile& file, const Companions& companions,
                                          const LayerOf& layer, Imported& result,
                                          const core::Token& progress);

}  // namespace core::importing
