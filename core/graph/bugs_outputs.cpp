#include <algorithm>
#include <cmath>

#include "core/graph/bugs.hpp"

/// Bugs of the softmax, of dropout and of what follows.
namespace core::bugs {
namespace {

using graph::digits;
using graph::OperationInputs;

/// Dropout read off weights: the share of those that are zero, and the factor of the others.
void read_off_dropout(const BugContext& c, BugCases& to) {
  const Stage stage = c.target;
  const auto* given = c.observed(stage);
  if ((stage != Stage::weights && stage != Stage::dropped_weights) || !given || c.is_large) return;
  const std::size_t n_heads = c.model().n_heads;
  if (given->size() != c.model().sequences.size() * n_heads) return;
  Numbers ratios;
  double n_gone = 0, n_seen = 0;
  for (std::size_t k = 0; k < given->size(); ++k) {
    const arma::mat &ours = c.stages.matrix(stage, k / n_heads, k % n_heads), &theirs = (*given)[k];
    if (arma::size(ours) != arma::size(theirs)) return;
    for (std::size_t at = 0; at < ours.n_elem; ++at) {
      if (!std::isfinite(ours[at]) || std::abs(ours[at]) <= 1e-6) continue;
      ++n_seen;
      if (theirs[at] == 0)
        ++n_gone;
      else
        ratios.push_back(theirs[at] / ours[at]);
    }
  }
  if (n_gone == 0 || ratios.empty()) return;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  const double factor = *middle, share = n_gone / n_seen;
  const auto is_other = [&](double ratio) { return !(std::abs(ratio / factor - 1) < c.estimate_tolerance); };
  if (share >= 0.97 || std::abs(factor - 1) < 1e-6 || std::ranges::any_of(ratios, is_other)) return;
  to.add({factor, share}, attention::info(stage).name);
  to.all.back().observed = std::make_shared<const std::vector<SharedMatrix>>(*given);
}

constexpr std::array output_rows{
    Bug{.name = "dropout_active",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              const Stage stage =
                  c.form == attention::info(Stage::weights).name ? Stage::weights : Stage::dropped_weights;
              e.wrap(stage, [factor = c.numbers[0], observed = c.observed](const OperationInputs& in) {
                const arma::mat& theirs = (*observed)[in.sequence * in.model.n_heads + in.head];
                arma::mat w = in[0] * factor;
                for (std::size_t j = 0; j < w.n_cols; ++j)
                  for (std::size_t a = 0; a < w.n_rows; ++a)
                    if (theirs(in.row(a), j) == 0) w(a, j) = 0;
                return w;
              });
            },
        .words =
            [](const Editing&, const BugCase& c) {
              const double f = c.numbers[0];
              return "dropout is active with p = " + digits(1 - 1 / f, 4) + " (" +
                     digits(std::round(100 * c.numbers[1])) + " % of the weights dropped, the others × " +
                     digits(f) + " = 1/(1 − p))";
            },
        .cases = read_off_dropout,
        .rank = 1},
};

}  // namespace

std::span<const Bug> output_bugs() {
  return output_rows;
}

}  // namespace core::bugs
