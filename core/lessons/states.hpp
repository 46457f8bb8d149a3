#pragma once

#include <string_view>

#include "core/graph/model.hpp"

/// Models that lessons begin with and that are no presets.
namespace core::lessons {

/// The preset of that name; throws core::Error when there is none.
attention::Model preset(std::string_view name);

/// "The cat sat on the mat": six one-hot words whose scores are uniform, causal or not.
attention::Model equal_shares(bool causal);

/// The same in which each word sees itself alone, as the bigram model does that guesses the next word from
/// it.
attention::Model bigram();

/// "I'm going to school tomorrow" with the projections of 000-causal; the words are drawn at seed 123.
attention::Model school();

/// Two tokens with the scores [[0, hidden], [0, 0]], renormalised after the softmax.
attention::Model hidden_score(double hidden);

}  // namespace core::lessons
