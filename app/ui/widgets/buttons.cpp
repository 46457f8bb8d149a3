#include "app/ui/widgets/buttons.hpp"

#include <array>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::widgets {

bool button(const Frame& frame, const std::string& name, const char* words, const char* help) {
  ImGui::PushID(name.c_str());
  platform::push_font(frame.fonts.sans14);
  const bool clicked = ImGui::Button(words, {0, frame.metrics.frame}), pressed = entered_item() || clicked;
  ImGui::PopFont();
  ImGui::PopID();
  frame.landmarks.mark_item(name);
  if (help) tooltip(help);
  return pressed;
}

std::optional<bool> checkbox(const Frame& frame, const std::string& name, const char* words, bool on,
                             const char* help) {
  const float box = frame.metrics.px(16), gap = frame.metrics.px(8), height = frame.metrics.frame;
  ImFont* font = frame.fonts.sans15;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float label = formula_width(font, words);
  const bool pressed = hit_area(name.c_str(), {box + (label > 0 ? gap + label : 0), height});
  frame.landmarks.mark_item(name);

  const Palette& p = frame.palette;
  const float alpha = ImGui::GetStyle().Alpha;  // lowered inside BeginDisabled
  const Rgb ground = ImGui::IsItemActive()    ? p.control.active
                     : ImGui::IsItemHovered() ? p.control.hovered
                                              : p.control.rest;
  const ImVec2 corner(at.x, std::round(at.y + (height - box) / 2)), end(corner.x + box, corner.y + box);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(corner, end, packed(ground, alpha), frame.metrics.px(3));
  if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible) outline(list, corner, end, packed(p.accent), 2);
  if (on) {
    const std::array<ImVec2, 3> tick{ImVec2(corner.x + box * 0.22f, corner.y + box * 0.52f),
                                     ImVec2(corner.x + box * 0.43f, corner.y + box * 0.73f),
                                     ImVec2(corner.x + box * 0.80f, corner.y + box * 0.28f)};
    list->AddPolyline(tick.data(), 3, packed(p.accent, alpha), 0, frame.metrics.px(2));
  }
  const Rgb ink = alpha < 1 ? p.faint : p.text;
  draw_formula(font, {end.x + gap, centred_y(font, at.y, height)}, packed(ink), words);
  if (help) tooltip(help);
  return pressed ? std::optional(!on) : std::nullopt;
}

void draw_combo_arrow(const Frame& frame, ImDrawList* list, float right, float middle) {
  const float tip = right - frame.metrics.px(14), half = frame.metrics.px(4),
              top = std::round(middle) - half / 2;
  list->AddTriangleFilled({tip - half, top}, {tip + half, top}, {tip, top + half + 1},
                          packed(frame.palette.dim));
}

bool begin_combo(const Frame& frame, const char* id, const char* shown, ImGuiComboFlags flags) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = at.x + ImGui::CalcItemWidth();
  const bool open = ImGui::BeginCombo(id, shown, flags | ImGuiComboFlags_NoArrowButton);
  draw_combo_arrow(frame, list, right, at.y + ImGui::GetFrameHeight() / 2);
  return open;
}

std::optional<std::size_t> combo(const Frame& frame, const std::string& name, float width,
                                 const std::string& shown, std::span<const Option> options,
                                 std::size_t current) {
  std::optional<std::size_t> chosen;
  platform::push_font(frame.fonts.sans15);
  const std::string preview = shortened(frame.fonts.sans15, shown, width - frame.metrics.px(36));
  ImGui::SetNextItemWidth(width);
  const bool open = begin_combo(frame, ("##" + name).c_str(), preview.c_str(), ImGuiComboFlags_HeightLarge);
  if (!open) {
    frame.landmarks.mark_item(name);
    const std::string help = current < options.size() ? options[current].help : "";
    const std::string whole = preview != shown ? shown : "";
    if (!help.empty() || !whole.empty()) tooltip(whole + (whole.empty() || help.empty() ? "" : "\n") + help);
  } else {
    for (std::size_t i = 0; i < options.size(); ++i) {
      const std::string line = name + "/" + std::to_string(i);
      if (options[i].parted) ImGui::Separator();
      if (ImGui::Selectable((options[i].words + "##" + line).c_str(), i == current)) chosen = i;
      frame.landmarks.mark_item(line);
      if (!options[i].help.empty()) tooltip(options[i].help);
      if (i == current) ImGui::SetItemDefaultFocus();
    }
    ImGui::EndCombo();
    frame.landmarks.mark_item(name);
  }
  ImGui::PopFont();
  return chosen;
}

std::optional<std::size_t> segmented(const Frame& frame, const std::string& name,
                                     std::span<const std::string> words, std::size_t current) {
  std::optional<std::size_t> pressed;
  platform::push_font(frame.fonts.sans14);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, 1);
    const std::string part = name + "/" + std::to_string(i);
    ImGui::PushStyleColor(ImGuiCol_Button,
                          vec(i == current ? frame.palette.control.active : frame.palette.control.rest));
    ImGui::PushStyleColor(ImGuiCol_Text, vec(i == current ? frame.palette.text : frame.palette.dim));
    if (ImGui::Button((words[i] + "##" + part).c_str(), {0, frame.metrics.frame})) pressed = i;
    if (entered_item()) pressed = i;
    ImGui::PopStyleColor(2);
    frame.landmarks.mark_item(part);
  }
  ImGui::PopFont();
  return pressed;
}

std::optional<std::size_t> tabs(const Frame& frame, float width, std::span<const TabWords> all,
                                std::size_t current) {
  std::optional<std::size_t> pressed;
  ImFont* font = frame.fonts.sans16;
  const Palette& p = frame.palette;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(30), pad = frame.metrics.px(6);
  float gap = frame.metrics.px(frame.metrics.compact ? 10 : 14), taken = pad;
  for (const TabWords& tab : all) taken += formula_width(font, tab.words) + pad;
  if (all.size() > 1)  // spread over the line when they are few
    gap = std::clamp(std::floor((width - taken) / static_cast<float>(all.size() - 1)), gap,
                     frame.metrics.px(28));
  float x = origin.x, y = origin.y;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float words = formula_width(font, all[i].words);
    if (x > origin.x && x + words + pad > origin.x + width) x = origin.x, y += height;
    platform::move_to({x - pad, y});
    if (hit_area(all[i].name.c_str(), {words + 2 * pad, height})) pressed = i;
    frame.landmarks.mark_item(all[i].name);
    const bool bright = i == current || ImGui::IsItemHovered();
    draw_formula(font, {x, centred_y(font, y, height)}, packed(bright ? p.text : p.dim), all[i].words);
    const ImVec2 line(x - pad / 2, y + height - frame.metrics.px(2));
    if (i == current) {
      const ImVec2 end(x + words + pad / 2, y + height);
      ImGui::GetWindowDrawList()->AddRectFilled(line, end, packed(p.accent));
    }
    x += words + gap + pad;
  }
  y += height;
  ImGui::GetWindowDrawList()->AddLine({origin.x, y}, {origin.x + width, y}, packed(p.line));
  platform::move_to(origin);
  ImGui::Dummy({width, y + 1 - origin.y});
  return pressed;
}

}  // namespace app::widgets
