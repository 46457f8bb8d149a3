#include "core/graph/attend.hpp"
#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::MaskMethod;
using attention::Model;
using attention::ScaleRule;
using attention::ScoreRule;

Model average() {
  return preset("002-average");
}

Model full() {
  return preset("002-full");
}

constexpr Step why_attention_table[] = {
    {"One token back",
     "A bigram model guesses the next token from the present one alone. In a grid of weights that is the "
     "diagonal: each word listens to itself, and all that came before is lost.",
     {"strip/weights", "model/clear_cells"},
     {"token", "weight", "mask"},
     "press reset beside “cells by hand”, and let each word see what came before it.",
     ModelTask{bigram,
               [](const Moment& m) { return m.model.mask.cells.empty() && cell(weights(m), 5, 0) > 0; },
               [](const Moment& m) {
                 return token(m, 5) + " took everything from itself; now it takes " +
                        number(cell(weights(m), 5, 0)) + " from each of the six words.";
               }}},
    {"A library",
     "You ask for polar bears and climate change; that is the query. Each book's subject is its key, its "
     "text the value: you read 35 % of one, 40 % of another, 20, 0 and 5 % of the rest. Here the question "
     "is the last token, and the books' weights stand in its row.",
     {"strip/weights", "edit/tab/W_q"},
     {"query", "key", "value", "weight"},
     "open W_q and set the number of the question (row 5) for Arctic Ecosystems (column 2) to 0.",
     ModelTask{[] { return preset("002-library"); },
               [](const Moment& m) {
                 return m.model.n_tokens() == 6 && cell(weights(m), 5, 2) > cell(weights(m), 5, 1) &&
                        cell(head_before(m).weights, 5, 2) < cell(head_before(m).weights, 5, 1);
               },
               [](const Moment& m) {
                 return token(m, 2) + " rose from " + number(cell(head_before(m).weights, 5, 2)) + " to " +
                        number(cell(weights(m), 5, 2)) + ", and " + token(m, 1) + " fell from " +
                        number(cell(head_before(m).weights, 5, 1)) + " to " + number(cell(weights(m), 5, 1)) +
                        ": shares of one whole.";
               }},
     Exhibit::library},
    {"B, T, C",
     "The notebook's toy batch has B = 4 sequences of T = 8 tokens with C = 65 numbers each, drawn by randn "
     "at seed 1337. Every step that follows treats the four alike.",
     {"model/sequence_on", "model/sequence_remove", "strip/embeddings"},
     {"batch", "sequence", "d_model", "seed"},
     "add or remove a sequence under MODEL.",
     ModelTask{average, [](const Moment& m) { return m.model.sequences.size() != m.start.sequences.size(); },
               [](const Moment& m) {
                 return "B, T, C = " + std::to_string(m.model.sequences.size()) + ", " +
                        std::to_string(m.model.n_tokens()) + ", " + std::to_string(m.model.d_model()) + ".";
               }}},
    {"No peeking",
     "In “The cat sat on the mat” the row of sat is to guess on. If it mixes all six words, it has read the "
     "answer before it guesses.",
     {"model/causal", "strip/weights"},
     {"causal", "mask"},
     "press C.",
     ModelTask{[] { return equal_shares(false); },
               [](const Moment& m) { return m.model.mask.causal && cell(weights(m), 2, 3) == 0; },
               [](const Moment& m) {
                 return token(m, 2) + " no longer sees " + token(m, 3) + ", " + token(m, 4) + " and " +
                        token(m, 5) + "; its other shares grew from " +
                        number(cell(head_before(m).weights, 2, 0)) + " to " + number(cell(weights(m), 2, 0)) +
                        ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Version 1: averages from a triangle",
     "Ones on and below the diagonal, each row divided by its sum, times X: every token becomes the mean of "
     "all tokens up to itself. No score is needed for that.",
     {"strip/zeroed_weights", "strip/row_sums", "strip/weights", "model/method"},
     {"mask", "renormalise", "row"},
     "set the mask to “−∞ before softmax” and compare.",
     ModelTask{average,
               [](const Moment& m) {
                 return m.model.mask.method == MaskMethod::negative_infinity &&
                        agree(weights(m), head_before(m).weights);
               },
               [](const Moment& m) {
                 return "The weights differ by at most " + number(moved_weights(m)) + ". That is version 2.";
               }}},
    {"Version 2: a softmax of zeros",
     "Zeros where a token may look, −∞ where it may not: the softmax makes equal shares of what is left. "
     "Nothing is won yet, but zeros can be replaced by numbers that depend on the words.",
     {"strip/masked_scores", "strip/weights", "model/scores"},
     {"softmax", "−∞", "score"},
     "set the scores to Q·Kᵀ.",
     ModelTask{[] { return preset("002-softmax-zeros"); },
               [](const Moment& m) { return m.model.scores == ScoreRule::query_key && moved_weights(m) > 0; },
               [](const Moment& m) {
                 return "The last token gave each of the eight " +
                        number(cell(head_before(m).weights, 7, 7)) + "; now it gives itself " +
                        number(cell(weights(m), 7, 7)) + ", because nothing matches it as well as itself.";
               }}},
    {"Version 3: the data decide",
     "A drawn key, query and value, each 65 × 65 and drawn in this order: the weights now depend on who "
     "asks and who answers. Versions 1 and 2 are the same; this one is not.",
     {"strip/weights", "model/scores"},
     {"query", "key", "value", "weight"},
     "set the scores to uniform, and you are back at version 1.",
     ModelTask{full,
               [](const Moment& m) {
                 return m.model.scores == ScoreRule::uniform &&
                        agree(weights(m), attention::attend(average()).heads.front().weights);
               },
               [](const Moment& m) {
                 return "The weights moved by at most " + number(moved_weights(m)) +
                        " and are those of version 1.";
               }},
     Exhibit::versions},
    {"Why scaling matters",
     "A dot product of 65 products spreads √65 ≈ 8 times as wide as one of them. Unscaled, a softmax of "
     "such numbers gets peaky: one key takes nearly all, and hardly anything is left to learn from.",
     {"model/scale", "strip/weights"},
     {"scale", "softmax", "entropy"},
     "set the scale to none.",
     ModelTask{full,
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::none &&
                        arma::mean(entropies(weights(m))) < arma::mean(entropies(head_before(m).weights));
               },
               [](const Moment& m) {
                 return "The mean entropy of the rows fell from " +
                        number(arma::mean(entropies(head_before(m).weights))) + " to " +
                        number(arma::mean(entropies(weights(m)))) + " bits.";
               }},
     Exhibit::entropy},
    {"A print that is stale",
     "The weights at the notebook's end are not what its final code gives. They were left over from an "
     "earlier run: 32 features, head size 16, no scaling, and six draws between two settings of the seed. "
     "This is that run; 002-full is the code.",
     {"strip/weights", "model/scale"},
     {"seed", "scale"},
     "set the scale to 1/√d_head, which the earlier run did not have.",
     ModelTask{[] { return preset("002-as-printed"); },
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::inverse_sqrt_d_head &&
                        m.start.scale.rule == ScaleRule::none;
               },
               [](const Moment& m) {
                 return "The last row's largest weight, printed as " +
                        number(head_before(m).weights->tail_rows(1).max()) + ", would have been " +
                        number(weights(m).tail_rows(1).max()) + ".";
               }}},
};

}  // namespace

std::span<const Step> why_attention_steps() {
  return why_attention_table;
}

}  // namespace core::lessons
