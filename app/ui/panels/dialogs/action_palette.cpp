#include "app/ui/panels/dialogs/action_palette.hpp"

#include <algorithm>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/action_finding.hpp"
#include "app/ui/panels/dialogs/close_dialog.hpp"
#include "app/ui/panels/dialogs/palette_line.hpp"
#include "app/ui/panels/dialogs/search_field.hpp"
#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

constexpr const char* palette_popup = "###palette";
constexpr std::size_t most_lines = 14;

/// The chosen line after this frame's keys.
std::size_t moved_line(const Frame& frame, const Searched& field, std::size_t n) {
  if (n == 0) return 0;
  int by = field.moved;
  const int page = static_cast<int>(most_lines) - 1;
  if (platform::key_pressed(ImGuiKey_PageDown)) by += page;
  if (platform::key_pressed(ImGuiKey_PageUp)) by -= page;
  const std::size_t from =
      field.text == frame.forms.search.text ? std::min(frame.forms.search.line, n - 1) : 0;
  return static_cast<std::size_t>(std::clamp(static_cast<long>(from) + by, 0L, static_cast<long>(n) - 1));
}

void choose(const Frame& frame, const Searched& field, std::size_t line) {
  const ActionSearch& before = frame.forms.search;
  if (before.text == field.text && before.line == line) return;
  frame.commands.look([text = field.text, line](View& view) {
    view.forms.search.text = text;
    view.forms.search.line = line;
  });
}

/// Scrolls so that the chosen line is in sight.
void follow(float pitch, std::size_t line, float height) {
  const float top = pitch * static_cast<float>(line), scroll = ImGui::GetScrollY();
  if (top < scroll) ImGui::SetScrollY(top);
  if (top + pitch > scroll + height) ImGui::SetScrollY(top + pitch - height);
}

/// The lines; gives the one that the mouse has done.
std::optional<std::size_t> draw_lines(const Frame& frame, const Situation& situation,
                                      std::span<const FoundAction> found, const Searched& field,
                                      ImVec2 size) {
  const ImGuiIO& io = ImGui::GetIO();
  const float pitch = frame.metrics.px(palette_pitch);
  std::size_t line = moved_line(frame, field, found.size());
  std::optional<std::size_t> done;
  platform::begin_child("lines", size, false, ImGuiWindowFlags_NoNav);
  if (line != frame.forms.search.line || field.text != frame.forms.search.text) follow(pitch, line, size.y);
  const ImVec2 at = ImGui::GetCursorScreenPos(), corner = ImGui::GetWindowPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const bool points =
      ImGui::IsWindowHovered() && (io.MouseDelta.x != 0 || io.MouseDelta.y != 0 || io.MouseClicked[0]);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const ImVec2 min(at.x, at.y + pitch * static_cast<float>(k)), max(at.x + width, min.y + pitch);
    if (max.y <= corner.y || min.y >= corner.y + size.y) continue;
    if (points && ImGui::IsMouseHoveringRect(min, max)) {
      line = k;
      if (io.MouseClicked[0]) done = k;
    }
    draw_palette_line(frame, situation, found[k], min, max, k == line);
    frame.landmarks.mark("palette/line/" + std::to_string(k), min, max);
    frame.landmarks.mark("palette/" + found[k].action->id, min, max);
  }
  ImGui::Dummy({width, pitch * static_cast<float>(found.size())});
  ImGui::EndChild();
  choose(frame, field, line);
  const bool enter =
      platform::key_pressed(ImGuiKey_Enter, false) || platform::key_pressed(platform::keypad_enter, false);
  if (enter && line < found.size()) done = line;
  return done;
}

void draw_inside(const Frame& frame, float width) {
  const Situation situation = situation_of(frame);
  const Searched field =
      search_field(frame, "palette/field", "An action, preset, stage, lesson or setting", width);
  const std::vector<Action> all = actions(situation);
  const std::vector<FoundAction> found = found_actions(
      all, field.text, [&](const Action& action) { return why_not(action, situation).empty(); });
  const float pitch = frame.metrics.px(palette_pitch);
  const float below = ImGui::GetIO().DisplaySize.y - ImGui::GetCursorScreenPos().y - frame.metrics.px(48);
  const float fit = std::max(3.0f, std::floor(below / pitch));
  const float n_lines = std::min({static_cast<float>(found.size()), static_cast<float>(most_lines), fit});
  if (found.empty()) {
    choose(frame, field, 0);
    widgets::paragraph(frame.fonts.sans15, frame.palette.dim, width, "Nothing has these letters.");
  } else if (const auto done = draw_lines(frame, situation, found, field, {width, pitch * n_lines});
             done && why_not(*found[*done].action, situation).empty()) {
    close_dialog(frame);
    perform(*found[*done].action, situation, frame.commands);
    return;
  }
  const bool elsewhere = ImGui::IsMouseClicked(ImGuiMouseButton_Left) &&
                         !ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows);
  if (elsewhere || platform::key_pressed(ImGuiKey_Escape, false)) close_dialog(frame);
}

}  // namespace

void draw_action_palette(const Frame& frame) {
  const bool wanted = frame.forms.dialog == Dialog::palette;
  if (wanted && !ImGui::IsPopupOpen(palette_popup)) ImGui::OpenPopup(palette_popup);
  if (!ImGui::IsPopupOpen(palette_popup)) return;
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float margin = frame.metrics.px(8);
  const float width = std::min(frame.metrics.px(680), window.x - frame.metrics.px(80));
  ImGui::SetNextWindowPos({std::round(window.x / 2), frame.metrics.menu + frame.metrics.tabs},
                          ImGuiCond_Always, {0.5f, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {margin, margin});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.metrics.px(3));
  const bool open =
      ImGui::BeginPopupModal(palette_popup, nullptr,
                             ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove |
                                 ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar(3);
  if (!open) return;
  if (wanted)
    draw_inside(frame, width);
  else
    ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace app::panels
