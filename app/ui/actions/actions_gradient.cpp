#include <array>

#include "app/ui/actions/action_rows.hpp"

/// Gradients of a number.
namespace app::rows {
namespace {

constexpr const char* gradient_menu = "View/Gradient";

/// Returns the pinned cell, else the one under the mouse.
std::optional<CellRef> asked_cell(const ActionContext& s) {
  const Selection& now = s.displayed.selection;
  return now.pinned ? now.pinned : now.hovered;
}

bool is_shown(const ActionContext& s) {
  return s.pending.look.gradient.of.has_value();
}

}  // namespace

core::graph::Target target_of(const CellRef& cell) {
  return {cell.stage, core::attention::info(cell.stage).per_head ? cell.head : 0, cell.row, cell.column};
}

void add_gradients(ActionRows& rows, const ActionContext&) {
  add(rows, "gradient/show", "Gradient of this number", gradient_menu, 5)
      .about("Shows in every map how fast the number grows with each other one")
      .keys(shift(Key::d))
      .sheet_text("Gradient of the pinned cell, or its end")
      .only_if([](const ActionContext& s) { return is_shown(s) || asked_cell(s); },
               "no cell is pinned or under the mouse")
      .command([](const ActionContext& s) {
        const auto cell = asked_cell(s);
        const auto of = cell ? std::optional(target_of(*cell)) : std::nullopt;
        return ShowGradient{of == s.pending.look.gradient.of ? std::nullopt : of};
      })
      .checked(is_shown);

  constexpr std::array maps{std::pair{GradientMaps::values, "Maps of values"},
                            std::pair{GradientMaps::gradient, "Maps of the gradient"},
                            std::pair{GradientMaps::both, "Maps of both"}};
  constexpr std::array ids{"gradient/values", "gradient/gradient", "gradient/both"};
  for (std::size_t k = 0; k < maps.size(); ++k)
    add(rows, ids[k], maps[k].second, gradient_menu, 5, 1)
        .only_if(is_shown, "no gradient is shown")
        .does(set<&GradientLook::maps>(maps[k].first))
        .checked([which = maps[k].first](const ActionContext& s) {
          return is_shown(s) && s.displayed.look.gradient.maps == which;
        });
  add(rows, "gradient/next", "Values, gradient, both", gradient_menu, 5, 1)
      .keys(plain(Key::v))
      .keys_apply(outside_editor)
      .sheet_text("Gradient: values, gradient, both")
      .only_if(is_shown, "no gradient is shown")
      .command([](const ActionContext& s) {
        const int now = static_cast<int>(s.pending.look.gradient.maps);
        return set<&GradientLook::maps>(static_cast<GradientMaps>((now + 1) % 3));
      });

  for (const bool against : {false, true}) {
    add(rows, against ? "gradient/lower" : "gradient/raise",
        against ? "Gradient descent step" : "Gradient ascent step", gradient_menu, 5, 2)
        .about(against ? "Changes the model against the gradient, so that the number falls"
                       : "Changes the model along the gradient, so that the number grows")
        .only_if(is_shown, "no gradient is shown")
        .does(EndGesture{}, StepAlongGradient{against}, EndGesture{});
  }
}

}  // namespace app::rows
