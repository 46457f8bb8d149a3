#include "app/ui/panels/dialogs/search_field.hpp"

#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

constexpr std::size_t longest_text = 200;

/// What the field's callback knows.
struct Listening {
  bool waiting = false;
  std::string missed;  ///< typed before the field could hear it
  int moved = 0;
};

int on_search_event(ImGuiInputTextCallbackData* data) {
  auto& listening = *static_cast<Listening*>(data->UserData);
  if (data->EventFlag == ImGuiInputTextFlags_CallbackHistory) {
    listening.moved += data->EventKey == ImGuiKey_UpArrow ? -1 : 1;
  } else if (listening.waiting) {  // it has just taken the keyboard
    if (!listening.missed.empty()) data->InsertChars(data->BufTextLen, listening.missed.c_str());
    data->CursorPos = data->SelectionStart = data->SelectionEnd = data->BufTextLen;
  }
  return 0;
}

}  // namespace

Searched search_field(const Frame& frame, const char* name, const char* hint, float width) {
  const ActionSearch& search = frame.forms.search;
  std::vector<char> buffer(search.text.begin(), search.text.end());
  buffer.resize(longest_text + search.text.size());
  Listening listening{search.waiting, search.waiting ? widgets::typed_letters() : ""};
  if (search.waiting && !ImGui::IsMouseDown(ImGuiMouseButton_Left)) platform::focus_next_item();
  platform::push_font(frame.fonts.sans16);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {frame.metrics.px(10), frame.metrics.px(7)});
  ImGui::SetNextItemWidth(width);
  ImGui::InputText(
      "##text", buffer.data(), buffer.size(),
      ImGuiInputTextFlags_CallbackHistory | (search.waiting ? ImGuiInputTextFlags_CallbackAlways : 0),
      on_search_event, &listening);
  ImGui::PopStyleVar();
  frame.landmarks.mark_item(name);
  const bool active = ImGui::IsItemActive();
  Searched field{buffer.data(), listening.moved};
  if (!active) field.text += listening.missed;
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  if (active) widgets::outline(ImGui::GetWindowDrawList(), min, max, packed(frame.palette.accent), 2);
  if (field.text.empty()) {
    const float y = widgets::centred_y(frame.fonts.sans16, min.y, max.y - min.y);
    widgets::draw_text(frame.fonts.sans16, {min.x + frame.metrics.px(10) + 2, y}, frame.palette.faint, hint);
  }
  ImGui::PopFont();
  if (active == search.waiting)
    frame.commands.look([waiting = !active](View& view) { view.forms.search.waiting = waiting; });
  return field;
}

}  // namespace app::panels
