#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::Model;

/// Whether the sequence still has so many tokens, and cells can be asked for by number.
bool has_tokens(const Moment& m, std::size_t n) {
  return m.model.n_tokens() == n;
}

constexpr Step heads_table[] = {
    {"The one before",
     "Each token is a word, one-hot, beside its position, one-hot. W_k gives the position itself, W_q the "
     "position before: query i matches key i − 1.",
     {"strip/weights", "edit/tab/W_q"},
     {"head", "query", "key", "projection"},
     "let the last position ask for the first: in W_q set row 11, column 0 to 20.",
     ModelTask{[] { return preset("head-previous-token"); },
               [](const Moment& m) {
                 return has_tokens(m, 6) && largest_in_row(head_before(m).weights, 5) == 4 &&
                        largest_in_row(weights(m), 5) == 0;
               },
               [](const Moment& m) {
                 return token(m, 5) + " now gives " + token(m, 0) + " " + number(cell(weights(m), 5, 0)) +
                        "; before it gave " + token(m, 4) + " " + number(cell(head_before(m).weights, 5, 4)) +
                        ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"The first of all",
     "Here every position asks for position 0. Trained models have such heads too: a place to look when "
     "there is nothing to find.",
     {"strip/weights", "model/causal"},
     {"head", "weight"},
     "press C: nobody looks ahead anyway, and hardly anything changes.",
     ModelTask{
         [] { return preset("head-first-token"); },
         [](const Moment& m) {
           return !m.model.mask.causal && m.start.mask.causal && moved_weights(m) < 0.01;
         },
         [](const Moment& m) { return "No weight moved by more than " + number(moved_weights(m)) + "."; }}},
    {"The same word again",
     "A rose is a rose is: queries and keys are the words themselves, so every word finds its own earlier "
     "occurrences and itself.",
     {"strip/weights", "edit/tab/X"},
     {"head", "token"},
     "turn the second rose into an a: in X set row 4, column 0 to 1 and column 1 to 0.",
     ModelTask{[] { return preset("head-same-token"); },
               [](const Moment& m) {
                 return has_tokens(m, 6) && cell(head_before(m).weights, 4, 0) < 0.01 &&
                        cell(weights(m), 4, 0) > 0.3 && cell(weights(m), 4, 1) < 0.01;
               },
               [](const Moment& m) {
                 return "It gave the first rose " + number(cell(head_before(m).weights, 4, 1)) +
                        " and the first a " + number(cell(head_before(m).weights, 4, 0)) +
                        "; now it gives them " + number(cell(weights(m), 4, 1)) + " and " +
                        number(cell(weights(m), 4, 0)) + ".";
               }}},
    {"No opinion",
     "Queries and keys of zero: every score is 0 and each word takes the plain average of what it sees. The "
     "score is a product, so one of the two alone changes nothing.",
     {"strip/scores", "strip/weights", "edit/tab/W_q", "edit/tab/W_k"},
     {"score", "softmax"},
     "set row 11, column 0 of W_q to 5 and row 6, column 0 of W_k to 1: the last asks for the first.",
     ModelTask{[] { return preset("head-average"); },
               [](const Moment& m) {
                 return has_tokens(m, 6) && cell(weights(m), 5, 0) > cell(head_before(m).weights, 5, 0) + 0.1;
               },
               [](const Moment& m) {
                 return token(m, 5) + " gave " + token(m, 0) + " " +
                        number(cell(head_before(m).weights, 5, 0)) + "; now " +
                        number(cell(weights(m), 5, 0)) + ".";
               }}},
    {"What came next last time",
     "An induction head: each key carries the word before it, and each query asks for its own word there. "
     "So the second the finds the cat that followed the first the, a good guess for what comes next.",
     {"strip/weights", "edit/tab/X"},
     {"head", "query", "key", "context"},
     "let cat forget what it followed: in X set row 1, column 7 to 0.",
     ModelTask{[] { return preset("head-induction"); },
               [](const Moment& m) {
                 return has_tokens(m, 7) && cell(head_before(m).weights, 4, 1) > 0.9 &&
                        cell(weights(m), 4, 1) < 0.5;
               },
               [](const Moment& m) {
                 return "The second the gave cat " + number(cell(head_before(m).weights, 4, 1)) +
                        "; now it gives each word " + number(cell(weights(m), 4, 1)) +
                        ", because nothing matches.";
               }}},
    {"Several at once",
     "One head has one row of weights for each word, so it can ask one question at a time. Several heads "
     "ask several questions, in bands of columns, and W_o brings their answers together.",
     {"view/heads", "model/heads", "strip/concatenated"},
     {"head", "concatenate", "output projection"},
     "set heads to 4: the same columns, cut finer.",
     ModelTask{[] { return preset("multi-head"); },
               [](const Moment& m) { return m.model.n_heads == 4 && m.start.n_heads != 4; },
               [](const Moment& m) {
                 return "The last word gives the first " + number(cell(m.trace.heads[0].weights, 5, 0)) +
                        ", " + number(cell(m.trace.heads[1].weights, 5, 0)) + ", " +
                        number(cell(m.trace.heads[2].weights, 5, 0)) + " and " +
                        number(cell(m.trace.heads[3].weights, 5, 0)) + ", one weight for each head.";
               }}},
};

}  // namespace

std::span<const Step> heads_steps() {
  return heads_table;
}

}  // namespace core::lessons
