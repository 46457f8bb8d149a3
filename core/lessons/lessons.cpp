#include <array>

#include "core/base/find.hpp"
#include "core/lessons/lesson.hpp"
#include "core/lessons/paths.hpp"

namespace core::lessons {
namespace {

constexpr const char* tiny_model = "tiny_gpt";

constexpr std::array table{
    Lesson{"000", "Causal attention in eleven steps", "from six words to what each of them takes away",
           causal_attention_steps},
    Lesson{"001", "From dot products to attention", "one query, all queries, learned projections and a batch",
           dot_products_steps},
    Lesson{"001-heads", "From attention to several heads",
           "what the mask is for, how heads are cut and joined, and a transpose that was forgotten",
           multi_head_steps},
    Lesson{"002", "Why attention at all",
           "from a model that sees one token back to weights that the data decide", why_attention_steps},
    Lesson{"003", "Causal attention as a class", "a batch, a mask, row sums, and dropout on ten ones",
           causal_class_steps},
    Lesson{"004", "The mask in two ways", "renormalise or −∞: why they agree, and where they part",
           two_masks_steps},
    Lesson{"dropout", "Dropout on the weights",
           "why a row does not sum to 1, and why that is right on average", dropout_steps},
    Lesson{"scaling", "Why the scores are scaled", "how wide rows make a softmax peaky", scaling_steps},
    Lesson{"heads", "What a head can do", "heads built by hand, with projections that can be read",
           heads_steps},
    Lesson{"positions", "Positions that turn",
           "why pairs, why only distances count, and what goes wrong when the pairs are mixed up",
           positions_steps},
    Lesson{"groups", "Fewer keys than queries", "heads that share keys and values, and in which order",
           groups_steps},
    Lesson{"window", "A window and a sink", "a query that sees a few keys, or looks at none", window_steps},
    Lesson{"decode", "One token at a time", "a cache of keys and values, and where the newest token stands",
           decode_steps},
    Lesson{"next-word", "From a sentence to the next word",
           "a whole model: tokens, layers, the guess behind each, and any number of it changed",
           next_word_steps, tiny_model},
    Lesson{"induction", "Finding an induction head",
           "two heads in different layers that together repeat what was read", induction_head_steps,
           tiny_model},
};

}  // namespace

std::span<const Lesson> lessons() {
  return table;
}

const Lesson* find_lesson(std::string_view name) {
  return find_by(table, name, &Lesson::name);
}

}  // namespace core::lessons
