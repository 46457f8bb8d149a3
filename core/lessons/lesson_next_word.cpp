#include "core/base/words.hpp"
#include "core/lessons/measures.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/whole_changes.hpp"

namespace core::lessons {
namespace {

using experiment::Experiment;

/// A text with which the model is fairly sure, looked at in its first layer.
Experiment two_names() {
  return {.text = "Mr. Darcy and Miss"};
}

std::size_t n_layers(const WholeMoment& m) {
  return m.now.layers.size();
}

constexpr Step next_word_table[] = {
    {"A text in pieces",
     "This small model, trained on novels, reads tokens, not words: its tokenizer keeps “Miss” whole and cuts "
     "“Darcy” in three. Each piece has a number, and nothing but that number enters the model.",
     {"whole/prompt", "whole/token/0"},
     {"token", "tokenizer", "vocabulary"},
     "type one word more behind the text under PROMPT.",
     WholeTask{two_names, [](const WholeMoment& m) { return m.now.tokens.size() > m.before.tokens.size(); },
               [](const WholeMoment& m) {
                 return "There are " + text::counted(m.now.tokens.size(), "token") + " instead of " +
                        std::to_string(m.before.tokens.size()) + ", and the guess is now " +
                        quoted(m, last_guess(m, m.now)) + " instead of " +
                        quoted(m, last_guess(m, m.before)) + ".";
               }}},
    {"What comes next",
     "The last token's row ends as one logit for each token of the vocabulary; a softmax makes probabilities of "
     "them. To write, the model takes one, puts it behind the text, and reads all of it again.",
     {"next/probability", "whole/more"},
     {"logit", "probability", "softmax"},
     "let it write (“one token more” under PROMPT).",
     WholeTask{
         two_names,
         [](const WholeMoment& m) { return m.now.experiment.made.size() > m.before.experiment.made.size(); },
         [](const WholeMoment& m) {
           return "It wrote " + quoted(m, m.now.experiment.made.back()) + ", and would go on with " +
                  quoted(m, last_guess(m, m.now)) + ".";
         }}},
    {"When does it know?",
     "Every layer adds to the last token's row in the residual stream. Beside each layer stands what the model "
     "would say if it ended there. From which layer on does it no longer change its mind?",
     {"layers/layer/0", "layers/layer/1", "layers/layer/2", "layers/layer/3"},
     {"layer", "residual stream", "logit lens"},
     "click a head of the first layer from which on the guess stays.",
     WholeTask{[] {
                 Experiment e = two_names();
                 e.layer = 3;
                 return e;
               },
               [](const WholeMoment& m) { return m.layer == settled_from(m) && m.layer + 1 < n_layers(m); },
               [](const WholeMoment& m) {
                 const std::size_t last = last_guess(m, m.now);
                 std::string before = "nothing";
                 if (m.layer > 0) before = quoted(m, guess_behind(m, m.now, m.layer - 1));
                 return "Behind layer " + std::to_string(m.layer) + " it is " + quoted(m, last) +
                        "; one layer earlier it was " + before + ".";
               }}},
    {"Without one head",
     "The bar under a head is what it adds to the guessed token's logit directly. Heads also work through what "
     "later layers make of them, so a head with a short bar may matter all the same. Switching it off shows "
     "both.",
     {"region/layers"},
     {"head", "logit"},
     "click a head that you expect to matter, and switch it off (X).",
     WholeTask{two_names, [](const WholeMoment& m) { return !m.now.experiment.heads_off.empty(); },
               [](const WholeMoment& m) {
                 return "Without " + text::counted(m.now.experiment.heads_off.size(), "head") + " " +
                        followed_words(m) + ".";
               }}},
    {"Any number",
     "A layer is the attention of all other lessons: queries, keys, weights, contexts. What is changed there – a "
     "weight typed over, a number of a projection, the mask – flows through all layers behind it.",
     {"tabs/Stages", "next/probability"},
     {"query", "key", "weight", "mask"},
     "open the layer in Stages, switch the causal mask off, and come back to Layers.",
     WholeTask{two_names, [](const WholeMoment& m) { return !m.now.experiment.layers.empty(); },
               [](const WholeMoment& m) {
                 return "With layer " + std::to_string(m.now.experiment.layers.begin()->first) + " changed " +
                        followed_words(m) + ".";
               }}},
};

}  // namespace

std::span<const Step> next_word_steps() {
  return next_word_table;
}

}  // namespace core::lessons
