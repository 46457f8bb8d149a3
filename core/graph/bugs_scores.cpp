#include <cmath>

#include "core/graph/bugs.hpp"

/// Bugs of the scores: their products, scale, softcap, biases and mask.
namespace core::bugs {
namespace {

using graph::OperationInputs;

constexpr std::array rows{
    Bug{.name = "scores_from:transposed",
        .edit =
            [](Editing& e, const BugCase&, ProjectionName) {
              e.wrap(
                  Stage::scores, [](const OperationInputs& in) { return in.selected(in[0].t()); }, {}, "::");
            },
        .words = [](const Editing&,
                    const BugCase&) { return std::string("the scores are transposed (keys · queries)"); },
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (c.model().n_tokens() == c.model().n_keys()) to.add();
            }},
};

}  // namespace

std::span<const Bug> score_bugs() {
  return rows;
}

}  // namespace core::bugs
