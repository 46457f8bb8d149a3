#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::Model;

/// How far the weights of a head moved at most; infinity where it is no more.
double moved(const Moment& m, std::size_t head) {
  if (head >= m.trace.heads.size() || head >= m.before.heads.size()) return arma::datum::inf;
  return largest_difference(m.trace.heads[head].weights, m.before.heads[head].weights);
}

/// Numbers of keys and values that a cache keeps for a token.
std::size_t kept(const Model& m) {
  return m.n_groups() * (m.d_head() + m.d_value());
}

constexpr Step groups_table[] = {
    {"Heads that share",
     "Four heads ask, and two keys and values answer: heads 0 and 1 share the first, heads 2 and 3 the second. "
     "Only the queries are each head's own.",
     {"strip/keys", "strip/values", "strip/weights", "edit/numbers"},
     {"group", "head"},
     "change a number in the first four columns of W_k.",
     ModelTask{[] { return preset("modern-grouped"); },
               [](const Moment& m) {
                 return moved(m, 0) > 0 && moved(m, 1) > 0 && moved(m, 2) == 0 && moved(m, 3) == 0;
               },
               [](const Moment& m) {
                 return "The weights of head 0 moved by up to " + number(moved(m, 0)) +
                        " and those of head 1 by up to " + number(moved(m, 1)) +
                        "; heads 2 and 3 have keys of their own and stayed.";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Less to keep",
     "A model that writes keeps the keys and values of every token so far. The fewer there are, the longer the "
     "text that fits; the queries are not kept and cost nothing.",
     {"strip/keys", "strip/values"},
     {"group", "key", "value"},
     "let all heads share one key and value (MODEL, more…, groups).",
     ModelTask{[] { return preset("modern-grouped"); },
               [](const Moment& m) { return m.model.n_groups() < m.start.n_groups(); },
               [](const Moment& m) {
                 return "For each token " + std::to_string(kept(m.model)) + " numbers are kept instead of " +
                        std::to_string(kept(m.start)) + ".";
               }}},
    {"In the right order",
     "Head h asks group h ÷ 2, rounded down. Code that repeats the groups one after the other instead of each "
     "in its place lets head h ask group h mod 2: heads 1 and 2 change places, and nothing fails.",
     {"strip/keys", "strip/weights"},
     {"group"},
     "show the mistake of groups that are tiled (Edit, Show a mistake).",
     ModelTask{
         [] { return preset("modern-grouped"); },
         [](const Moment& m) {
           return m.model.departures.misplaced.groups_tiled && moved(m, 1) > 0 && moved(m, 0) == 0;
         },
         [](const Moment& m) {
           return "Heads 0 and 3 ask the same keys in both orders; the weights of head 1 moved by up to " +
                  number(moved(m, 1)) + ".";
         }}},
};

}  // namespace

std::span<const Step> groups_steps() {
  return groups_table;
}

}  // namespace core::lessons
