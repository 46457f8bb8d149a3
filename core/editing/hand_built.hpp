#pragma once

#include "core/graph/model.hpp"

/// Heads whose projections were written by hand, on one-hot tokens and positions, to show what a head can do.
///
/// Scores are not scaled: a match scores hand_built::match, everything else 0.
namespace core::editing::hand_built {

/// A key that matches gets e¹⁰ ≈ 22026 times the weight of one that does not.
constexpr double match = 10;

/// Position i asks for position i − 1.
attention::Model previous_token();

/// Every position asks for position 0.
attention::Model first_token();

/// Each word asks for itself.
attention::Model same_token();

/// Nothing matches: all visible keys weigh the same.
attention::Model average();

/// Each token's embedding carries the token before it: the head looks for "what came after this word last
/// time".
attention::Model induction();

}  // namespace core::editing::hand_built
