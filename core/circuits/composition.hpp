#pragma once

#include "core/circuits/float64_model.hpp"

namespace core::circuits {

/// How much of what heads read is written by heads of earlier layers, 0 … 1 for each pair.
///
/// ‖W_OV W‖ / (‖W_OV‖ ‖W‖) in Frobenius norms, where W is what the later head's queries, keys or values read:
/// W_Q W_Kᵀ, W_K W_Qᵀ or W_V W_O. Factors of the norm before attention belong to W, and LayerNorm's
/// centering; RoPE and QK norm are left out. Source: Elhage et al. 2021.
struct Composition {
  std::size_t n_heads = 0;          ///< of each layer; row and column are layer · n_heads + head
  arma::mat queries, keys, values;  ///< [writing head][reading head], NaN unless the reader's layer is later
};

/// Throws core::Error, "MODEL: …", when there is one layer. Progress counts pairs of layers.
Composition composition(const Float64Model& model, const CallContext& context);

}  // namespace core::circuits
