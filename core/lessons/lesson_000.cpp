#include "core/graph/row_facts.hpp"
#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::HeadTrace;
using attention::Model;
using attention::ScaleRule;
using attention::Trace;

Model start() {
  return preset("000-causal");
}

std::size_t changed_cells(const arma::mat& a, const arma::mat& b) {
  return arma::size(a) == arma::size(b) ? arma::accu(a != b) : b.n_elem;
}

constexpr Step causal_attention_table[] = {
    {"Words become numbers",
     "Each word is a row of numbers, its embedding. Here six words have three numbers each, as PyTorch "
     "draws them with rand(6, 3) at seed 123; a trained model would have learned them.",
     {"strip/embeddings", "edit/tab/X"},
     {"token", "embedding", "feature", "seed"},
     "in EDIT, change any number of X: drag it, or double click and type.",
     ModelTask{start,
               [](const Moment& m) { return changed(m, &Trace::embeddings) && changed(m, &Trace::output); },
               [](const Moment& m) {
                 return "The change went through every stage: " +
                        number(static_cast<double>(changed_cells(m.before.output, m.trace.output))) +
                        " numbers of the output moved with it.";
               }}},
    {"Three parts to play",
     "As a query a word asks, as a key it offers something to be found by, as a value it carries what it "
     "has to say. Three learned matrices, W_q, W_k and W_v, make the three from the same embedding.",
     {"strip/queries", "strip/keys", "strip/values", "edit/tab/W_q"},
     {"query", "key", "value", "projection"},
     "open W_q in EDIT and change a number.",
     ModelTask{start,
               [](const Moment& m) {
                 return changed(m, &HeadTrace::queries) && !changed(m, &HeadTrace::keys) &&
                        !changed(m, &HeadTrace::values);
               },
               [](const Moment& m) {
                 return "The queries moved, by at most " +
                        number(largest_difference(head_before(m).queries, head_now(m).queries)) +
                        "; keys and values did not.";
               }}},
    {"Who should I listen to?",
     "The query of one word meets the key of each word: multiply number by number and add. The larger this "
     "dot product, the better the key answers the question.",
     {"strip/scores", "edit/tab/W_k"},
     {"score", "dot product"},
     "open W_k and change a number: the answers change, the questions do not.",
     ModelTask{
         start,
         [](const Moment& m) { return changed(m, &HeadTrace::scores) && !changed(m, &HeadTrace::queries); },
         [](const Moment& m) {
           const std::size_t last = m.model.n_tokens() - 1, best = largest_in_row(head_now(m).scores, last);
           return token(m, last) + " now finds its best answer at " + token(m, best) + ", with a score of " +
                  number(cell(head_now(m).scores, last, best)) + ".";
         }}},
    {"Keep the scores small",
     "The more numbers a key has, the larger dot products grow, and the softmax that follows would see "
     "nothing but the largest. So every score is divided by √3, the root of the number of columns of a key.",
     {"strip/scaled_scores", "model/scale"},
     {"scale", "d_head"},
     "set the scale to none.",
     ModelTask{start, [](const Moment& m) { return m.model.scale.rule == ScaleRule::none; },
               [](const Moment& m) {
                 return "The largest scaled score grew from " + number(head_before(m).scaled_scores->max()) +
                        " to " + number(head_now(m).scaled_scores->max()) +
                        ", and the weights moved by at most " + number(moved_weights(m)) + ".";
               }}},
    {"A grid of 0 and 1",
     "A word may listen to itself and to what came before. The mask says so cell by cell: 1 where a query "
     "may see a key, 0 where it may not, which makes a triangle.",
     {"strip/mask", "edit/add_token"},
     {"mask", "causal"},
     "press “+ token” in EDIT and watch the triangle grow by a row and a column.",
     ModelTask{start, [](const Moment& m) { return m.model.n_tokens() > m.start.n_tokens(); },
               [](const Moment& m) {
                 const double n = static_cast<double>(m.model.n_tokens());
                 return "The grid is " + number(n) + "×" + number(n) + " now and " +
                        number(arma::accu(*m.trace.mask)) + " of its " + number(n * n) + " cells are 1.";
               }}},
    {"Why the future is hidden",
     "A word may not listen to later words, because they are what it must predict. The mask writes −∞ over "
     "every later key. exp(−∞) is 0, so the softmax gives these cells no weight at all, and each row still "
     "sums to 1.",
     {"model/causal", "strip/masked_scores", "strip/weights"},
     {"query", "key", "mask", "−∞", "softmax", "weight"},
     "press C and watch row 0 of the weights.",
     ModelTask{
         start, [](const Moment& m) { return !m.model.mask.causal && cell(head_now(m).weights, 0, 0) < 1; },
         [](const Moment& m) {
           return token(m, 0) + " fell from 1 to " + number(cell(head_now(m).weights, 0, 0)) +
                  " and listens to " + number(static_cast<double>(m.model.n_tokens() - 1)) + " later words.";
         }},
     Exhibit::none,
     attention::Stage::weights},
    {"A row is a pie",
     "The softmax turns each row of scores into shares of one pie: the exponential of each score, divided "
     "by the sum of the row's exponentials. Every share is positive and together they are 1.",
     {"strip/masked_scores", "strip/weights", "model/scale"},
     {"softmax", "weight", "row"},
     "set the scale to a factor and type 20: the same scores, cut into uneven pieces.",
     ModelTask{start,
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::factor && m.model.scale.factor >= 10 &&
                        head_now(m).weights->tail_rows(1).max() > head_before(m).weights->tail_rows(1).max();
               },
               [](const Moment& m) {
                 const std::size_t last = m.model.n_tokens() - 1,
                                   best = largest_in_row(head_now(m).weights, last);
                 return "The largest piece of the last row went to " + token(m, best) + " and grew from " +
                        number(head_before(m).weights->tail_rows(1).max()) + " to " +
                        number(cell(head_now(m).weights, last, best)) + "; the row still sums to " +
                        number(attention::row_facts(head_now(m).weights, last).sum) + ".";
               }}},
    {"Reading the rows",
     "Row i is word i asking, column j the word that is listened to. The first row has one choice, the last "
     "has all of them.",
     {"strip/weights", "edit/tab/X"},
     {"row", "weight"},
     "make the last word listen most to the first: in X, set all three numbers of The to 1.5.",
     ModelTask{start,
               [](const Moment& m) {
                 return largest_in_row(head_before(m).weights, 5) != 0 && m.model.n_tokens() == 6 &&
                        largest_in_row(head_now(m).weights, 5) == 0;
               },
               [](const Moment& m) {
                 return token(m, 5) + " now gives " + token(m, 0) + " a weight of " +
                        number(cell(head_now(m).weights, 5, 0)) +
                        ", more than to any other word; before it gave " +
                        number(cell(head_before(m).weights, 5, 0)) + ".";
               }}},
    {"Values are mixed",
     "Each word takes a mixture of the values away, with the weights of its row: this is its context. What "
     "is mixed is the values; the weights decide by how much.",
     {"strip/contexts", "strip/values", "edit/tab/W_v"},
     {"value", "context"},
     "open W_v and change a number.",
     ModelTask{
         start,
         [](const Moment& m) { return changed(m, &HeadTrace::contexts) && !changed(m, &HeadTrace::weights); },
         [](const Moment& m) {
           return "The contexts moved by at most " +
                  number(largest_difference(head_before(m).contexts, head_now(m).contexts)) +
                  " and not one weight did.";
         }}},
    {"What comes later changes nothing before",
     "The first word sees only itself, so its context is its own value. In the same way no row depends on "
     "the words after it, and a model can be trained on all rows at once.",
     {"strip/output", "edit/tab/X"},
     {"causal", "context"},
     "change a number of door, the last row of X, and see which rows of the output move.",
     ModelTask{start,
               [](const Moment& m) {
                 const arma::vec rows = row_differences(m.before.output, m.trace.output);
                 return only_last_token_changed(m) && rows[rows.n_elem - 1] > 0 &&
                        arma::all(rows.head(rows.n_elem - 1) == 0);
               },
               [](const Moment& m) {
                 const arma::vec rows = row_differences(m.before.output, m.trace.output);
                 return "Rows 0 to 4 are what they were to the last bit; row 5 moved by at most " +
                        number(rows[5]) + ".";
               }}},
    {"All in one line",
     "softmax(QKᵀ/√d + mask)·V is the whole of it, and the output is the notebook's, digit for digit as it "
     "prints them. Several heads do the same in fewer columns each, side by side.",
     {"strip/output", "model/heads"},
     {"head", "d_head", "concatenate"},
     "set heads to 3: one column for each.",
     ModelTask{start, [](const Moment& m) { return m.model.n_heads == 3; },
               [](const Moment& m) {
                 return "Three rows of weights for each word now: the last word gives the first " +
                        number(cell(m.trace.heads[0].weights, 5, 0)) + ", " +
                        number(cell(m.trace.heads[1].weights, 5, 0)) + " and " +
                        number(cell(m.trace.heads[2].weights, 5, 0)) + ".";
               }}},
};

}  // namespace

std::span<const Step> causal_attention_steps() {
  return causal_attention_table;
}

}  // namespace core::lessons
