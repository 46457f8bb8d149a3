#include "app/session/touring.hpp"

#include <array>

#include "app/session/pinning.hpp"

namespace app {
namespace {

using core::attention::Model;

bool has_other_numbers(const Selection& now, Dialog, const Model& model) {
  const Model& start = *now.tour->start;
  for (std::size_t s = 0; s < std::min(start.sequences.size(), model.sequences.size()); ++s)
    if (!(model.sequences[s].embeddings == start.sequences[s].embeddings)) return true;
  return !(model.projections == start.projections);
}

bool watches_a_weight(const Selection& now, Dialog, const Model&) {
  return now.hovered && now.hovered->stage == Stage::weights;
}

bool followed_an_operand(const Selection& now, Dialog, const Model&) {
  return now.pinned && !now.trail.empty();
}

bool has_another_mask(const Selection& now, Dialog, const Model& model) {
  return model.mask.causal != now.tour->start->mask.causal;
}

bool opened_the_export(const Selection&, Dialog dialog, const Model&) {
  return dialog == Dialog::export_files;
}

constexpr std::array steps{
    TourStep{"Drag this number", "Hold it and move the mouse sideways: every stage follows at once.",
             "edit/cell/1/0", has_other_numbers},
    TourStep{"Watch a weight",
             "Point at a cell here: what it is, and why, stands beside it. The cells that your "
             "number has changed bear a thin line.",
             "strip/weights", watches_a_weight},
    TourStep{
        "Pin it and follow an operand",
        "Click the cell: the inspector at the right works it out. Then press one of its pink numbers to go "
        "to where that comes from.",
        "region/inspector", followed_an_operand},
    TourStep{"Switch the mask",
             "Press it: without the causal mask every token also sees what comes after it.", "model/causal",
             has_another_mask},
    TourStep{"Take it with you",
             "Press Ctrl+E, or File → Export…: numbers for a spreadsheet or NumPy, a figure, a program.",
             "menu/File", opened_the_export}};

}  // namespace

std::span<const TourStep> tour_steps() {
  return steps;
}

std::function<void(View&)> tour_from(const Model& model) {
  return [start = std::make_shared<const Model>(model)](View& view) {
    view.selection.tour = Tour{0, start};
    view.selection.presenting = {};
    view.look.tab = Tab::stages;
    view.look.large.reset();
    view.look.zoomed.clear();
    view.look.folded.erase(Stage::weights);
    release(view);
  };
}

void go_on_in_tour(View& view, const Model& model) {
  if (!view.selection.tour) return;
  if (view.selection.tour->step + 1 >= steps.size()) return leave_tour(view);
  view.selection.tour = Tour{view.selection.tour->step + 1, std::make_shared<const Model>(model)};
}

void leave_tour(View& view) {
  view.selection.tour.reset();
  view.settings.knows_tour = true;
}

}  // namespace app
