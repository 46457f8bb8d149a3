#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/attention/model.hpp"
#include "core/formats/checkpoints/behaviour.hpp"
#include "core/formats/tensors/tensor_file.hpp"

namespace core::formats::checkpoints {

/// The attention of one layer as far as a checkpoint tells it.
struct Attention {
  attention::Projections projections;
  std::size_t n_heads = 1;
  std::optional<std::size_t> n_kv_heads;  ///< where heads share keys and values
  std::vector<std::string> notes;         ///< what a person must know to trust the numbers, a sentence each
};

/// How many heads there are; what is not said is told by the shapes of the weights.
struct HeadCount {
  std::size_t n = 1;
  std::optional<std::size_t> n_groups = {}, width = {};  ///< heads of keys and values, columns of a head
};

/// Reads the projections that a mapping names, turned and cut so that each is used as x·W.
///
/// Keys and values may have fewer heads than queries (grouped queries); an output projection of other inputs
/// is left out, which is noted. Throws core::Error, "FILE: TENSOR: …", when shapes do not fit one another or
/// the number of heads.
Attention read_attention(const TensorFile& file, const Mapping& mapping, const HeadCount& heads,
                         const Token& progress);

/// The heads of a layer: as said, or by its names, or by the configuration. Throws core::Error, which says
/// how to say it, when nothing tells, and when the names tell another number than was said.
HeadCount heads_of(const TensorFile& file, const Layer& layer, const Behaviour& behaviour,
                   std::optional<std::size_t> said);

}  // namespace core::formats::checkpoints
