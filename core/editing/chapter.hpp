#pragma once

#include "core/graph/model.hpp"

/// The examples of chapter 3 of "Build a Large Language Model (From Scratch)" by Sebastian Raschka.
namespace core::editing::chapter {

/// The sentence twice in a batch, 3 → 2, causal, seed 123.
attention::Model causal_class();

/// Two heads of two columns, each drawn whole before the next; the model holds them as bands of columns.
attention::Model two_heads();

/// The same batch, 3 → 2 in two heads of one column, with an output projection, seed 123.
attention::Model multi_head();

/// The causal weights of projections drawn at seed 789, under dropout at seed 123.
attention::Model dropped_weights();

/// The sentence, 3 → 4, with two heads and an output projection; not in the chapter.
attention::Model wider_multi_head();

}  // namespace core::editing::chapter
