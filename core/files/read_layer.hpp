#pragma once

#include <armadillo>
#include <optional>
#include <string>
#include <vector>

#include "core/files/layer_rules.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"

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

/// How a weight for all of queries, keys and values is shared by them.
struct Share {
  std::size_t d_head, n_groups;
};

/// The columns of queries (0), keys (1) or values (2) among those of a fused weight, which has d_head columns
/// for each of n_heads and twice for each of n_groups; n_groups divides n_heads.
arma::uvec fused_columns(std::size_t part, const Share& share, std::size_t n_heads, Fused fused);

/// Reads the projections that a mapping names, turned and cut so that each is used as x·W.
///
/// Keys and values may have fewer heads than queries (grouped queries); an output projection of other inputs
/// is left out, which is noted. Throws core::Error, "FILE: TENSOR: …", when shapes do not fit one another or
/// the number of heads.
Attention read_attention(const TensorFile& file, const Mapping& mapping, const HeadCount& heads,
                         const Token& progress);

/// The heads of a layer: as said, or by its names, or by the configuration. Throws core::Error, which says
/// how to say it, when nothing tells, and when the names tell another number than was said.
HeadCount heads_of(const TensorFile& file, const Layer& layer, const LayerRules& rules,
                   std::optional<std::size_t> said);

/// Reads what a layer of heads of that number and width adds to the paper's attention. Throws core::Error,
/// "FILE: …", when it does not fit them.
attention::Additions read_additions(const TensorFile& file, const LayerRules& rules, std::size_t n_heads,
                                    std::size_t d_head, const Token& progress);

}  // namespace core::formats::checkpoints
