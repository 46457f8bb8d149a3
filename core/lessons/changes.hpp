#pragma once

#include "core/lessons/lesson.hpp"
#include "core/lessons/measures.hpp"

/// What changed since a step began: the questions that most checks ask.
namespace core::lessons {

/// Whether a stage of the shown sequence, or of its first head, has other numbers or another shape.
bool changed(const Moment& m, const attention::StageMatrix attention::Trace::*stage);
bool changed(const Moment& m, const attention::StageMatrix attention::HeadTrace::*stage);

/// The first head, before and now.
const attention::HeadTrace& head_before(const Moment& m);
const attention::HeadTrace& head_now(const Moment& m);

/// The weights of the first head now, and before.
const arma::mat& weights(const Moment& m);
const arma::mat& weights_before(const Moment& m);

/// Whether X changed in its last row alone.
bool only_last_token_changed(const Moment& m);

/// How far the weights of the first head moved at most.
double moved_weights(const Moment& m);

/// The name of token i of the first sequence, in quotes.
std::string token(const Moment& m, std::size_t i);

/// Whether the embeddings of sequence s are others than at the start; false where there is no such sequence.
bool sequence_changed(const Moment& m, std::size_t s);

/// How many sequences of the batch changed.
std::size_t changed_sequences(const Moment& m);

}  // namespace core::lessons
