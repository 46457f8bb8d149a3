#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::Model;
using attention::ScaleRule;

Model wide(ScaleRule rule) {
  Model m = preset("002-full");
  m.scale.rule = rule;
  return m;
}

double spread(const arma::mat& scores) {
  return arma::stddev(arma::vectorise(scores));
}

double mean_entropy(const attention::HeadTrace& head) {
  return arma::mean(entropies(head.weights));
}

constexpr Step scaling_table[] = {
    {"Wide rows, wide scores",
     "Each score here adds up 65 products, and sums of many numbers spread wide: √65 ≈ 8 times as wide as "
     "one product. Dividing by √d_head brings them back, whatever the width.",
     {"strip/scores", "strip/scaled_scores", "model/scale"},
     {"score", "scale", "d_head"},
     "set the scale to 1/√d_head.",
     ModelTask{[] { return wide(ScaleRule::none); },
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::inverse_sqrt_d_head &&
                        spread(head_now(m).scaled_scores) < spread(head_before(m).scaled_scores);
               },
               [](const Moment& m) {
                 return "The standard deviation of the scores fell from " +
                        number(spread(head_before(m).scaled_scores)) + " to " +
                        number(spread(head_now(m).scaled_scores)) + ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Peaky or spread",
     "Entropy says how spread a row is: 0 bits when one key takes everything, log₂ n bits when n keys share "
     "alike. Large scores mean low entropy, and a softmax that hardly learns.",
     {"strip/weights", "model/scale"},
     {"entropy", "softmax"},
     "set the scale to none, then back and forth.",
     ModelTask{[] { return wide(ScaleRule::inverse_sqrt_d_head); },
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::none &&
                        mean_entropy(head_now(m)) < mean_entropy(head_before(m));
               },
               [](const Moment& m) {
                 return "The rows' mean entropy fell from " + number(mean_entropy(head_before(m))) + " to " +
                        number(mean_entropy(head_now(m))) + " bits.";
               }},
     Exhibit::entropy},
    {"The two ends",
     "With a factor of 0 all visible keys share alike; with a very large one the best key takes all. "
     "1/√d_head stands between, where small changes still matter.",
     {"model/scale", "strip/weights"},
     {"scale", "entropy"},
     "set the scale to a factor and type 0.",
     ModelTask{[] { return wide(ScaleRule::inverse_sqrt_d_head); },
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::factor &&
                        mean_entropy(head_now(m)) > mean_entropy(head_before(m)) &&
                        head_now(m).scaled_scores->is_zero();
               },
               [](const Moment& m) {
                 const arma::vec bits = entropies(head_now(m).weights);
                 return "The last row has " + number(bits[bits.n_elem - 1]) + " bits, as much as " +
                        number(static_cast<double>(bits.n_elem)) + " keys can have.";
               }},
     Exhibit::entropy},
    {"Which width?",
     "With several heads the width is that of one head: here √32, not the √256 of the whole embedding, "
     "which is a common mistake and makes the weights too even. One head is as wide as its key: √3 in "
     "notebook 000, √256 in 001's first class, √65 in 002, √2 in 003 and 004.",
     {"model/scale", "model/heads", "strip/scaled_scores"},
     {"d_head", "d_model", "head"},
     "set the scale to 1/√d_head.",
     ModelTask{[] {
                 Model m = preset("001-multi-head");
                 m.scale.rule = ScaleRule::inverse_sqrt_d_model;
                 return m;
               },
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::inverse_sqrt_d_head && moved_weights(m) > 0;
               },
               [](const Moment& m) {
                 return "√" + std::to_string(m.model.d_model()) + " divided " +
                        number(attention::scale_factor(m.model) / attention::scale_factor(m.start)) +
                        " times too much; the weights of the first head moved by up to " +
                        number(moved_weights(m)) + ".";
               }}},
    {"Mask first or scale first",
     "It does not matter: −∞ times a factor above 0 is −∞ again. Some code masks the raw scores and divides "
     "then, other code divides first; the weights are the same.",
     {"strip/scaled_scores", "strip/masked_scores", "model/scale"},
     {"mask", "scale", "−∞"},
     "set the scale to a factor and type 5: what is hidden stays hidden.",
     ModelTask{[] { return preset("004-causal"); },
               [](const Moment& m) {
                 return m.model.scale.rule == ScaleRule::factor &&
                        m.model.scale.factor > attention::scale_factor(m.start) &&
                        largest_above_diagonal(head_now(m).weights) == 0;
               },
               [](const Moment& m) {
                 return "The visible weights moved by up to " + number(moved_weights(m)) +
                        "; the hidden ones are all " + number(largest_above_diagonal(head_now(m).weights)) +
                        ".";
               }}},
};

}  // namespace

std::span<const Step> scaling_steps() {
  return scaling_table;
}

}  // namespace core::lessons
