#include "app/session/decoding.hpp"

#include <algorithm>

namespace app {

std::string why_not_decoded(const core::attention::Model& model) {
  const core::attention::Mask& mask = model.mask;
  const bool sees_later =
      !mask.causal || mask.prefix > 0 || std::ranges::any_of(mask.cells, [](const auto& cell) {
        return cell.visible && cell.column > cell.row;
      });
  if (model.has_memory()) return "its keys are of tokens of their own already";
  if (mask.method != core::attention::MaskMethod::negative_infinity)
    return "the softmax goes over later keys as well, before they are hidden";
  if (sees_later) return "queries see later keys: rows would change with every new token";
  if (model.departures != core::attention::Departures()) return "the model makes a mistake";
  if (model.merge != core::attention::MergeRule::concatenate) return "the heads are not joined row by row";
  if (!model.given.empty()) return "some of its numbers are given";
  if (model.dropout.training && (model.dropout.rate > 0 || !model.dropout.given.empty()))
    return "dropout is on";
  return "";
}

void step_decoding(View& view, std::size_t n_tokens, int by) {
  auto& decoded = view.look.positions.decoded;
  if (!decoded)
    decoded = 0;
  else if (by > 0)
    decoded = std::min(*decoded + 1, n_tokens - 1);
  else if (*decoded > 0)
    --*decoded;
  view.look.tab = Tab::stages;
  view.look.large.reset();
}

}  // namespace app
