#include "app/ui/panels/bars/status_bar.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "app/session/jobs.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

std::string hint(const Frame& frame) {
  if (frame.shown.selection.shows_a && !frame.compared.references.empty() &&
      frame.shown.look.tab != Tab::compare)
    return frame.compared.references[frame.shown.look.compared.reference].name +
           (frame.compared.work.is_renewing ? " is being computed"
                                            : " in place of B, as long as Space is held");
  if (frame.shown.look.tab == Tab::layers)
    return "click chooses a head · x switches it off · Page Up and Page Down change the layer";
  if (frame.shown.look.tab == Tab::stages && frame.shown.look.large && !frame.shown.selection.pinned)
    return "wheel zooms · drag moves · F fits · click pins · Esc goes back to all stages";
  if (frame.shown.look.tab == Tab::laboratory)
    return "Space draws again · D switches dropout · Esc goes back to the stages";
  if (frame.shown.look.tab == Tab::compare)
    return !frame.compared.references.empty()
               ? "K keeps B as a new A · hold Space to see A in place of B · Esc releases"
               : "K, or a right click on the preset, keeps this as A";
  if (frame.shown.selection.lesson)
    return "a lesson changes nothing of yours: your work comes back when it ends";
  if (frame.shown.look.tab == Tab::tokens) return "click or ↑ ↓ pin a query · 1 … 9 and [ ] switch heads";
  if (frame.shown.selection.pinned) return "click pins another cell · Shift+arrows move it · Esc releases";
  if (frame.shown.look.tab == Tab::heads)
    return "hover previews · click pins · double click on a name shows the head alone";
  return "hover previews · click pins · double click shows a stage large · Ctrl+wheel zooms";
}

/// As many of the hints, which " · " parts, as fit a width.
std::string hints_within(ImFont* font, std::string words, float width) {
  constexpr std::string_view between = " · ";
  while (!words.empty() && widgets::text_width(font, words) > width) {
    const std::size_t last = words.rfind(between);
    words.resize(last == words.npos ? 0 : last);
  }
  return words;
}

std::string duration(double ms) {
  return "computed in " + widgets::fixed(ms, ms < 1 ? 2 : ms < 10 ? 1 : 0) + " ms";
}

/// How long the pictures took, or that they are of an older model; gives the width that it keeps for both.
float draw_state(const Frame& frame, float right, float middle) {
  ImFont* font = frame.fonts.sans14;
  const std::string time = duration(frame.work.compute_ms);
  const float width = std::max(widgets::text_width(font, time),
                               frame.work.renewal ? widgets::text_width(font, "being renewed, 00 %") : 0);
  if (!frame.work.renewal) {
    widgets::draw_text(font, {right, middle}, widgets::Align::right_middle, packed(frame.palette.dim), time);
    return width;
  }
  const Renewal& renewal = *frame.work.renewal;
  const bool long_enough = renewal.seconds >= unnoticed_seconds;
  const std::string words =
      "being renewed" +
      (long_enough ? ", " + std::to_string(static_cast<int>(renewal.share * 100)) + " %" : "");
  widgets::draw_text(font, {right, middle}, widgets::Align::right_middle, packed(frame.palette.text), words);
  frame.landmarks.mark("status/renewal", {right - width, middle - frame.metrics.px(8)},
                       {right, middle + frame.metrics.px(8)});
  if (!long_enough) return width;
  const float top = std::round(middle + frame.metrics.px(9)), bottom = top + frame.metrics.px(2);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({right - width, top}, {right, bottom}, packed(frame.palette.control.rest));
  list->AddRectFilled({right - width, top},
                      {right - width + width * static_cast<float>(renewal.share), bottom},
                      packed(frame.palette.accent));
  return width;
}

}  // namespace

void draw_status(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float middle = origin.y + room.y / 2;
  ImFont* font = frame.fonts.sans14;
  const std::size_t heads = frame.shown.model.n_heads;
  const std::string shape = std::to_string(frame.shown.model.n_tokens()) + "×" +
                            std::to_string(frame.shown.model.has_embeddings() ? frame.shown.model.d_model()
                                                                              : frame.shown.model.n_keys()) +
                            ", " + std::to_string(heads) + (heads == 1 ? " head" : " heads");
  float right = origin.x + room.x;
  widgets::draw_text(font, {right, middle}, widgets::Align::right_middle, packed(frame.palette.dim), shape);
  right -= widgets::text_width(font, shape) + frame.metrics.px(24);
  right -= draw_state(frame, right, middle) + frame.metrics.px(24);

  // The message comes first: hints have what it leaves.
  const std::string& message = frame.message.text;
  const bool speaks = !message.empty();
  const float gap = frame.metrics.px(24), all = right - origin.x;
  const float said = speaks ? std::min(widgets::text_width(font, message), all) + gap : 0;
  const std::string words = hints_within(font, hint(frame), all - said);
  widgets::draw_text(font, {origin.x, middle}, widgets::Align::left_middle, packed(frame.palette.dim), words);
  if (!speaks) return;
  const float half = words.empty() ? origin.x : origin.x + widgets::text_width(font, words) + gap;
  const Rgb color = frame.message.is_error ? frame.palette.status.bad : frame.palette.text;
  widgets::draw_text(font, {half, middle}, widgets::Align::left_middle, packed(color),
                     widgets::shortened(font, message, right - half));
  platform::move_to({half, origin.y});
  widgets::hit_area("message", {right - half, room.y});
  frame.landmarks.mark_item("status/message");
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", message.c_str());
  if (ImGui::IsItemClicked()) frame.commands.add(CopyText{message});
}

}  // namespace app::panels
