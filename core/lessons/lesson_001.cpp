#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::HeadTrace;
using attention::Model;
using attention::ScaleRule;
using attention::Trace;

Model dot_products() {
  return preset("001-dot-product");
}

Model attention_class() {
  return preset("001-attention");
}

/// How far the rows of X·Xᵀ, taken one dot product at a time, are from the scores.
double loops_against_product(const Moment& m) {
  const arma::mat &q = head_now(m).queries, &k = head_now(m).keys;
  arma::mat loops(q.n_rows, k.n_rows);
  for (std::size_t i = 0; i < q.n_rows; ++i)
    for (std::size_t j = 0; j < k.n_rows; ++j) loops(i, j) = arma::dot(q.row(i), k.row(j));
  return largest_difference(loops, head_now(m).scores);
}

constexpr Step dot_products_table[] = {
    {"One query asks",
     "Take journey as the query: multiply its numbers by those of a word, feature by feature, and add up. "
     "The larger this dot product, the more the two point the same way; no learned matrix is in it yet.",
     {"strip/scores", "edit/tab/X"},
     {"query", "dot product", "score"},
     "set the first number of one (row 4 of X) to 3.",
     ModelTask{dot_products,
               [](const Moment& m) {
                 return largest_in_row(head_before(m).scores, 1) != 4 && m.model.n_tokens() == 6 &&
                        largest_in_row(head_now(m).scores, 1) == 4;
               },
               [](const Moment& m) {
                 return token(m, 1) + " · " + token(m, 4) + " is " + number(cell(head_now(m).scores, 1, 4)) +
                        " now, more than " + token(m, 1) + " · itself with " +
                        number(cell(head_now(m).scores, 1, 1)) + ".";
               }},
     Exhibit::single_query},
    {"Two loops, one product",
     "A loop over queries and, inside it, one over keys gives all 36 dot products. The product X·Xᵀ gives "
     "the same 36 at once, and much faster.",
     {"strip/scores", "edit/tab/X"},
     {"score", "transpose"},
     "change any number of X and see whether the two ever part.",
     ModelTask{
         dot_products,
         [](const Moment& m) { return changed(m, &HeadTrace::scores) && loops_against_product(m) < 1e-9; },
         [](const Moment& m) {
           const double apart = loops_against_product(m);
           return apart == 0
                      ? std::string("They are the same, to the last bit.")
                      : "They differ by at most " + number(apart) + ": rounding, for sums in another order.";
         }},
     Exhibit::double_loop},
    {"A softmax for each row",
     "dim=-1 is the last dimension, the keys: each row becomes shares of 1. Taken along the queries the "
     "columns would sum to 1 instead, and a word's shares would mean nothing.",
     {"strip/weights", "model/causal"},
     {"softmax", "row", "weight"},
     "press C: fewer keys to share with, and every row still sums to 1.",
     ModelTask{dot_products, [](const Moment& m) { return m.model.mask.causal && !m.start.mask.causal; },
               [](const Moment& m) {
                 const arma::vec rows = arma::sum(*head_now(m).weights, 1);
                 const arma::vec columns = arma::vec(arma::sum(*head_now(m).weights, 0).t());
                 return "Row sums run from " + number(rows.min()) + " to " + number(rows.max()) +
                        ", column sums from " + number(columns.min()) + " to " + number(columns.max()) + ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Contexts",
     "The context of a word is the mean of all values, each counted as much as the row of weights says. "
     "Similar words get similar contexts: compare journey and starts.",
     {"strip/contexts", "model/scale"},
     {"context", "value", "weight"},
     "set the scale to a factor and type 0, so that no score is larger than another.",
     ModelTask{dot_products,
               [](const Moment& m) {
                 const arma::mat& c = head_now(m).contexts;
                 return m.model.scale.rule == ScaleRule::factor &&
                        agree(c, arma::repmat(arma::mean(c, 0), c.n_rows, 1));
               },
               [](const Moment& m) {
                 return "Every weight is " + number(cell(head_now(m).weights, 1, 0)) +
                        " and every context is the plain mean of the " +
                        number(static_cast<double>(m.model.n_tokens())) +
                        " words: " + list(head_now(m).contexts->tail_rows(1).t()) + ".";
               }}},
    {"Learned projections",
     "The class attention puts a learned matrix with a bias before each part and divides by √embed, here "
     "√256 = 16. The notebook sets no seed, so its own print cannot be had again; these are PyTorch's "
     "numbers at seed 42.",
     {"strip/queries", "model/bias_q", "model/scale"},
     {"projection", "bias", "scale"},
     "switch off the bias of the queries.",
     ModelTask{attention_class,
               [](const Moment& m) {
                 return m.start.projections->query.bias && m.model.projections &&
                        !m.model.projections->query.bias;
               },
               [](const Moment& m) {
                 return "Every query moved by the same row, which held numbers up to " +
                        number(largest_difference(head_before(m).queries, head_now(m).queries)) +
                        "; the weights moved by at most " + number(moved_weights(m)) + ".";
               }}},
    {"Eight sequences side by side",
     "A batch of 8 × 4 × 256: eight sequences of four tokens with 256 numbers. All go through the same "
     "matrices, and none sees another.",
     {"model/sequence_on", "edit/tab/X"},
     {"batch", "sequence", "d_model"},
     "go to another sequence under MODEL and change a number of its X.",
     ModelTask{attention_class,
               [](const Moment& m) {
                 return changed_sequences(m) == 1 && m.model.sequences.size() == m.start.sequences.size();
               },
               [](const Moment& m) {
                 std::size_t which = 0;
                 while (!sequence_changed(m, which)) ++which;
                 return "Sequence " + std::to_string(which) + " changed; the other " +
                        std::to_string(m.model.sequences.size() - 1) + " and all that comes of them did not.";
               }}},
};

}  // namespace

std::span<const Step> dot_products_steps() {
  return dot_products_table;
}

}  // namespace core::lessons
