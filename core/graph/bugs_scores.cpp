#include <cmath>
#include <set>

#include "core/graph/bugs.hpp"

/// Bugs of the scores: their products, scale, softcap, biases and mask.
namespace core::bugs {
namespace {

using graph::OperationInputs;
using std::to_string;

// The scale.

double scale_of(const Editing& e) {
  const auto* scale = e.get<graph::ScaleScores>(Stage::scaled_scores);
  return scale ? scale->factor : 0;
}

std::string scale_words(const Editing& e, const BugCase& c) {
  const double s = c.numbers[0], own = scale_of(e);
  const std::string ours = e.words.number(own, false), of = e.words.number(s, false),
                    ratio = e.words.number(s / own, false);
  if (std::abs(s - 1) < 1e-9) return "the scale is missing (the model has " + ours + ")";
  if (std::abs(s / own - own) < 1e-9 * own)
    return "the scale is applied twice: " + of + " instead of " + ours;
  if (std::abs(s * own - 1) < 1e-9) return "scores are divided by the scale: × " + of + " instead of " + ours;
  if (ratio.find("ln 2") != ratio.npos)
    return "the softmax counts to the base 2 (2^x without log₂ e): scores × ln 2";
  return "the scale is " + of + " instead of " + ours + ": × " + ratio;
}

int rank_of_scale(const BugContext& context, const BugCase& c) {
  const double s = c.numbers[0], own = scale_of(context.now);
  const auto& words = context.now.words;
  if (std::abs(s - 1) < 1e-9 || std::abs(s / own - own) < 1e-9 ||
      std::abs(s / own - std::log(2.0)) < words.tolerance())
    return 0;
  return std::min(words.rank_of_factor(s), words.rank_of_factor(s / own));
}

void set_scale(Editing& e, const BugCase& c, ProjectionName) {
  e.change<graph::ScaleScores>(Stage::scaled_scores,
                               [&](graph::ScaleScores& scale) { scale.factor = c.numbers[0]; });
}

void try_scales(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  const double own = scale_of(c.now), d = static_cast<double>(m.d_head()),
               D = static_cast<double>(m.d_model()), H = static_cast<double>(m.n_heads),
               G = static_cast<double>(m.kv_heads()), S = static_cast<double>(m.n_keys());
  if (own == 0) return;
  std::set<double> seen{own, 0};
  for (const double s : {1.0,
                         own * own,
                         1 / own,
                         std::pow(d, -0.5),
                         std::pow(D, -0.5),
                         std::pow(H * d, -0.5),
                         1 / d,
                         1 / D,
                         std::sqrt(d),
                         std::pow(d, -0.25),
                         own * std::log(2.0),
                         own / std::log(2.0),
                         own * 2,
                         own / 2,
                         own / std::sqrt(d),
                         own / std::sqrt(D),
                         std::pow(d / G, -0.5),
                         std::pow(G, -0.5),
                         std::pow(H, -0.5),
                         std::pow(S, -0.5),
                         std::sqrt(std::abs(own)),
                         -own,
                         std::pow(2 * d, -0.5),
                         std::pow(d / 2, -0.5),
                         std::pow(D / H, -0.5),
                         std::pow(D / G, -0.5)})
    if (std::isfinite(s) && std::abs(s - own) > 1e-12 && seen.insert(s).second) to.add({s});
}
void fit_scale(const BugContext& c, BugCases& to) {
  const double own = scale_of(c.now);
  for (const double f : {1.1, 0.6, 0.3, 0.1, 0.03, 2.0, 4.0, 10.0, -1.0})
    if (own != 0) to.fit({own * f});
}

// The mask.

template <int left, int right>
void set_window(Editing& e, const BugCase& c, ProjectionName) {
  const auto side = [&](int which) {
    const double width = which < 0 ? -1 : c.numbers[static_cast<std::size_t>(which)];
    return width < 0 ? std::optional<std::size_t>() : static_cast<std::size_t>(width);
  };
  e.change_mask([&](attention::Mask& mask) { mask.window = {side(left), side(right)}; });
}

std::string added_window_words(const Editing&, const BugCase& c) {
  return "a sliding window of " + graph::digits(c.numbers[0]) +
         " to the left is applied, which the model does not have";
}

void try_added_windows(const BugContext& c, BugCases& to) {
  const attention::Mask& mask = c.model().mask;
  if (mask.window.left || mask.window.right) return;
  const long n_keys = static_cast<long>(c.model().n_keys());
  std::set<long> widths;
  for (long w = 0; w < std::min(n_keys, 32L); ++w) widths.insert(w);
  for (int k = 5; k < 14; ++k)
    for (const long less : {0, 1})
      if ((1L << k) - less < n_keys) widths.insert((1L << k) - less);
  if (!c.differing_rows.empty())
    for (const long w : {static_cast<long>(c.differing_rows[0]) - 1, static_cast<long>(c.differing_rows[0])})
      if (w >= 0) widths.insert(w);
  for (const long w : widths) to.add({static_cast<double>(w)});
}

void try_if_causal(const BugContext& c, BugCases& to) {
  if (c.model().mask.causal) to.add();
}

constexpr std::array score_rows{
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
    Bug{.name = "scale",
        .edit = set_scale,
        .words = scale_words,
        .cases = try_scales,
        .rank_of = rank_of_scale},
    Bug{.name = "scale_value",
        .edit = set_scale,
        .words = scale_words,
        .cases = fit_scale,
        .rank_of = rank_of_scale},
    Bug{.name = "mask:causal_missing",
        .edit = [](Editing& e, const BugCase&,
                   ProjectionName) { e.change_mask([](attention::Mask& mask) { mask.causal = false; }); },
        .words = [](const Editing&, const BugCase&) { return std::string("the causal mask is missing"); },
        .cases = try_if_causal},
    Bug{.name = "mask:window_added",
        .edit = set_window<0, -1>,
        .words = added_window_words,
        .cases = try_added_windows},
};

}  // namespace

std::span<const Bug> score_bugs() {
  return score_rows;
}

}  // namespace core::bugs
