#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::HeadTrace;
using attention::Model;

Model causal_class() {
  return preset("003-causal-class");
}

Model masked_scores() {
  return preset("003-masked-scores");
}

constexpr Step causal_class_table[] = {
    {"Words to know",
     "The words on the right are the notebook's own glossary; hover one wherever a lesson uses it. Its six "
     "words have no names, only numbers drawn at seed 123.",
     {"strip/embeddings", "edit/token/0"},
     {"token", "embedding", "query", "key", "value", "dot product", "softmax", "mask", "dropout"},
     "give a token a name: double click its 0 … 5 in EDIT and type a word.",
     ModelTask{causal_class,
               [](const Moment& m) {
                 return m.model.sequences.front().tokens != m.start.sequences.front().tokens &&
                        moved_weights(m) == 0;
               },
               [](const Moment& m) {
                 return std::string("A name changes no number: the weights moved by ") +
                        number(moved_weights(m)) + ".";
               }}},
    {"One class, two equal sequences",
     "CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) is tried on a batch that holds the "
     "same six words twice. What is equal going in must be equal coming out.",
     {"model/sequence_on", "model/context", "edit/tab/X"},
     {"batch", "sequence", "context length"},
     "change a number of X in one of the two.",
     ModelTask{causal_class,
               [](const Moment& m) {
                 return changed_sequences(m) == 1 && m.model.sequences.size() == m.start.sequences.size();
               },
               [](const Moment& m) {
                 const bool first = sequence_changed(m, 0);
                 return std::string("Now the two part: sequence ") + (first ? "0" : "1") +
                        " changed, sequence " + (first ? "1" : "0") + " is as it was.";
               }}},
    {"Three features in, two out",
     "d_in is 3, d_out is 2: the projections are 3 × 2, so queries, keys, values and contexts have two "
     "columns. The weights stay 6 × 6, whatever d_out is.",
     {"model/d_out", "strip/values", "strip/output"},
     {"projection", "d_model", "d_head"},
     "set d_out to 4; the new columns are zeros until you fill them.",
     ModelTask{causal_class, [](const Moment& m) { return m.model.d_out() != m.start.d_out(); },
               [](const Moment& m) {
                 return "The output is " + std::to_string(m.trace.output.n_rows()) + " × " +
                        std::to_string(m.trace.output.n_cols()) +
                        " now. √d_head grew too, and with it the weights moved by " +
                        number(moved_weights(m)) + ".";
               }}},
    {"Masked scores",
     "A 5 × 5 matrix of scores from randn at seed 123, with −∞ above the diagonal. Here W_q holds the "
     "scores themselves: the tokens and the keys are one-hot.",
     {"strip/masked_scores", "strip/weights", "edit/tab/W_q"},
     {"score", "mask", "−∞"},
     "in W_q set row 0, column 4 to 100, the largest score by far.",
     ModelTask{masked_scores,
               [](const Moment& m) {
                 return changed(m, &HeadTrace::scores) && head_now(m).scores->max() >= 50 &&
                        moved_weights(m) == 0;
               },
               [](const Moment& m) {
                 return "A score of " + number(head_now(m).scores->max()) +
                        ", and no weight moved: what is hidden does not count.";
               }}},
    {"Masked weights and their sums",
     "After the softmax the hidden cells are 0 and each row sums to 1. Were the cells set to 0 only "
     "afterwards, their share would be missing.",
     {"strip/weights", "model/method"},
     {"softmax", "weight", "row"},
     "set the mask to “softmax, then 0”.",
     ModelTask{masked_scores,
               [](const Moment& m) {
                 return m.model.mask.method == attention::MaskMethod::zero_after_softmax &&
                        arma::sum(*head_now(m).weights, 1).eval().min() < 0.999;
               },
               [](const Moment& m) {
                 return "The rows summed to 1; now to " +
                        list(arma::vec(arma::sum(*head_now(m).weights, 1))) + ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Dropout on ten ones",
     "Ten ones under dropout at p = 0.5: about half become 0 and the others 2, so that the sum stays near "
     "ten. Here they are ten heads of one token each; the output is the ten numbers.",
     {"strip/output", "model/seed", "model/dropout"},
     {"dropout", "survivor", "seed"},
     "try another seed.",
     ModelTask{[] { return preset("003-dropout"); },
               [](const Moment& m) {
                 return m.model.dropout.seed != m.start.dropout.seed && m.model.dropout.active();
               },
               [](const Moment& m) {
                 return number(arma::accu(*m.trace.output != 0)) + " of ten survive at seed " +
                        std::to_string(m.model.dropout.seed) + ", and their sum is " +
                        number(arma::accu(*m.trace.output)) + "; at seed " +
                        std::to_string(m.start.dropout.seed) + " it was " +
                        number(arma::accu(*m.before.output)) + ".";
               }}},
};

}  // namespace

std::span<const Step> causal_class_steps() {
  return causal_class_table;
}

}  // namespace core::lessons
