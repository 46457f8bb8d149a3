#include "app/ui/widgets/operand_link.hpp"

#include <algorithm>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/pen.hpp"
#include "core/graph/text.hpp"

namespace app::widgets {
namespace {

namespace ex = core::explain;
using ex::Operand;

void go_to(const Frame& frame, const ex::Place& place) {
  if (const auto* stage = std::get_if<Stage>(&place.source)) {
    frame.commands.look(
        [cell = CellRef{*stage, place.head, place.row, place.column}](View& v) { follow(v, cell); });
    return;
  }
  frame.commands.look([name = std::get<ex::Input>(place.source), place](View& v) {
    v.look.edited = {name, v.look.sequence};
    v.selection.cursor = EditCursor{place.row, place.column, true};
  });
}

void draw_tooltip(const Frame& frame, const Operand& operand) {
  const auto* stage = std::get_if<Stage>(&operand.place->source);
  const bool learned = !stage;
  std::string words = ex::name(*operand.place);
  words.erase(std::remove(words.begin(), words.end(), '_'), words.end());
  if (stage)
    words += "  " + row_tokens(core::attention::info(*stage),
                               frame.shown.model.sequences[frame.shown.look.sequence])[operand.place->row];
  ImGui::BeginTooltip();
  platform::push_font(frame.fonts.sans14);
  ImGui::TextUnformatted(words.c_str());
  platform::push_font(frame.fonts.mono14);
  ImGui::TextUnformatted(told_number(operand.value).c_str());
  ImGui::PopFont();
  ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.dim));
  ImGui::TextUnformatted(learned ? "press to edit it" : "press to see where it comes from");
  ImGui::PopStyleColor();
  ImGui::PopFont();
  ImGui::EndTooltip();
}

}  // namespace

float draw_operand(const Frame& frame, const std::string& name, const Operand& operand, ImVec2 left_middle,
                   float width) {
  ImFont* mono = frame.fonts.mono14;
  const std::string text = inspected(operand.value);
  const ImVec2 right{left_middle.x + std::max(width, text_width(mono, text)), left_middle.y};
  if (!operand.place) {
    draw_text(mono, right, Align::right_middle, packed(frame.palette.text), text);
  } else {
    if (link(frame, name, mono, right, Align::right_middle, frame.palette.operand, text))
      go_to(frame, *operand.place);
    if (ImGui::IsItemHovered()) draw_tooltip(frame, operand);
  }
  return right.x;
}

}  // namespace app::widgets
