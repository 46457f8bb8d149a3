#include "core/lessons/glossary.hpp"

#include <array>

#include "core/base/ascii.hpp"
#include "core/base/find.hpp"

namespace core::lessons {
namespace {

constexpr std::array terms{
    Term{"token", "one piece of the text, a word or a character; the sequence is a row of tokens."},
    Term{"embedding", "the numbers that stand for a token: row i of X is token i."},
    Term{"feature", "one column of a matrix whose rows are tokens; most features have no name."},
    Term{"vocabulary", "the distinct tokens; equal tokens share one embedding."},
    Term{"sequence", "the tokens that attend to each other, in their order."},
    Term{"batch", "several sequences of one length, computed side by side; none sees another."},
    Term{"context length",
         "the most tokens that a model was made for. A longer sequence is refused, and both numbers are "
         "named."},
    Term{"d_model", "how many numbers an embedding has: the columns of X."},
    Term{"projection", "a learned matrix that turns every row x into x·W, perhaps plus a bias."},
    Term{"bias", "a row of numbers that a projection adds to each of its results."},
    Term{"query", "what a token asks: row i of Q, for token i."},
    Term{"key", "what a token offers to be found by: row j of K, for token j."},
    Term{"value", "what a token hands over when it is listened to: row j of V, for token j."},
    Term{"dot product",
         "multiply two rows number by number and add up. It is large when both point the same way, negative "
         "when they point apart."},
    Term{"score", "the dot product of query i and key j: how well they match, before anything else."},
    Term{"scale",
         "the factor on the scores, usually 1/√d_head. It keeps their spread near 1, however wide the head "
         "is."},
    Term{
        "norm",
        "brings the numbers of a query or a key to one size, and multiplies each column by a learned factor."},
    Term{"rotary position",
         "turns pairs of a query's and a key's numbers by an angle that grows with the position, so that "
         "their score depends on how far apart they stand."},
    Term{"position bias", "what is added to a score for the distance of query and key, before the mask."},
    Term{"score cap", "bends scores so that none goes beyond a number c: c·tanh(score/c)."},
    Term{"group", "heads that share their keys and values, each with queries of its own."},
    Term{"sink",
         "a score that belongs to no key: its exponential joins the sum of a row, so that a query may look "
         "at nothing."},
    Term{"key embedding", "what a key and a value are made of where they are not the tokens' own."},
    Term{"mask", "says which keys a query may see. Causal: key j only when j ≤ i."},
    Term{"causal", "without a look ahead: what stands at i depends on the tokens up to i alone."},
    Term{"−∞", "minus infinity: the score of a hidden cell. Its exponential is exactly 0."},
    Term{"softmax",
         "the exponentials of a row divided by their sum, so that each is between 0 and 1 and together they "
         "make 1."},
    Term{"renormalise", "divide a row by its sum, so that it sums to 1 again."},
    Term{"weight",
         "the share of value j in the context of i: a cell after the softmax. Only these are called "
         "weights here."},
    Term{"row",
         "in a square matrix, one query and all the keys: a row of weights says whom token i listens to."},
    Term{
        "entropy",
        "how spread a row of weights is, in bits: 0 when one key takes all, log₂ n when n keys share alike."},
    Term{
        "dropout",
        "while training, each weight is set to 0 with probability p, so that no path is relied on too much."},
    Term{"survivor", "a weight that dropout kept; it is multiplied by 1/(1 − p), so that the mean stays."},
    Term{"training", "the mode in which dropout is active. A new PyTorch module is in it."},
    Term{"evaluation", "the mode for use: nothing is dropped and nothing is enlarged."},
    Term{"seed", "the number that a generator starts from; the same seed gives the same draws."},
    Term{"context", "what token i takes away: the values, mixed by its row of weights."},
    Term{"head", "one attention of its own, with its own queries, keys and values. Heads work side by side."},
    Term{"d_head", "how many columns a head has: d_out divided by the number of heads."},
    Term{"concatenate", "put the heads' contexts side by side, so that each row is still one token."},
    Term{
        "transpose",
        "swap two axes. Heads are computed as head, token, column and must become token, head, column before "
        "they are joined."},
    Term{"output projection", "the last matrix, W_o: it mixes what the heads found."},
    Term{"logit",
         "a number before a softmax. Scores are the logits of the weights; a language model's last "
         "layer has one for each token that could come next."},
    Term{"layer",
         "one round of a whole model: its heads read from the stream, then its MLP; both add to it."},
    Term{
        "residual stream",
        "one row of numbers for each token, to which every layer adds what it found; the next layer reads the "
        "sum."},
    Term{"tokenizer",
         "cuts a text into the tokens that a model knows; what is rare falls into several pieces."},
    Term{"probability", "the softmax of a token's logit over all tokens that could come next."},
    Term{"logit lens",
         "the guess that a model would make if it ended behind a layer: its last norm and its vocabulary, "
         "applied early."},
    Term{"previous-token head", "a head whose queries look at the token just before them."},
    Term{"induction head",
         "a head that looks at what followed the last time its token was read, and so repeats it."},
};

}  // namespace

std::span<const Term> glossary() {
  return terms;
}

const Term* find_term(std::string_view word) {
  return find_by(terms, text::lower(word), [](const Term& t) { return text::lower(t.word); });
}

}  // namespace core::lessons
