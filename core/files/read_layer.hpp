#pragma once

#include <armadillo>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/files/layers.hpp"

/// Numbers of a checkpoint's layers.
namespace core::formats::checkpoints {

/// Attention of one layer, as read from a checkpoint.
struct Attention {
  attention::Projections projections;
  std::size_t n_heads = 1;
  std::optional<std::size_t> n_kv_heads;  ///< if heads share keys and values
  std::vector<std::string> notes;         ///< caveats about the numbers for the user, a sentence each
};

/// Number of heads; missing values follow from the shapes of the weights.
struct HeadCount {
  std::size_t n = 1;
  std::optional<std::size_t> kv_heads = {}, width = {};  ///< KV heads; d_head
};

/// Split of a fused weight into queries, keys and values.
struct FusedSplit {
  std::size_t d_head, kv_heads;
};

/// Returns the columns of queries (0), keys (1) or values (2) in a fused weight of (n_heads + 2 · kv_heads) ·
/// d_head columns; kv_heads divides n_heads.
arma::uvec fused_columns(std::size_t part, const FusedSplit& split, std::size_t n_heads, FusedLayout fused);

/// Reads the projections of a mapping, transposed and split so that each is used as x·W.
///
/// Keys and values may have fewer heads than queries (GQA); an output projection with other inputs is
/// ignored, with a note. Throws core::Error, "FILE: TENSOR: …", when shapes do not fit one another or the
/// number of heads.
Attention read_attention(const TensorFile& file, const ProjectionMapping& mapping, const HeadCount& heads,
                         const StopToken& progress);

/// Returns the heads of a layer, as given by the user, its tensors or the configuration. Throws core::Error,
/// with advice, if none of them gives their number, or if the tensors contradict the user.
HeadCount resolve_head_count(const TensorFile& file, const Layer& layer, const LayerRules& rules,
                             std::optional<std::size_t> specified);

/// Returns ALiBi's slopes for heads of this number and width.
positions::Alibi make_alibi(const LayerAlibi& alibi, std::size_t n_heads, std::size_t d_head);

/// Reads the features that a layer adds to the original attention. Throws core::Error, "FILE: …", when they
/// do not fit the number or width of the heads.
attention::Additions read_additions(const TensorFile& file, const LayerRules& rules, std::size_t n_heads,
                                    std::size_t kv_heads, std::size_t d_head, const StopToken& progress);

}  // namespace core::formats::checkpoints
