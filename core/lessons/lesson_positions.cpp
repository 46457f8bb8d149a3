#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::Model;
using positions::Rotary;

const std::optional<Rotary>& rotary(const Model& m) {
  return m.additions.positions.rotary;
}

Model without_positions() {
  Model m = preset("modern-rotary");
  m.additions.positions.rotary.reset();
  return m;
}

/// Radians by which the slowest pair turns from one token to the next.
double slowest(const Model& m) {
  return positions::frequencies(*rotary(m), m.d_head()).back();
}

constexpr Step positions_table[] = {
    {"One word, eight times",
     "Eight times the same word: every query is the same, every key too, and so all scores are alike. "
     "Attention by itself does not know where anything stands.",
     {"strip/queries", "strip/keys", "strip/scores", "strip/weights"},
     {"query", "key", "rotary position"},
     "switch rotary positions on (MODEL, more…).",
     ModelTask{without_positions, [](const Moment& m) { return rotary(m.model) && moved_weights(m) > 0; },
               [](const Moment& m) {
                 const std::size_t last = weights(m).n_rows - 1;
                 return "The last row gave every key " + number(cell(weights_before(m), last, 0)) +
                        "; now it gives from " + number(weights(m).row(last).min()) + " to " +
                        number(weights(m).row(last).max()) + ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Only the distance counts",
     "Each pair of a query's numbers turns by its position times a frequency, and each pair of a key's "
     "likewise. A dot product sees the angle between the two alone: how far apart they stand, not where.",
     {"strip/rotated_queries", "strip/rotated_keys", "strip/scores"},
     {"rotary position", "dot product"},
     "set the first position to 100 (MODEL, more…).",
     ModelTask{[] { return preset("modern-rotary"); },
               [](const Moment& m) {
                 return rotary(m.model) && rotary(m.model)->first != rotary(m.start)->first &&
                        largest_difference(head_now(m).scores, head_before(m).scores) < 1e-9;
               },
               [](const Moment& m) {
                 return "The rotated keys moved by up to " +
                        number(largest_difference(head_now(m).prepared.rotated_keys,
                                                  head_before(m).prepared.rotated_keys)) +
                        ", and every score is what it was.";
               }}},
    {"Fast pairs and slow pairs",
     "The first pair turns by one radian a token and tells neighbours apart; the last turns slowly and tells "
     "far places apart. A larger base slows the later pairs: models for longer texts have one.",
     {"strip/rotated_queries", "strip/rotated_keys", "strip/weights"},
     {"rotary position"},
     "set the base to 10000 (MODEL, more…).",
     ModelTask{[] { return preset("modern-rotary"); },
               [](const Moment& m) {
                 return rotary(m.model) && rotary(m.model)->base > rotary(m.start)->base &&
                        moved_weights(m) > 0;
               },
               [](const Moment& m) {
                 return "The slowest pair turned by " + number(slowest(m.start)) +
                        " radians a token; now it turns by " + number(slowest(m.model)) + ".";
               }}},
    {"When the pairs are mixed up",
     "Columns p and p + d/2 may be a pair, or columns 2p and 2p + 1. Meta's own files of Llama have "
     "neighbours, the same model at Hugging Face halves. With the wrong ones nothing fails, and every weight "
     "is another.",
     {"strip/rotated_queries", "strip/weights"},
     {"rotary position"},
     "set the pairs to neighbours (MODEL, more…).",
     ModelTask{[] { return preset("modern-llama"); },
               [](const Moment& m) {
                 return rotary(m.model) && rotary(m.model)->pairs != rotary(m.start)->pairs &&
                        moved_weights(m) > 0;
               },
               [](const Moment& m) {
                 return "The weights of the first head moved by up to " + number(moved_weights(m)) +
                        ", and each row still sums to 1.";
               }}},
};

}  // namespace

std::span<const Step> positions_steps() {
  return positions_table;
}

}  // namespace core::lessons
