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

/// Two tokens of the vocabulary, and what a head makes of them.
struct TokenPair {
  std::size_t from = 0, to = 0;
  double value = 0;
};

/// The largest cells of a head's circuits over the vocabulary: OV, the logit of a token that a source token
/// raises; QK, the score of a query token and a key token.
///
/// Each token's embedding passes the norm before attention alone, with its own scale; positions, RoPE, QK
/// norm and biases are left out. Source: Elhage et al. 2021.
struct HeadCircuits {
  std::vector<TokenPair> ov, qk;  ///< the largest first
};

/// Throws core::Error, "layer: …", "head: …", and "MODEL: …" when nothing is predicted. Progress counts
/// blocks of tokens.
HeadCircuits head_circuits(const Float64Model& model, std::size_t layer, std::size_t head,
                           std::size_t n_pairs, const CallContext& context);

}  // namespace core::circuits
