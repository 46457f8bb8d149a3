#include "app/ui/panels/present/tour_card.hpp"

#include <algorithm>
#include <string>

#include "app/session/navigation.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

constexpr float card_width = 320, away = 14;  // at scale 1

/// Where a card of that size stands: right of what it speaks of, else left, below or above, within the
/// window.
ImVec2 place_beside(const Frame& frame, const Landmarks::Rect& rect, ImVec2 size) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float gap = frame.metrics.px(away), inset = frame.metrics.px(8);
  ImVec2 at{rect.max.x + gap, rect.min.y};
  if (at.x + size.x > window.x - inset) at.x = rect.min.x - gap - size.x;
  if (at.x < inset) at = {rect.min.x, rect.max.y + gap};
  if (at.y + size.y > window.y - inset && at.y == rect.max.y + gap) at.y = rect.min.y - gap - size.y;
  // The weights are what is to be watched: the card stands below them, where it would stand over them.
  if (const auto weights = frame.landmarks.find("strip/weights");
      weights && at.x < weights->max.x && at.x + size.x > weights->min.x && at.y < weights->max.y &&
      at.y + size.y > weights->min.y && weights->max.y + 2 * gap + size.y < window.y)
    at.y = weights->max.y + 2 * gap;
  return {std::clamp(at.x, inset, std::max(inset, window.x - size.x - inset)),
          std::clamp(at.y, inset, std::max(inset, window.y - size.y - inset))};
}

void draw_card(const Frame& frame, const TourStep& step, std::size_t index, bool is_last) {
  const float width = frame.metrics.px(card_width);
  widgets::paragraph(frame.fonts.sans14, frame.palette.dim, width,
                     "Tour, " + std::to_string(index + 1) + " of " + std::to_string(tour_steps().size()));
  widgets::paragraph(frame.fonts.sans17, frame.palette.text, width, step.title);
  widgets::paragraph(frame.fonts.sans15, frame.palette.text, width, step.words);
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (widgets::button(frame, "tour/next", is_last ? "Done" : "Next", "Without doing it"))
    frame.commands.look([model = frame.newest.model](View& view) { go_on_in_tour(view, model); });
  ImGui::SameLine();
  if (widgets::button(frame, "tour/skip", "Skip the tour", "Help → Take the tour brings it back"))
    frame.commands.look(leave_tour);
}

}  // namespace

void draw_tour(const Frame& frame) {
  const auto& tour = frame.newest.selection.tour;
  if (!tour || frame.lesson || frame.shown.selection.presenting.on) return;
  const TourStep& step = tour_steps()[tour->step];
  const bool is_last = tour->step + 1 == tour_steps().size();
  if (step.done(frame.newest.selection, frame.forms.dialog, frame.newest.model)) {
    // A number that is being dragged is not taken out of the hand.
    if (!ImGui::IsAnyItemActive())
      frame.commands.look([model = frame.newest.model](View& view) { go_on_in_tour(view, model); });
    return;
  }
  if (frame.forms.dialog != Dialog::none) return;
  const auto place = frame.landmarks.find(step.place);
  const Landmarks::Rect rect = place.value_or(Landmarks::Rect{{0, 0}, {0, 0}});
  const float margin = frame.metrics.px(3);
  if (place)
    widgets::outline(ImGui::GetForegroundDrawList(), {rect.min.x - margin, rect.min.y - margin},
                     {rect.max.x + margin, rect.max.y + margin}, packed(frame.palette.accent), 2);
  const ImVec2 guess{frame.metrics.px(card_width + 24), frame.metrics.px(150)};
  ImGui::SetNextWindowPos(place_beside(frame, rect, guess), ImGuiCond_Always);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.metrics.px(12), frame.metrics.px(10)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.metrics.px(3));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, vec(frame.palette.ground.raised));
  ImGui::PushStyleColor(ImGuiCol_Border, vec(frame.palette.accent));
  ImGui::Begin("tour", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                   ImGuiWindowFlags_NoNav);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar(3);
  draw_card(frame, step, tour->step, is_last);
  const ImVec2 min = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  frame.landmarks.mark("tour/card", min, {min.x + size.x, min.y + size.y});
  ImGui::End();
}

}  // namespace app::panels
