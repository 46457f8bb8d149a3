#include "core/graph/dropout_study.hpp"
#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::DropoutStream;
using attention::Model;

Model dropped() {
  return preset("004-causal-dropout");
}

double dropped_visible(const Moment& m) {
  return arma::accu((*head_now(m).dropout_mask == 0) % (*m.trace.mask == 1));
}

arma::vec dropped_sums(const attention::HeadTrace& head) {
  return arma::vec(arma::sum(*head.dropped_weights, 1));
}

double lost_rows(const arma::vec& sums) {
  return static_cast<double>(arma::accu(sums == 0));
}

constexpr Step dropout_table[] = {
    {"Switch it on",
     "While a model is trained, dropout sets each weight to 0 with probability p, so that no path is relied "
     "on too much. It comes after the softmax and before the values.",
     {"model/dropout", "strip/dropout_mask", "strip/dropped_weights"},
     {"dropout", "training", "weight"},
     "set the dropout to 0.5.",
     ModelTask{[] { return preset("004-causal"); },
               [](const Moment& m) { return m.model.dropout.active() && !m.start.dropout.active(); },
               [](const Moment& m) {
                 return number(dropped_visible(m)) + " of the " + number(arma::accu(*m.trace.mask)) +
                        " visible weights were dropped; the others count " +
                        number(head_now(m).dropout_mask->max()) + " times.";
               }},
     Exhibit::none,
     attention::Stage::dropped_weights},
    {"Survivors grow",
     "What survives is divided by 1 − p: at p = 0.5 it is doubled. So the sum stays what it was on average, "
     "and nothing has to be corrected when dropout is switched off.",
     {"strip/dropout_mask", "model/dropout"},
     {"survivor", "dropout"},
     "set the dropout to 0.2.",
     ModelTask{dropped,
               [](const Moment& m) {
                 return m.model.dropout.active() && m.model.dropout.rate != m.start.dropout.rate;
               },
               [](const Moment& m) {
                 return "Survivors are now multiplied by " +
                        number(attention::survivor_factor(m.model.dropout)) + " instead of " +
                        number(attention::survivor_factor(m.start.dropout)) + ".";
               }}},
    {"Why does my row not sum to 1?",
     "Because dropout comes after the softmax. A row that loses little sums to more than 1, one that loses "
     "much to less, and a row can lose everything.",
     {"strip/weights", "strip/dropped_weights", "model/seed"},
     {"row", "dropout", "seed"},
     "press ↻ beside the generator and compare the row sums of the dropped weights.",
     ModelTask{dropped,
               [](const Moment& m) {
                 return m.model.dropout.seed != m.start.dropout.seed && m.model.dropout.active();
               },
               [](const Moment& m) {
                 return "Before, the rows summed to " + list(dropped_sums(head_before(m))) + "; now to " +
                        list(dropped_sums(head_now(m))) + ".";
               }}},
    {"On average nothing changes",
     "Draw many masks and take the mean: every cell comes back to its weight, the more masks the closer. "
     "The dropout laboratory in the View menu shows it cell by cell.",
     {"strip/dropped_weights", "model/seed"},
     {"survivor", "dropout"},
     "press ↻ a few times, until the seed is 126 or more.",
     ModelTask{dropped,
               [](const Moment& m) {
                 return m.model.dropout.active() && m.model.dropout.seed >= m.start.dropout.seed + 3;
               },
               [](const Moment& m) {
                 attention::DropoutStudy study(m.model, 0, 0, head_now(m).weights);
                 study.advance(1024);
                 return "Of one mask the largest distance from the weights is " +
                        number(study.distances().front()) + ", of the mean over 1024 masks " +
                        number(study.distances().back()) + ".";
               }}},
    {"Training and evaluation",
     "A PyTorch module starts in training mode, and dropout is active until evaluation is chosen. To "
     "compare numbers with someone else's, both must be in the same mode.",
     {"model/training", "strip/dropped_weights"},
     {"training", "evaluation"},
     "press D.",
     ModelTask{dropped, [](const Moment& m) { return !m.model.dropout.training && m.start.dropout.training; },
               [](const Moment& m) {
                 return "Nothing is dropped: the dropped weights differ from the weights by " +
                        number(largest_difference(head_now(m).weights, head_now(m).dropped_weights)) + ".";
               }}},
    {"The same seed, two masks",
     "PyTorch on Linux before 2.7 drew dropout with a generator of MKL; all others, and all since, with "
     "mt19937. The same seed gives two different masks: a common reason why a book's numbers are not yours.",
     {"model/stream", "strip/dropout_mask"},
     {"seed", "dropout"},
     "set the generator to mkl.",
     ModelTask{dropped,
               [](const Moment& m) {
                 return m.model.dropout.stream == DropoutStream::mkl && m.model.dropout.active() &&
                        m.model.n_tokens() == m.start.n_tokens();
               },
               [](const Moment& m) {
                 const arma::mat &a = head_before(m).dropout_mask, &b = head_now(m).dropout_mask;
                 return number(arma::accu(a != b)) + " of " + number(static_cast<double>(a.n_elem)) +
                        " cells of the mask differ.";
               }}},
    {"A row that loses everything",
     "In the chapter's example one row keeps no weight at all: its context is zero and the word takes "
     "nothing away. With few visible keys and a high rate that is not rare: at p = 0.5, row 1 loses both in "
     "one mask of four.",
     {"strip/dropped_weights", "strip/contexts", "model/dropout"},
     {"dropout", "context"},
     "lower the dropout until no row is lost.",
     ModelTask{[] { return preset("chapter-dropped-weights"); },
               [](const Moment& m) {
                 return m.model.dropout.active() && lost_rows(dropped_sums(head_before(m))) > 0 &&
                        lost_rows(dropped_sums(head_now(m))) == 0;
               },
               [](const Moment& m) {
                 return "At " + number(m.start.dropout.rate) + " one was lost, at " +
                        number(m.model.dropout.rate) + " the smallest row sum is " +
                        number(dropped_sums(head_now(m)).min()) + ".";
               }}},
};

}  // namespace

std::span<const Step> dropout_steps() {
  return dropout_table;
}

}  // namespace core::lessons
