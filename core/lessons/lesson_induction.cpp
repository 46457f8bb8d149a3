#include "core/base/words.hpp"
#include "core/lessons/measures.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/whole_changes.hpp"

namespace core::lessons {
namespace {

using experiment::Experiment;
using experiment::Place;

/// Words that hardly follow one another in novels, and the beginning of what came behind them the first time.
Experiment again() {
  return {.text = "egg jam fig and egg jam f"};
}

/// The share of the weights of a head that goes to what followed, now and on the text of the step's start.
std::string induction_words(const WholeMoment& m, const Place& head) {
  const auto share = [head](const experiment::Reading& reading) {
    return number(reading.layers[head.first]->heads[head.second].roles.induction.value_or(0));
  };
  return share(m.now) + " instead of " + share(m.before);
}

/// The head that looked most at what followed.
Place strongest(const WholeMoment& m) {
  Place best{0, 0};
  double most = -1;
  for (std::size_t l = 0; l < m.before.layers.size(); ++l)
    for (std::size_t h = 0; h < m.before.layers[l]->heads.size(); ++h)
      if (const double share = m.before.layers[l]->heads[h].roles.induction.value_or(0); share > most)
        most = share, best = {l, h};
  return best;
}

constexpr Step induction_table[] = {
    {"Something comes again",
     "“egg jam fig” is nothing that the novels taught this model. Yet once it was read, the second “egg jam f” "
     "makes it all but sure of what follows. It has looked it up in the text itself.",
     {"whole/prompt", "next/probability"},
     {"token", "probability"},
     "write “ham” in the place of the first “fig”.",
     WholeTask{again,
               [](const WholeMoment& m) {
                 const Followed token = followed(m);
                 return m.now.tokens.size() + 1 >= m.before.tokens.size() && token.now < 0.5 * token.before;
               },
               [](const WholeMoment& m) {
                 return "Now " + followed_words(m) + ": there is nothing to look up any more.";
               }}},
    {"Which head looks it up?",
     "One row of a map is one query: bright cells are what it looks at. A head that looks things up has bright "
     "cells in the second half of the text, as many tokens back as the words lie apart, less one. Several heads "
     "of one layer do.",
     {"region/layers"},
     {"head", "induction head", "weight"},
     "click the map of a head with such a line of bright cells.",
     WholeTask{again,
               [](const WholeMoment& m) {
                 return was_induction(m, {m.layer, m.head});
               },
               [](const WholeMoment& m) {
                 const auto& roles = m.now.layers[m.layer]->heads[m.head].roles;
                 return "Where a token had come before, head " + head_name({m.layer, m.head}) + " gives " +
                        number(roles.induction.value_or(0)) + " of its weight to what followed it there.";
               }}},
    {"Take it away",
     "Is it this head that the guess hangs on? Looking at it does not tell; without it one sees.",
     {"region/layers", "next/probability"},
     {"induction head", "probability"},
     "switch such a head off: click it and press X.",
     WholeTask{again, [](const WholeMoment& m) { return !off(m, was_induction).empty(); },
               [](const WholeMoment& m) {
                 return "Without head " + head_name(off(m, was_induction).front()) + " " + followed_words(m) +
                        ".";
               }}},
    {"One is not all",
     "Several heads do the same, and one stands in for the other. To see how much hangs on all of them "
     "together, switch off two.",
     {"region/layers", "next/probability"},
     {"induction head"},
     "switch heads off until the guess has less than half of its probability: 2.3 and one beside it.",
     WholeTask{again,
               [](const WholeMoment& m) {
                 const Followed token = followed(m);
                 return off(m, was_induction).size() > 1 && token.now < 0.5 * token.before;
               },
               [](const WholeMoment& m) {
                 return "Without " + text::joined(off(m, was_induction), ", ", head_name, " and ") + " " +
                        followed_words(m) + ".";
               }}},
    {"Who told it?",
     "“f” is to find the token behind the first “f”. That token's key must know what stood before it, and that "
     "is nothing a token knows by itself: a head of an earlier layer has to write it there.",
     {"layers/0.0", "layers/0.1", "layers/0.2", "layers/0.3"},
     {"previous-token head", "key", "residual stream"},
     "find the head of layer 0 that looks at the token just before, and switch it off.",
     WholeTask{again, [](const WholeMoment& m) { return !off(m, was_previous).empty(); },
               [](const WholeMoment& m) {
                 return "Without head " + head_name(off(m, was_previous).front()) + " head " +
                        head_name(strongest(m)) + " gives " + induction_words(m, strongest(m)) +
                        " to what followed, and " + followed_words(m) +
                        ". Two heads in two layers make one skill.";
               }}},
};

}  // namespace

std::span<const Step> induction_head_steps() {
  return induction_table;
}

}  // namespace core::lessons
