#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/draw_op.hpp"
#include "core/editing/drawn.hpp"
#include "core/graph/model.hpp"

namespace core::editing {

/// Whether embeddings are drawn along with the layers, and on which side of them.
enum class EmbeddingsDraw { none, rand_first, randn_first, rand_last, randn_last };

bool comes_first(EmbeddingsDraw draw);
bool comes_last(EmbeddingsDraw draw);

/// The op that draws the embeddings of all sequences, or of one that is repeated for each of them.
random::DrawOp embeddings_op(const attention::Model& model, EmbeddingsDraw draw, bool repeated = false);

/// The output projection, which is drawn after the three other layers.
enum class OutputLayer { none, without_bias, with_bias };

/// How a model's learned matrices are drawn after one seed, in the order in which a notebook makes them.
struct ModelDraw {
  std::uint64_t seed = 123;
  std::vector<random::DrawOp> before;  ///< what the notebook drew before all of it
  EmbeddingsDraw embeddings = EmbeddingsDraw::none;
  LayerOrder order = LayerOrder::query_key_value;
  bool bias = false;  ///< of queries, keys and values
  OutputLayer output = OutputLayer::none;
};

/// A draw with the layers and biases that the model has; a single bias among queries, keys and values counts
/// for all.
ModelDraw draw_like(const attention::Model& model);

/// The model with projections, and perhaps embeddings, as PyTorch draws them in the model's shapes; tokens
/// and all else are kept.
///
/// A batch of embeddings is drawn as one tensor.
attention::Model drawn_model(const attention::Model& model, const ModelDraw& draw);

/// The same draw as lines of Python, imports and all, for a model of those shapes.
std::string torch_lines(const attention::Model& model, const ModelDraw& draw);

}  // namespace core::editing
