#pragma once

#include "core/model/run.hpp"

namespace core::transformer {

/// Makes sure that a pass left nothing but numbers behind.
///
/// Throws core::Error, "FILE: numbers that are not finite begin in …", which names the tensor and, of a
/// matrix, the row where they do.
void require_finite(const Transformer& model, const Pass& pass, const Token& progress);

/// The same of scores that finite numbers became, by what stands between the last layer and them.
void require_finite_scores(const Transformer& model, const arma::fmat& logits, const Token& progress);

}  // namespace core::transformer
