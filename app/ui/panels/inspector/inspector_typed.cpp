#include "app/ui/panels/inspector/inspector_typed.hpp"

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/number.hpp"

namespace app::panels {
namespace {

using core::editing::TypeOver;
using widgets::Align;

/// A number, also one that is not finite: hidden scores are −inf.
std::optional<double> any_number(const std::string& text) {
  if (const auto number = widgets::read_number(text)) return number;
  return core::text::parse_number(text == "−inf" ? "-inf" : text);
}

}  // namespace

void draw_typed(widgets::Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  if (frame.shown.selection.pinned != cell || !can_be_typed_over(cell.stage)) return;
  const core::attention::GivenPlace place =
      core::explain::given_place(frame.shown.model, frame.shown.look.sequence, cell);
  const core::attention::GivenCell* typed = frame.shown.model.given.find(place);
  const float middle = pen.y + frame.metrics.frame / 2 + frame.metrics.px(4), width = frame.metrics.px(96);
  widgets::draw_text(frame.fonts.sans14, {pen.left, middle}, Align::left_middle, packed(frame.palette.dim),
                     typed ? "typed over" : "put here instead (N)");
  const float x =
      pen.left + widgets::text_width(frame.fonts.sans14, "put here instead (N)") + frame.metrics.px(10);
  platform::move_to({x, pen.y + frame.metrics.px(4)});
  const std::string shown = typed ? core::text::number_text(typed->value) : "";
  const auto answer = widgets::text_field(
      frame, "inspector/typed", shown,
      {.width = width, .font = frame.fonts.mono13, .alignment = widgets::Alignment::centre, .step = {}});
  if (answer.text && !(answer.text->empty() && !typed)) {
    if (answer.text->empty())
      frame.commands.edit(TypeOver{place, std::nullopt});
    else if (const auto number = any_number(*answer.text))
      frame.commands.edit(TypeOver{place, number});
    else
      frame.commands.add(
          ShowMessage{"put here instead: expected a number, found \"" + *answer.text + "\"", true});
  }
  if (typed && widgets::link(frame, "inspector/computed", frame.fonts.sans13, {pen.right, middle},
                             Align::right_middle, frame.palette.accent, "take back"))
    frame.commands.edit(TypeOver{place, std::nullopt});
  if (ImGui::IsWindowHovered() &&
      ImGui::IsMouseHoveringRect({pen.left, pen.y}, {x, pen.y + frame.metrics.px(34)}))
    ImGui::SetTooltip(
        "A number here stands in place of the computed one; what follows is made of it. Empty: computed again.");
  pen.skip(34);
}

}  // namespace app::panels
