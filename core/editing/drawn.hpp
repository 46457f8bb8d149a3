#pragma once

#include <armadillo>
#include <vector>

#include "core/base/random.hpp"
#include "core/graph/model.hpp"

/// Parts of models, filled from the generator in the order in which PyTorch draws them.
namespace core::editing {

/// Row-major numbers as a matrix of rows × columns.
arma::mat filled(const std::vector<float>& numbers, std::size_t rows, std::size_t columns);

/// nn.Linear(d_in, d_out): weight d_in × d_out, the transpose of PyTorch's, and then the bias.
attention::Linear drawn_linear(random::Generator& generator, std::size_t d_in, std::size_t d_out,
                               bool bias = false);

/// The order in which a notebook makes its layers.
enum class LayerOrder { query_key_value, key_query_value };

/// Three linear layers, drawn in that order, without an output projection.
attention::Projections drawn_projections(random::Generator& generator, std::size_t d_in, std::size_t d_out,
                                         bool bias = false, LayerOrder order = LayerOrder::query_key_value);

/// torch.randn(n_sequences, n_tokens, d_model) with numbered tokens.
std::vector<attention::Sequence> drawn_batch(random::Generator& generator, std::size_t n_sequences,
                                             std::size_t n_tokens, std::size_t d_model);

/// "Your journey starts with one step" in three features, rounded to float32 as the notebooks hold it.
attention::Sequence your_journey();

}  // namespace core::editing
