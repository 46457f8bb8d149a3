#include "app/ui/panels/stages/colors_popup.hpp"

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using render::ColorMap;
using render::NamedMap;

// At scale 1.
constexpr float label_room = 84, control_room = 190;

const std::array ranges{
    widgets::Option{"by matrix",
                    "Each matrix of signed numbers has its own range; weights range from 0 to 1"},
    widgets::Option{"by stage", "One range for all heads of a stage, so that heads can be compared"},
    widgets::Option{"one for all", "One range for all stages of signed numbers, in every head"},
    widgets::Option{"typed", "The ends that you type"}};
const std::array<std::string, 2> measures{"linear", "logarithmic"};

/// A range whose low end is not below its high one is refused in a line.
void change_ends(const Frame& frame, const char* which, Ends ColorChoice::*kept, Ends wanted) {
  if (!(wanted.low < wanted.high)) {
    const bool equal = wanted.low == wanted.high;
    const std::string found = widgets::number_text(wanted.low) + " and " + widgets::number_text(wanted.high);
    frame.commands.add(ShowMessage{std::string("colors of ") + which +
                                       ": expected a low end below the high end, found " + found +
                                       (equal ? ", which are equal" : ", which are swapped"),
                                   true});
    return;
  }
  frame.commands.add(kept == &ColorChoice::typed_values ? set<&ColorChoice::typed_values>(wanted)
                                                        : set<&ColorChoice::typed_weights>(wanted),
                     set<&ColorChoice::locked>(std::nullopt));
}

void typed_row(widgets::PopupRows& form, const char* which, const char* words, Ends ColorChoice::*kept) {
  const Frame& frame = form.frame;
  const Ends now = frame.displayed.look.colors.*kept;
  const std::string name = std::string("colours/") + which;
  const float width = frame.metrics.px(80);
  form.row(words);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (const auto low =
          widgets::real_field(frame, name + "/low", (name + ", low end").c_str(), now.low, width))
    change_ends(frame, which, kept, {*low, now.high});
  widgets::tooltip("The low end of the colors; smaller numbers have a cut corner");
  widgets::draw_text(
      frame.fonts.sans15,
      {at.x + width + frame.metrics.px(8), widgets::centred_y(frame.fonts.sans15, at.y, frame.metrics.frame)},
      frame.palette.dim, "to");
  platform::move_to({at.x + frame.metrics.px(control_room) - width, at.y});
  if (const auto high =
          widgets::real_field(frame, name + "/high", (name + ", high end").c_str(), now.high, width))
    change_ends(frame, which, kept, {now.low, *high});
  widgets::tooltip("The high end of the colors; larger numbers have a cut corner");
}

void map_row(widgets::PopupRows& form, const char* words, const char* name, ColorMap ColorChoice::*kept,
             std::span<const NamedMap> maps) {
  const Frame& frame = form.frame;
  std::vector<widgets::Option> options;
  std::size_t now = 0;
  for (std::size_t k = 0; k < maps.size(); ++k) {
    options.push_back({maps[k].name, ""});
    if (maps[k].map == frame.displayed.look.colors.*kept) now = k;
  }
  form.row(words);
  if (const auto chosen =
          widgets::combo(frame, name, frame.metrics.px(control_room), options[now].words, options, now))
    frame.commands.add(kept == &ColorChoice::sequential ? set<&ColorChoice::sequential>(maps[*chosen].map)
                                                        : set<&ColorChoice::diverging>(maps[*chosen].map));
  widgets::tooltip(
      kept == &ColorChoice::sequential
          ? "The color map of weights, from 0 to 1"
          : "The color map of signed numbers: embeddings, queries, keys, values, scores, context vectors, output");
  // The map itself, from its low end to its high one.
  const ImVec2 at{form.at.x + frame.metrics.px(label_room), form.at.y};
  constexpr int steps = 64;
  const float width = frame.metrics.px(control_room);
  for (int k = 0; k < steps; ++k)
    ImGui::GetWindowDrawList()->AddRectFilled(
        {at.x + std::round(width * static_cast<float>(k) / steps), at.y},
        {at.x + std::round(width * static_cast<float>(k + 1) / steps), at.y + frame.metrics.px(6)},
        packed(render::color_at(maps[now].map, frame.palette.dark, (k + 0.5) / steps)));
  form.at.y += frame.metrics.px(14);
}

}  // namespace

std::string colors_words(const ColorChoice& choice) {
  std::string words = "colors " + ranges[static_cast<std::size_t>(choice.range)].words;
  if (choice.logarithmic) words += ", log";
  return choice.locked ? words + ", locked" : words;
}

void draw_colors_popup(const Frame& frame, const char* name, ImVec2 top_right) {
  ImGui::SetNextWindowPos(top_right, ImGuiCond_Always, {1, 0});
  if (!ImGui::BeginPopup(name)) return;
  const ColorChoice& choice = frame.displayed.look.colors;
  const ImVec2 start = ImGui::GetCursorScreenPos();
  widgets::PopupRows form{frame, start, label_room};
  form.row("range");
  const auto now = static_cast<std::size_t>(choice.range);
  if (const auto rule = widgets::combo(frame, "colours/range", frame.metrics.px(control_room),
                                       ranges[now].words, ranges, now))
    frame.commands.add(set<&ColorChoice::range>(static_cast<RangeRule>(*rule)),
                       set<&ColorChoice::locked>(std::nullopt));
  if (choice.range == RangeRule::typed) {
    typed_row(form, "values", "signed", &ColorChoice::typed_values);
    typed_row(form, "weights", "0 to 1", &ColorChoice::typed_weights);
  }
  form.row("measure");
  if (const auto measure = widgets::segmented(frame, "colours/measure", measures, choice.logarithmic ? 1 : 0))
    frame.commands.add(set<&ColorChoice::logarithmic>(*measure == 1),
                       set<&ColorChoice::locked>(std::nullopt));
  widgets::tooltip(
      "Logarithmic scale: equal steps of color are equal ratios. Zeros are not colored; their number is next to the bar.");
  form.row("hold");
  if (widgets::checkbox(frame, "colours/lock", "as they are now", choice.locked.has_value(),
                        "Keeps the ends fixed while numbers change; numbers outside have a cut corner"))
    perform("colours/lock", situation_of(frame), frame.commands);
  map_row(form, "0 to 1", "colours/sequential", &ColorChoice::sequential, render::sequential_maps());
  map_row(form, "signed", "colours/diverging", &ColorChoice::diverging, render::diverging_maps());
  platform::move_to(start);
  ImGui::Dummy({frame.metrics.px(label_room + control_room), form.at.y - start.y});
  ImGui::EndPopup();
}

}  // namespace app::panels
