#pragma once

#include <string>
#include <vector>

#include "core/graph/model.hpp"
#include "core/model/run.hpp"

namespace core::transformer {

/// Throws core::Error when there is no such layer.
void require_layer(const Transformer& model, std::size_t layer);

/// The attention of a layer as a model in float64 that can be looked at: what enters it in a pass, its
/// projections, its heads, whom a query sees.
///
/// Its numbers are the layer's float32 as they are; what it computes differs from the pass by rounding alone.
/// Throws core::Error as require_layer() does.
attention::Model layer_model(const Transformer& model, const Pass& pass, std::size_t layer,
                             const std::vector<std::string>& tokens, const Interventions& interventions);

/// The same without a text: no tokens, nothing that enters it, no head off.
attention::Model layer_without_text(const Transformer& model, std::size_t layer);

/// Names of tokens for people: their text, the bytes of those that are less than a character, and the piece
/// of those that stand for nothing in the text.
std::vector<std::string> token_names(const tokenizers::Tokenizer& tokenizer,
                                     const std::vector<tokenizers::TextToken>& tokens);

/// The same of one token of the vocabulary.
std::string token_name(const tokenizers::Tokenizer& tokenizer, std::size_t id);

}  // namespace core::transformer
