#include "core/lessons/changes.hpp"
#include "core/lessons/exhibits.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::Model;
using attention::Trace;

std::string count(std::size_t n) {
  return std::to_string(n);
}

Model multi_head() {
  return preset("001-multi-head");
}

/// How many rows move that see nothing of the last token.
std::size_t leaking_rows(const arma::vec& moved) {
  return arma::accu(moved.head(moved.n_elem - 1) > 1e-12);
}

constexpr Step multi_head_table[] = {
    {"Pairs to learn from",
     "A model that is to guess the next word learns from every beginning of a sentence: five words make "
     "four pairs. Row i of the mask shows what may be read when word i + 1 is guessed.",
     {"strip/mask", "edit/token/0"},
     {"token", "mask", "causal"},
     "choose “Type a sentence…” in the Edit menu and type your own.",
     ModelTask{school,
               [](const Moment& m) {
                 return m.model.sequences.front().tokens != m.start.sequences.front().tokens &&
                        m.model.n_tokens() > 1;
               },
               [](const Moment& m) {
                 const std::size_t n = m.model.n_tokens();
                 return count(n) + " tokens make " + count(n - 1) + (n == 2 ? " pair" : " pairs") +
                        "; the last one asks for " + token(m, n - 1) + " after " + count(n - 1) +
                        (n == 2 ? " token." : " tokens.");
               }},
     Exhibit::next_token},
    {"Why the mask is needed",
     "Without a mask the row that guesses a word would read the very word that it is to guess, and learn "
     "nothing. An encoder, which guesses nothing, lets every word see all; a decoder never looks ahead.",
     {"model/causal", "strip/weights"},
     {"mask", "causal"},
     "press C and be an encoder for a moment.",
     ModelTask{school, [](const Moment& m) { return !m.model.mask.causal && m.start.mask.causal; },
               [](const Moment& m) {
                 return token(m, 0) + " now takes " + number(1 - cell(head_now(m).weights, 0, 0)) +
                        " of its context from words that come later.";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Where decoders meet encoders",
     "In a translator the decoder's queries also meet keys and values of another sentence, the encoder's; "
     "that is cross-attention, and there it needs no mask. Here queries, keys and values come from one "
     "sequence: self-attention.",
     {"strip/queries", "strip/keys", "strip/values"},
     {"query", "key", "value"},
     "feed the keys alone from elsewhere: open W_k, press fill and choose zeros.",
     ModelTask{school,
               [](const Moment& m) {
                 return arma::abs(*head_now(m).keys).max() == 0 && arma::abs(*head_now(m).queries).max() > 0;
               },
               [](const Moment& m) {
                 const std::size_t last = m.model.n_tokens() - 1;
                 return "Keys that say nothing: every score is 0, and " + token(m, last) +
                        " gives each word " + number(cell(head_now(m).weights, last, 0)) + ".";
               }}},
    {"A mask made each time, or kept",
     "The class attention_mask makes its triangle anew at each call. The multi-head class keeps one as a "
     "buffer, as large as the longest sequence that it expects: its context_length. This program refuses a "
     "longer sequence and names both numbers.",
     {"model/context", "strip/mask"},
     {"mask", "context length"},
     "type 4 as the context, then try to add a token.",
     ModelTask{[] { return preset("001-attention-mask"); },
               [](const Moment& m) { return m.model.context_length.has_value() && !m.start.context_length; },
               [](const Moment& m) {
                 return "The sequence has " + count(m.model.n_tokens()) + " tokens and at most " +
                        count(*m.model.context_length) + " are taken.";
               }}},
    {"Several heads",
     "The columns of Q, K and V are cut into bands, one for each head, so that each head makes its own rows "
     "of weights. The number of heads must divide d_out; d_out need not be d_in.",
     {"model/heads", "view/heads", "strip/queries"},
     {"head", "d_head"},
     "set heads to 16.",
     ModelTask{multi_head, [](const Moment& m) { return m.model.n_heads > m.start.n_heads; },
               [](const Moment& m) {
                 return count(m.model.n_heads) + " heads of " + count(m.model.d_head()) +
                        " columns; it was " + count(m.start.n_heads) + " of " + count(m.start.d_head()) +
                        ", with the same number of learned numbers.";
               }}},
    {"The transpose that was forgotten",
     "Heads come out in the order head, token, column and must be turned to token, head, column before they "
     "are joined. The notebook reshapes at once: each row is then filled from whole heads, later tokens "
     "included. Change only the last token, and rows 0 to 2 move, which they must not.",
     {"model/merge", "strip/concatenated", "strip/output"},
     {"transpose", "concatenate", "causal"},
     "set merge to concatenate.",
     ModelTask{[] { return preset("001-multi-head-as-written"); },
               [](const Moment& m) {
                 return m.model.merge == attention::MergeRule::concatenate &&
                        leaking_rows(rows_moved_by_last_token(m.start)) > 0 &&
                        leaking_rows(rows_moved_by_last_token(m.model)) == 0;
               },
               [](const Moment& m) {
                 return "Rows that move with the last token but cannot see it: " +
                        count(leaking_rows(rows_moved_by_last_token(m.start))) + " as it was written, " +
                        count(leaking_rows(rows_moved_by_last_token(m.model))) + " now.";
               }},
     Exhibit::moved_rows},
    {"The output projection",
     "Side by side, the heads know nothing of each other. A last matrix, W_o, mixes what they found; in the "
     "notebook it always has a bias, even when Q, K and V have none.",
     {"model/output", "model/bias_o", "strip/output"},
     {"output projection", "bias"},
     "switch off the bias of the output.",
     ModelTask{multi_head,
               [](const Moment& m) {
                 return m.model.projections && m.model.projections->output &&
                        !m.model.projections->output->bias;
               },
               [](const Moment& m) {
                 return "Every row of the output moved by the same numbers, up to " +
                        number(largest_difference(m.before.output, m.trace.output)) +
                        "; nothing before it moved.";
               }}},
    {"Dropout on the way",
     "The class drops weights while it is trained: each with probability p, and what survives is divided by "
     "1 − p. The notebook's example has p = 0, so nothing is dropped.",
     {"model/dropout", "strip/dropped_weights"},
     {"dropout", "survivor", "training"},
     "set the dropout to 0.1.",
     ModelTask{multi_head,
               [](const Moment& m) { return m.model.dropout.active() && !m.start.dropout.active(); },
               [](const Moment& m) {
                 double dropped = 0, visible = 0;
                 for (const auto& head : m.trace.heads) {
                   dropped += arma::accu((*head.dropout_mask == 0) % (*m.trace.mask == 1));
                   visible += arma::accu(*m.trace.mask);
                 }
                 return number(dropped) + " of the " + number(visible) +
                        " visible weights of this sequence were dropped.";
               }}},
};

}  // namespace

std::span<const Step> multi_head_steps() {
  return multi_head_table;
}

}  // namespace core::lessons
