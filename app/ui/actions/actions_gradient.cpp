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

Action gradient_row(const char* id, const char* title) {
  return {.id = id, .title = title, .menu = gradient_menu, .group = 5};
}

}  // namespace

core::graph::Target target_of(const CellRef& cell) {
  return {cell.stage, core::attention::info(cell.stage).per_head ? cell.head : 0, cell.row, cell.column};
}

void add_gradients(ActionRows& rows, const ActionContext&) {
  Action show = gradient_row("gradient/show", "Gradient of this number");
  show.about = "Shows in every map how fast the number grows with each other one";
  show.keys = {shift(Key::d)};
  show.sheet_text = "Gradient of the pinned cell, or its end";
  show.disabled_reason = unless([](const ActionContext& s) { return is_shown(s) || asked_cell(s); },
                                "no cell is pinned or under the mouse");
  show.command = [](const ActionContext& s) {
    const auto cell = asked_cell(s);
    const auto of = cell ? std::optional(target_of(*cell)) : std::nullopt;
    return CommandList{ShowGradient{of == s.pending.look.gradient.of ? std::nullopt : of}};
  };
  show.checked = is_shown;
  rows.push_back(std::move(show));

  constexpr std::array maps{std::pair{GradientMaps::values, "Maps of values"},
                            std::pair{GradientMaps::gradient, "Maps of the gradient"},
                            std::pair{GradientMaps::both, "Maps of both"}};
  constexpr std::array ids{"gradient/values", "gradient/gradient", "gradient/both"};
  for (std::size_t k = 0; k < maps.size(); ++k) {
    Action choice = gradient_row(ids[k], maps[k].second);
    choice.part = 1;
    choice.disabled_reason = unless(is_shown, "no gradient is shown");
    choice.command = always(set<&GradientLook::maps>(maps[k].first));
    choice.checked = [which = maps[k].first](const ActionContext& s) {
      return is_shown(s) && s.displayed.look.gradient.maps == which;
    };
    rows.push_back(std::move(choice));
  }
  Action next = gradient_row("gradient/next", "Values, gradient, both");
  next.part = 1;
  next.keys = {plain(Key::v)};
  next.keys_apply = outside_editor;
  next.sheet_text = "Gradient: values, gradient, both";
  next.disabled_reason = unless(is_shown, "no gradient is shown");
  next.command = [](const ActionContext& s) {
    const int now = static_cast<int>(s.pending.look.gradient.maps);
    return CommandList{set<&GradientLook::maps>(static_cast<GradientMaps>((now + 1) % 3))};
  };
  rows.push_back(std::move(next));

  for (const bool against : {false, true}) {
    Action step = gradient_row(against ? "gradient/lower" : "gradient/raise",
                               against ? "Gradient descent step" : "Gradient ascent step");
    step.part = 2;
    step.about = against ? "Changes the model against the gradient, so that the number falls"
                         : "Changes the model along the gradient, so that the number grows";
    step.disabled_reason = unless(is_shown, "no gradient is shown");
    step.command = always(EndGesture{}, StepAlongGradient{against}, EndGesture{});
    rows.push_back(std::move(step));
  }
}

}  // namespace app::rows
