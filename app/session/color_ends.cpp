#include "app/session/color_ends.hpp"

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using core::attention::Coloring;
using core::attention::Model;
using core::attention::Stage;
using core::attention::StageInfo;

/// The extent of all numbers that set the range of one matrix.
Extent extent_in_force(RangeRule rule, const Model& model, const ExtentOf& extent, const StageInfo& stage,
                       std::size_t head) {
  Extent all;
  const auto add = [&](const Extent& e) {
    all.smallest = std::min(all.smallest, e.smallest);
    all.largest = std::max(all.largest, e.largest);
    if (e.least > 0) all.least = all.least > 0 ? std::min(all.least, e.least) : e.least;
  };
  for (const StageInfo& other : core::attention::stages()) {
    const bool counts =
        other.stage == stage.stage || (rule == RangeRule::all_heads && other.coloring == stage.coloring);
    if (!counts || !other.present(model)) continue;
    const bool one_head = !other.per_head || rule == RangeRule::matrix || rule == RangeRule::typed;
    const std::size_t first = one_head && other.per_head ? head : 0;
    for (std::size_t h = first; h < (one_head ? first + 1 : model.n_heads); ++h) add(extent(other.stage, h));
  }
  return all;
}

/// Where a logarithmic range begins: a power of ten not above the smallest number, four decades at most.
double least_of(const Ends& ends, double smallest) {
  constexpr double decades = 1e-4;
  if (ends.low > 0) return ends.low;
  if (ends.high < 0) return -ends.high;
  const double largest = std::max(-ends.low, ends.high);
  if (!(largest > 0)) return 0;
  const double least = std::max(smallest, largest * decades);
  return std::min(std::pow(10, std::floor(std::log10(least))), largest / 10);
}

/// The ends that follow the numbers or were typed.
Ends free_ends(const ColorChoice& chosen, const Model& model, const ExtentOf& extent, Stage stage,
               std::size_t head) {
  const StageInfo& row = core::attention::info(stage);
  const double top = core::attention::top_of_range(model, stage);
  if (row.coloring == Coloring::mask) return {0, top};
  const bool is_signed = row.coloring == Coloring::signed_values;
  const bool typed = chosen.range == RangeRule::typed;
  if (!is_signed && !chosen.logarithmic) return typed ? chosen.typed_weights : Ends{0, top};
  const Extent of = extent_in_force(chosen.range, model, extent, row, head);
  const double most = std::max(-of.smallest, of.largest);
  Ends ends = is_signed ? Ends{-most, most} : Ends{0, top};
  if (typed) ends = is_signed ? chosen.typed_values : chosen.typed_weights;
  if (chosen.logarithmic) ends.least = least_of(ends, of.least);
  return ends;
}

}  // namespace

Ends color_ends(const ColorChoice& chosen, const Model& model, const ExtentOf& extent, Stage stage,
                std::size_t head) {
  const std::size_t of = core::attention::info(stage).per_head ? head : 0;
  if (chosen.locked)
    if (const auto it = chosen.locked->find({stage, of}); it != chosen.locked->end()) return it->second;
  return free_ends(chosen, model, extent, stage, head);
}

core::figures::DisplayList colored_figure(const Model& model, const core::attention::Trace& trace,
                                          core::figures::FigureOptions options, const ColorChoice& chosen) {
  const auto extent = [&](Stage stage, std::size_t head) {
    return extent_of(core::attention::info(stage).matrix(trace, head));
  };
  options.sequential = chosen.sequential, options.diverging = chosen.diverging;
  options.range = [&](Stage stage, std::size_t head) -> core::figures::Range {
    const Ends ends = color_ends(chosen, model, extent, stage, head);
    return {ends.low, ends.high, ends.least};
  };
  return core::figures::figure(model, trace, options);
}

}  // namespace app
