#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::MaskMethod;
using attention::Model;
using attention::Trace;

Model renormalised() {
  return preset("004-renormalise");
}

Model zeroed() {
  Model m = renormalised();
  m.mask.method = MaskMethod::zero_after_softmax;
  return m;
}

arma::vec row_sums(const arma::mat& weights) {
  return arma::vec(arma::sum(weights, 1));
}

double moved_but_last(const arma::mat& before, const arma::mat& now) {
  return row_differences(before, now).head(before.n_rows - 1).max();
}

constexpr Step two_masks_table[] = {
    {"Attention without a mask",
     "Your journey starts with one step, three features to two, drawn at seed 123. Nothing is hidden: the "
     "first word listens to words that it cannot know yet.",
     {"strip/weights", "model/causal"},
     {"weight", "causal"},
     "press C.",
     ModelTask{[] { return preset("004-self-attention"); },
               [](const Moment& m) { return m.model.mask.causal && !m.start.mask.causal; },
               [](const Moment& m) {
                 return "Above the diagonal the weights were up to " +
                        number(largest_above_diagonal(head_before(m).weights)) + "; now they are " +
                        number(largest_above_diagonal(head_now(m).weights)) + ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Times the triangle",
     "The first way: compute the weights of all words, then multiply by a triangle of ones and zeros. What "
     "is left of a row no longer sums to 1.",
     {"strip/unmasked_weights", "strip/weights", "model/method"},
     {"mask", "row", "renormalise"},
     "set the mask to “softmax, 0, renormalise”.",
     ModelTask{zeroed, [](const Moment& m) { return m.model.mask.method == MaskMethod::renormalise; },
               [](const Moment& m) {
                 return "The rows summed to " + list(row_sums(head_before(m).weights)) +
                        "; each was divided by its sum and is 1.";
               }}},
    {"Two ways, one result",
     "The second way: write −∞ over the hidden scores, then one softmax. A row of the first way divides "
     "exp(s) by all exponentials and then by the visible share; all but the visible exponentials cancel.",
     {"model/method", "strip/weights"},
     {"−∞", "softmax", "renormalise"},
     "set the mask to “−∞ before softmax”.",
     ModelTask{renormalised,
               [](const Moment& m) {
                 return m.model.mask.method == MaskMethod::negative_infinity &&
                        agree(head_before(m).weights, head_now(m).weights);
               },
               [](const Moment& m) {
                 return "The weights differ by at most " + number(moved_weights(m)) + ", which is rounding.";
               }},
     Exhibit::mask_methods},
    {"Nothing leaks",
     "The first softmax sees hidden scores, so one may fear that they leak into the result. They change the "
     "zeroed weights, but each of a row by one factor, and dividing by the sum takes that factor out again.",
     {"strip/unmasked_weights", "strip/weights", "edit/tab/X"},
     {"renormalise", "causal"},
     "change a number of step, the last row of X.",
     ModelTask{renormalised,
               [](const Moment& m) {
                 return only_last_token_changed(m) && !head_now(m).unmasked_weights->empty() &&
                        moved_but_last(head_before(m).unmasked_weights, head_now(m).unmasked_weights) > 0 &&
                        moved_but_last(head_before(m).weights, head_now(m).weights) < 1e-12;
               },
               [](const Moment& m) {
                 return "In rows 0 to 4 the first softmax moved by up to " +
                        number(
                            moved_but_last(head_before(m).unmasked_weights, head_now(m).unmasked_weights)) +
                        ", the weights by at most " +
                        number(moved_but_last(head_before(m).weights, head_now(m).weights)) + ".";
               }},
     Exhibit::mask_methods},
    {"Where they part",
     "Scores [[0, 1000], [0, 0]]: the first query may see a score of 0, but a hidden one is 1000. The first "
     "softmax leaves exp(−1000) for the visible cell, which is 0 in float64, and then divides 0 by 0.",
     {"strip/unmasked_weights", "strip/row_sums", "strip/weights", "model/method"},
     {"renormalise", "−∞"},
     "set the mask to “−∞ before softmax”.",
     ModelTask{[] { return hidden_score(1000); },
               [](const Moment& m) {
                 return !head_before(m).weights->is_finite() && head_now(m).weights->is_finite();
               },
               [](const Moment& m) {
                 return "Row 0 was NaN; it is " + list(head_now(m).weights.row(0).t()) + ", as it should be.";
               }},
     Exhibit::mask_methods},
    {"How far is too far",
     "The smallest number above 0 in float64 is about exp(−744.4). A hidden score of 700 above the visible "
     "ones leaves a tiny weight that dividing by the sum makes whole again.",
     {"strip/zeroed_weights", "strip/weights", "edit/tab/W_q"},
     {"softmax", "renormalise"},
     "in W_q set row 0, column 1 to 746.",
     ModelTask{[] { return hidden_score(700); },
               [](const Moment& m) {
                 return head_before(m).weights->is_finite() && !head_now(m).weights->is_finite();
               },
               [](const Moment& m) {
                 return "At " + number(cell(head_before(m).scores, 0, 1)) + " a weight of " +
                        number(cell(head_before(m).zeroed_weights, 0, 0)) + " was left; at " +
                        number(cell(head_now(m).scores, 0, 1)) + " it is 0, and row 0 is 0/0.";
               }},
     Exhibit::mask_methods},
};

}  // namespace

std::span<const Step> two_masks_steps() {
  return two_masks_table;
}

}  // namespace core::lessons
