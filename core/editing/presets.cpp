#include "core/editing/presets.hpp"

#include <array>

#include "core/base/find.hpp"
#include "core/editing/chapter.hpp"
#include "core/editing/hand_built.hpp"
#include "core/editing/modern.hpp"
#include "core/editing/notebooks.hpp"

namespace core::editing {
namespace {

using attention::MaskMethod;
using attention::MergeRule;

// clang-format off
constexpr std::array table{
    Preset{"multi-head", "Your journey, two heads",
           "two heads of two columns each on the sentence, with an output projection, drawn at seed 123",
           Evidence::drawn, "drawn at seed 123", chapter::wider_multi_head},

    Preset{"000-causal", "000 Causal, step by step",
           "six words of three features drawn at seed 123, and causal attention in every step",
           Evidence::printed, "notebook 000, scaled scores and output", notebooks::causal_step_by_step},

    Preset{"001-dot-product", "001 Plain dot products",
           "attention straight on the embeddings: no projections, no scale, no mask",
           Evidence::printed, "notebook 001, scores, weights and contexts", notebooks::raw_dot_product},
    Preset{"001-attention", "001 Attention class",
           "projections with biases on a batch of 8 sequences of 4 tokens with 256 features, nothing hidden",
           Evidence::never_seeded, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::attention_class(notebooks::full_size, false); }},
    Preset{"001-attention-mask", "001 Attention with mask",
           "the same class with a causal mask made at each call",
           Evidence::never_seeded, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::attention_class(notebooks::full_size, true); }},
    Preset{"001-multi-head", "001 Multi-head, correct",
           "eight heads, transposed back before they are merged, so that no later token leaks",
           Evidence::never_seeded, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::multi_head_class(notebooks::full_size, MergeRule::concatenate); }},
    Preset{"001-multi-head-as-written", "001 Multi-head as written",
           "the notebook's mistake: heads reshaped without the transpose, so that later tokens leak into earlier rows",
           Evidence::never_seeded, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::multi_head_class(notebooks::full_size, MergeRule::reshape_without_transpose); }},

    Preset{"002-library", "002 Library analogy",
           "a question asked of five books: the last row gives the analogy's weights",
           Evidence::printed, "notebook 002, library analogy", notebooks::library},
    Preset{"002-average", "002 Version 1: average",
           "each token averages all tokens up to itself, by a triangle divided by its row sums",
           Evidence::reference, "PyTorch run of notebook 002", [] { return notebooks::averaging(MaskMethod::renormalise); }},
    Preset{"002-softmax-zeros", "002 Version 2: softmax",
           "the same averages from a softmax of zeros with −∞ ahead",
           Evidence::reference, "PyTorch run of notebook 002",
           [] { return notebooks::averaging(MaskMethod::negative_infinity); }},
    Preset{"002-full", "002 Full attention",
           "queries, keys and values of 65 columns, scaled, as the notebook's final code has it",
           Evidence::stale_print, "PyTorch run of notebook 002; its printed weights come from an earlier run",
           notebooks::full_attention},
    Preset{"002-as-printed", "002 As printed",
           "the run whose weights the notebook prints: 32 features, head size 16, not scaled, six draws in between",
           Evidence::printed, "notebook 002, printed weights", notebooks::as_printed},

    Preset{"003-causal-class", "003 Causal class",
           "a batch of two equal sequences, three features to two",
           Evidence::reference, "PyTorch run of notebook 003", notebooks::causal_class},
    Preset{"003-masked-scores", "003 Masked scores",
           "a drawn 5×5 score matrix, masked and softmaxed: every row sums to 1",
           Evidence::reference, "PyTorch run of notebook 003", notebooks::masked_scores},
    Preset{"003-dropout", "003 Dropout on ten ones",
           "one token in ten heads of weight 1: the output is what dropout leaves of ten ones at p = 0.5",
           Evidence::reference, "PyTorch run of notebook 003", notebooks::ten_ones_dropped},

    Preset{"004-self-attention", "004 Self-attention",
           "the sentence, three features to two at seed 123, nothing hidden",
           Evidence::printed, "notebook 004, weights and output",
           [] { return notebooks::your_journey_attention(false, MaskMethod::negative_infinity, 0); }},
    Preset{"004-renormalise", "004 Mask by renormalising",
           "softmax first, then the triangle, then each row divided by its sum",
           Evidence::printed, "notebook 004, renormalised weights",
           [] { return notebooks::your_journey_attention(true, MaskMethod::renormalise, 0); }},
    Preset{"004-causal", "004 Mask by −∞",
           "−∞ ahead of each query before the softmax: the same weights in one step",
           Evidence::printed, "notebook 004, masked weights",
           [] { return notebooks::your_journey_attention(true, MaskMethod::negative_infinity, 0); }},
    Preset{"004-causal-dropout", "004 Causal and dropout",
           "the causal weights under dropout at p = 0.5 and seed 123: survivors are doubled",
           Evidence::reference, "PyTorch run of notebook 004", 
           [] { return notebooks::your_journey_attention(true, MaskMethod::negative_infinity, 0.5); }},

    Preset{"chapter-causal-class", "Chapter: causal class",
           "the sentence twice in a batch, three features to two, at seed 123",
           Evidence::published, "chapter 3, CausalAttention", chapter::causal_class},
    Preset{"chapter-two-heads", "Chapter: two heads",
           "two heads of two columns, drawn one after the other and set side by side",
           Evidence::published, "chapter 3, MultiHeadAttentionWrapper", chapter::two_heads},
    Preset{"chapter-multi-head", "Chapter: multi-head",
           "two heads of one column each, with an output projection",
           Evidence::published, "chapter 3, MultiHeadAttention", chapter::multi_head},
    Preset{"chapter-dropped-weights", "Chapter: dropped weights",
           "causal weights at seed 789 under dropout at seed 123: one row loses everything",
           Evidence::published, "chapter 3, dropout of the causal weights", chapter::dropped_weights},

    Preset{"head-previous-token", "Head: previous token",
           "each position asks for the one before it; the first has none and sees itself",
           Evidence::by_construction, "projections written by hand", hand_built::previous_token},
    Preset{"head-first-token", "Head: first token",
           "every position asks for position 0",
           Evidence::by_construction, "projections written by hand", hand_built::first_token},
    Preset{"head-same-token", "Head: same token",
           "each word asks for its own earlier occurrences and itself",
           Evidence::by_construction, "projections written by hand", hand_built::same_token},
    Preset{"head-average", "Head: average",
           "queries and keys of zero: all that is visible counts the same",
           Evidence::by_construction, "projections written by hand", hand_built::average},
    Preset{"head-induction", "Head: induction",
           "each word asks what followed it last time, by keys that carry the word before",
           Evidence::by_construction, "projections written by hand", hand_built::induction},

    Preset{"modern-grouped", "Today: grouped heads",
           "four heads that share two keys and values, as in Llama, Mistral and Qwen",
           Evidence::drawn, "drawn at seed 123", modern::grouped},
    Preset{"modern-rotary", "Today: rotary positions",
           "one word eight times: only the turned queries and keys tell its places apart",
           Evidence::by_construction, "queries and keys of ones, turned", modern::rotary},
    Preset{"modern-llama", "Today: as in Llama",
           "grouped heads and rotary positions of base 500000, pairs of halves",
           Evidence::drawn, "drawn at seed 123", modern::llama},
    Preset{"modern-window", "Today: a window",
           "each word sees itself and the three before it, as in Mistral and Gemma",
           Evidence::drawn, "drawn at seed 123", modern::window},
    Preset{"modern-alibi", "Today: ALiBi",
           "one word eight times in eight heads whose scores fall with distance, each at its own slope",
           Evidence::by_construction, "scores of 1 less a slope for each step", modern::alibi},
    Preset{"modern-cap", "Today: capped scores",
           "wide scores that 2·tanh(score/2) keeps below 2, as in Gemma 2",
           Evidence::drawn, "drawn at seed 123", modern::cap},
    Preset{"modern-sink", "Today: a sink",
           "a window, and a number in the sum of every row that belongs to no key, as in gpt-oss",
           Evidence::drawn, "drawn at seed 123", modern::sink},
    Preset{"modern-cross", "Today: cross-attention",
           "three words ask four others: keys and values have embeddings of their own",
           Evidence::drawn, "drawn at seed 123", modern::cross},
    Preset{"modern-decode", "Today: one token more",
           "the newest word asks a cache of all words up to itself",
           Evidence::drawn, "drawn at seed 123", modern::decode},
};
// clang-format on

}  // namespace

std::span<const Preset> presets() {
  return table;
}

const Preset* find_preset(std::string_view name) {
  return find_by(table, name, &Preset::name);
}

const Preset& default_preset() {
  return *find_preset("multi-head");
}

}  // namespace core::editing
