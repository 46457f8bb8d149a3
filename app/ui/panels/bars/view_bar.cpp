#include "app/ui/panels/bars/bars.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "app/session/learning.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {

namespace {

using core::attention::StageInfo;
using render::ColorMap;
using render::NamedMap;

constexpr float control_room = 190;  // of the popup of colors, at scale 1

const std::array ranges{
    Option{"by matrix", "Each matrix of signed numbers has its own range; weights range from 0 to 1"},
    Option{"by stage", "One range for all heads of a stage, so that heads can be compared"},
    Option{"one for all", "One range for all stages of signed numbers, in every head"},
    Option{"typed", "The ends that you type"}};

const std::array<std::string, 2> measures{"linear", "logarithmic"};

/// Sets the typed ends of a range; a message refuses a low end that is not below the high one.
void change_ends(const Frame& frame, const char* which, ColorLimits ColorChoice::*field, ColorLimits wanted) {
  if (!(wanted.low < wanted.high)) {
    const bool equal = wanted.low == wanted.high;
    const std::string found = number_text(wanted.low) + " and " + number_text(wanted.high);
    frame.commands.add(ShowMessage{std::string("colors of ") + which +
                                       ": expected a low end below the high end, found " + found +
                                       (equal ? ", which are equal" : ", which are swapped"),
                                   true});
    return;
  }
  frame.commands.add(field == &ColorChoice::typed_values ? set<&ColorChoice::typed_values>(wanted)
                                                         : set<&ColorChoice::typed_weights>(wanted),
                     set<&ColorChoice::locked>(std::nullopt));
}

void typed_row(const FormRows& form, const char* which, const char* words, ColorLimits ColorChoice::*field) {
  const Frame& frame = form.frame;
  const ColorLimits now = frame.displayed.look.colors.*field;
  const std::string name = std::string("colours/") + which;
  const float width = frame.metrics.px(80);
  form.row(words);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (const auto low = real_field(frame, name + "/low", (name + ", low end").c_str(), now.low, width))
    change_ends(frame, which, field, {*low, now.high});
  tooltip("The low end of the colors; smaller numbers have a cut corner");
  draw_label(frame, frame.fonts.sans15, {at.x + width + frame.metrics.px(8), at.y}, frame.palette.dim, "to");
  platform::move_to({at.x + frame.metrics.px(control_room) - width, at.y});
  if (const auto high = real_field(frame, name + "/high", (name + ", high end").c_str(), now.high, width))
    change_ends(frame, which, field, {now.low, *high});
  tooltip("The high end of the colors; larger numbers have a cut corner");
}

void map_row(const FormRows& form, const char* words, const char* name, ColorMap ColorChoice::*field,
             std::span<const NamedMap> maps) {
  const Frame& frame = form.frame;
  std::vector<Option> options;
  std::size_t now = 0;
  for (std::size_t k = 0; k < maps.size(); ++k) {
    options.push_back({maps[k].name});
    if (maps[k].map == frame.displayed.look.colors.*field) now = k;
  }
  form.row(words);
  if (const auto chosen = combo(frame, name, frame.metrics.px(control_room), options, now))
    frame.commands.add(field == &ColorChoice::sequential ? set<&ColorChoice::sequential>(maps[*chosen].map)
                                                         : set<&ColorChoice::diverging>(maps[*chosen].map));
  tooltip(
      field == &ColorChoice::sequential
          ? "The color map of weights, from 0 to 1"
          : "The color map of signed numbers: embeddings, queries, keys, values, scores, context vectors, output");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = frame.metrics.px(control_room);
  draw_color_map(frame, at, {at.x + width, at.y + frame.metrics.px(6)}, maps[now].map);
  reserve_room(at, {width, frame.metrics.px(9)});
}

/// Returns "colors by matrix", with other choices: ", log", ", locked".
std::string colors_words(const ColorChoice& choice) {
  std::string words = "colors " + ranges[static_cast<std::size_t>(choice.range)].words;
  if (choice.logarithmic) words += ", log";
  return choice.locked ? words + ", locked" : words;
}

/// Draws the popup of color settings with that name while it is open, with its top right corner there.
void draw_colors_popup(const Frame& frame, const char* name, ImVec2 top_right) {
  ImGui::SetNextWindowPos(top_right, ImGuiCond_Always, {1, 0});
  if (!ImGui::BeginPopup(name)) return;
  const ColorChoice& choice = frame.displayed.look.colors;
  {
    const FormRows form(frame, "colors");
    form.row("range");
    const auto now = static_cast<std::size_t>(choice.range);
    if (const auto rule = combo(frame, "colours/range", frame.metrics.px(control_room), ranges, now))
      frame.commands.add(set<&ColorChoice::range>(static_cast<ColorRangeRule>(*rule)),
                         set<&ColorChoice::locked>(std::nullopt));
    if (choice.range == ColorRangeRule::typed) {
      typed_row(form, "values", "signed", &ColorChoice::typed_values);
      typed_row(form, "weights", "0 to 1", &ColorChoice::typed_weights);
    }
    form.row("measure");
    if (const auto measure = segmented(frame, "colours/measure", measures, choice.logarithmic ? 1 : 0))
      frame.commands.add(set<&ColorChoice::logarithmic>(*measure == 1),
                         set<&ColorChoice::locked>(std::nullopt));
    tooltip(
        "Logarithmic scale: equal steps of color are equal ratios. Zeros are not colored; their number is next to the bar.");
    form.row("hold");
    if (checkbox(frame, "colours/lock", "as they are now", choice.locked.has_value(),
                 "Keeps the ends fixed while numbers change; numbers outside have a cut corner"))
      perform("colours/lock", situation_of(frame), frame.commands);
    map_row(form, "0 to 1", "colours/sequential", &ColorChoice::sequential, render::sequential_maps());
    map_row(form, "signed", "colours/diverging", &ColorChoice::diverging, render::diverging_maps());
  }  // ends the table
  ImGui::EndPopup();
}

constexpr std::array tabs{
    TabTitle{Tab::learn, "Learn", "A small transformer that learns a task"},
    TabTitle{Tab::layers, "Layers", "Every head of every layer, and which token comes next"},
    TabTitle{Tab::stages, "Stages", "Every stage of one head, from embeddings to output"},
    TabTitle{Tab::heads, "Heads", "One stage of all heads, side by side"},
    TabTitle{Tab::tokens, "Tokens", "Which key each query attends to, as lines"},
    TabTitle{Tab::compare, "Compare", "A snapshot and the live model, stage by stage"}};

}  // namespace

const TabTitle& tab_title(Tab tab) {
  static constexpr TabTitle laboratory{Tab::laboratory, "Dropout laboratory",
                                       "Many dropout masks, their mean, and its convergence"};
  const auto* const found = std::ranges::find(tabs, tab, &TabTitle::tab);
  return found == tabs.end() ? laboratory : *found;
}

namespace {

/// Returns whether a tab has anything to show.
bool is_shown(const Frame& frame, const TabTitle& row) {
  if (row.tab == Tab::learn) return frame.pending.learning && frame.pending.learning->is_open();
  return row.tab != Tab::layers || frame.pending.full_model;
}

/// Draws the tabs as one combo box, where they do not fit side by side; returns where it ends.
float draw_tabs_as_combo(const Frame& frame, float width) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  platform::move_to({origin.x, origin.y + (frame.metrics.tabs - frame.metrics.frame) / 2});
  ImGui::SetNextItemWidth(std::min(width, frame.metrics.px(130)));
  platform::push_font(frame.fonts.sans15);
  if (begin_combo(frame, "##tabs", tab_title(frame.displayed.look.tab).title)) {
    for (const TabTitle& row : tabs) {
      if (!is_shown(frame, row)) continue;
      if (ImGui::Selectable(row.title, row.tab == frame.displayed.look.tab))
        frame.commands.add(set<&Look::tab>(row.tab));
      frame.landmarks.mark_item(std::string("tabs/") + row.title);
      tooltip(row.about);
    }
    ImGui::EndCombo();
  }
  ImGui::PopFont();
  frame.landmarks.mark_item("tabs");
  return ImGui::GetItemRectMax().x + frame.metrics.px(12);
}

/// Draws the tabs; returns where the last one ends.
float draw_tabs(const Frame& frame, float room) {
  ImFont* font = frame.fonts.sans16;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.tabs, gap = frame.metrics.px(frame.pending.full_model ? 20 : 24);
  float all = 0;
  for (const TabTitle& row : tabs)
    if (is_shown(frame, row)) all += text_width(font, row.title) + gap;
  if (all > room) return draw_tabs_as_combo(frame, room);
  float x = origin.x;
  for (const TabTitle& row : tabs) {
    if (!is_shown(frame, row)) continue;
    const float width = text_width(font, row.title);
    platform::move_to({x, origin.y});
    hit_area(row.title, {width, height});
    frame.landmarks.mark_item(std::string("tabs/") + row.title);
    tooltip(row.about);
    if (ImGui::IsItemActivated()) frame.commands.add(set<&Look::tab>(row.tab));
    draw_focus(frame, {x - frame.metrics.px(6), origin.y + frame.metrics.px(5)},
               {x + width + frame.metrics.px(6), origin.y + height - frame.metrics.px(5)});
    const bool chosen = frame.displayed.look.tab == row.tab;
    const bool highlighted = chosen || ImGui::IsItemHovered() || ImGui::IsItemFocused();
    draw_text(font, {x, origin.y + height / 2}, Align::left_middle,
              highlighted ? frame.palette.text : frame.palette.dim, row.title);
    if (chosen)
      draw_rect({x, origin.y + height - frame.metrics.px(2)}, {x + width, origin.y + height},
                frame.palette.accent);
    x += width + gap;
  }
  return x;
}

/// Choice among numbers from 0: buttons, or a combo box when there are many.
struct NumberChoice {
  const char *name, *help;  ///< landmark and tooltip
  std::size_t count, selected;
};

bool has_buttons(const Frame& frame, std::size_t count) {
  return count <= (frame.pending.full_model || frame.metrics.compact ? 4u : 8u);
}

float numbers_width(const Frame& frame, std::size_t count) {
  return has_buttons(frame, count) ? frame.metrics.px(26) * static_cast<float>(count) : frame.metrics.px(76);
}

/// Draws the choice at the cursor; returns the chosen number.
std::optional<std::size_t> draw_numbers(const Frame& frame, float width, const NumberChoice& c) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  std::vector<Option> numbers;
  for (std::size_t k = 0; k < c.count; ++k) numbers.push_back({std::to_string(k)});
  std::optional<std::size_t> chosen;
  if (has_buttons(frame, c.count)) {
    platform::push_font(frame.fonts.mono14);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, ImGui::GetStyle().FramePadding.y});
    for (std::size_t k = 0; k < c.count; ++k) {
      if (k > 0) ImGui::SameLine(0, 0);
      const std::string name = fmt::format("{}/{}", c.name, k);
      const auto& control = frame.palette.control;
      ImGui::PushStyleColor(ImGuiCol_Button, vec(k == c.selected ? control.active : control.rest));
      if (ImGui::Button((numbers[k].words + "##" + name).c_str(),
                        {frame.metrics.px(26), frame.metrics.frame}))
        chosen = k;
      ImGui::PopStyleColor();
      frame.landmarks.mark_item(name);
      tooltip(c.help);
    }
    ImGui::PopStyleVar();
    ImGui::PopFont();
  } else {
    chosen = combo(frame, c.name, width, numbers, c.selected, "", frame.fonts.mono14);
    tooltip(c.help);
  }
  frame.landmarks.mark(std::string(c.name) + "s", at, ImGui::GetItemRectMax());
  return chosen;
}

std::size_t n_layers(const Frame& frame) {
  return frame.pending.full_model->model->description().sizes.n_layers;
}

float heads_width(const Frame& frame, bool) {
  return numbers_width(frame, frame.displayed.model.n_heads);
}

float layers_width(const Frame& frame, bool) {
  return numbers_width(frame, n_layers(frame));
}

float chooser_width(const Frame& frame, bool) {
  return frame.metrics.px(!frame.metrics.compact ? 150 : frame.pending.full_model ? 104 : 120);
}

float colors_width(const Frame& frame, bool is_brief) {
  return frame.metrics.px(is_brief || frame.metrics.compact ? 100 : 150);
}

template <int at_scale_1>
float fixed_width(const Frame& frame, bool) {
  return frame.metrics.px(at_scale_1);
}

void draw_head_chooser(const Frame& frame, float width) {
  const NumberChoice heads{"view/head", "Selects the head (1 … 9, [ and ])", frame.displayed.model.n_heads,
                           frame.displayed.look.head};
  if (const auto head = draw_numbers(frame, width, heads)) frame.commands.add(set<&Look::head>(*head));
}

void draw_layer_chooser(const Frame& frame, float width) {
  const NumberChoice layers{"view/layer", "Selects the layer (Page Up, Page Down)", n_layers(frame),
                            frame.pending.full_model->experiment.layer};
  if (const auto layer = draw_numbers(frame, width, layers)) frame.commands.add(ShowLayer{*layer});
}

/// Draws the button that names the color settings and opens their popup.
void draw_colors(const Frame& frame, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string words = colors_words(frame.displayed.look.colors);
  const bool fits = text_width(frame.fonts.sans14, words) <= menu_button_room(frame, width);
  const std::string shown = fits ? words : words.substr(words.find(' ') + 1);  // "by matrix"
  if (menu_button(frame, "view/range", shown, width)) ImGui::OpenPopup("colours");
  tooltip(words + ": sets the range of the colors, the color map, and linear or logarithmic scale");
  draw_colors_popup(frame, "colours", {at.x + width, at.y + frame.metrics.frame + frame.metrics.px(4)});
}

/// Draws the choice of the sort order of heads.
void draw_order_chooser(const Frame& frame, float width) {
  const auto metrics = core::attention::head_metrics();
  std::vector<Option> options{{.words = "index", .name = "number"}};
  std::size_t now = 0;
  for (const auto& metric : metrics) {
    if (frame.displayed.look.heads_order == metric.figure) now = options.size();
    options.push_back({.words = metric.title, .name = metric.name});
  }
  const auto k = combo(frame, "view/order", width, options, now, "", frame.fonts.sans14);
  tooltip("Sorts the heads by index, mean entropy, or mean weight on certain tokens");
  if (k)
    frame.commands.add(
        set<&Look::heads_order>(*k == 0 ? std::nullopt : std::optional(metrics[*k - 1].figure)));
}

void draw_stage_chooser(const Frame& frame, float width) {
  std::vector<Option> options;
  std::vector<Stage> shown;
  std::size_t now = 0;
  for (const StageInfo& info : core::attention::stages()) {
    if (!frame.displayed.has(info.stage) || !info.per_head) continue;
    if (info.stage == frame.displayed.look.heads_stage) now = options.size();
    options.push_back({info.title});
    shown.push_back(info.stage);
  }
  const auto k = combo(frame, "view/stage", width, options, now, "", frame.fonts.sans14);
  tooltip("The stage to show for every head");
  if (k) frame.commands.add(set<&Look::heads_stage>(shown[*k]));
}

/// Draws the slider of the smallest weight with a line, finer near 0.
void draw_threshold(const Frame& frame, float width) {
  const double now = frame.displayed.look.tokens.hide_below;
  const auto below =
      slider(frame, "view/hide_below", width, now, fixed(now, 3), ImGuiSliderFlags_Logarithmic);
  tooltip("Weights below this have no line. Ctrl+click to type.");
  if (below) frame.commands.add(set<&TokensLook::hide_below>(*below));
}

/// Draws the choice of the maps of Layers.
void draw_maps_chooser(const Frame& frame, float width) {
  if (frame.pending.full_model && frame.pending.full_model->experiment.first) {
    static constexpr std::array order{LayerMaps::before, LayerMaps::weights, LayerMaps::change};
    static const std::array<std::string, 3> words{"A", "B", "B − A"};
    const auto shown = std::ranges::find(order, frame.pending.layers->maps) - order.begin();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (const auto k = segmented(frame, "view/maps", words, static_cast<std::size_t>(shown)))
      frame.commands.add(set<&LayersLook::maps>(order[*k]));
    const float third = (ImGui::GetItemRectMax().x - at.x) / 3;
    const ImVec2 min{at.x + third, at.y}, max{min.x + third, ImGui::GetItemRectMax().y};
    const ImGuiPayload* payload = ImGui::GetDragDropPayload();  // B takes a head that is dragged onto it
    if (!payload || !payload->IsDataType(dragged_head) || !ImGui::IsMouseHoveringRect(min, max, false))
      return;
    outline(min, max, frame.palette.accent, 2);
    std::array<std::size_t, 2> head{};
    std::memcpy(head.data(), payload->Data, sizeof head);
    if (ImGui::IsMouseReleased(0))
      frame.commands.add(TogglePatch{{head[0], core::transformer::PatchedPart::head, head[1]}},
                         set<&LayersLook::maps>(LayerMaps::weights));
    return;
  }
  const std::array<Option, 3> options{Option{"weights", "The weights of every head on this prompt"},
                                      Option{"before the edits", "The weights of the model as it was opened"},
                                      Option{"change", "The weights now minus those before the edits"}};
  const auto now = static_cast<std::size_t>(frame.pending.layers->maps);
  if (const auto chosen = combo(frame, "view/maps", width, options, now, "", frame.fonts.sans14))
    frame.commands.add(set<&LayersLook::maps>(static_cast<LayerMaps>(*chosen)));
}

/// Draws the choice of the lens of Layers.
void draw_lens_chooser(const Frame& frame, float width) {
  const std::array<Option, 4> options{
      Option{"logit lens", "The next token if the model ended after each layer"},
      Option{"logit lens, also between", "Also between attention and the MLP of each layer"},
      Option{
          "tuned lens",
          "With the learned map of each layer in lens/params.pt next to the model; only its sizes are compared with "
          "the model's"},
      Option{"Jacobian lens",
             "With the mean Jacobian of each layer, in a file of the folder lens next to the model"}};
  const auto now = static_cast<std::size_t>(frame.pending.layers->lens);
  const std::string shown = now == 1 ? "logit lens +" : "";
  if (const auto chosen = combo(frame, "view/lens", width, options, now, shown, frame.fonts.sans14))
    frame.commands.add(set<&LayersLook::lens>(static_cast<core::transformer::LensKind>(*chosen)));
}

void draw_bars_chooser(const Frame& frame, float width) {
  const std::array<Option, 2> options{
      Option{"direct logit attribution", "What each head adds to the logit of the selected token"},
      Option{"ablation effect", "How that logit changes without the head; runs the model once for each"}};
  const std::size_t now = frame.pending.layers->shows_effects ? 1 : 0;
  const std::string shown = now == 0 ? "direct logit attr." : options[now].words;
  const auto chosen = combo(frame, "view/bars", width, options, now, shown, frame.fonts.sans14);
  if (!chosen || *chosen == now) return;
  if (*chosen == 1)
    frame.commands.add(SweepHeads{});
  else
    frame.commands.add(set<&LayersLook::shows_effects>(false));
}

/// One control of the bar or of its menu.
struct BarControl {
  const char* label;                                  ///< before it, unless it names itself
  float (*width)(const Frame& frame, bool is_brief);  ///< in pixels; brief: where there is little room
  void (*draw)(const Frame& frame, float width);      ///< at the cursor
  bool names_itself = false;
  bool is_optional = false;  ///< a menu has it, too
};

constexpr BarControl threshold_control{"hide below", fixed_width<150>, draw_threshold};
constexpr BarControl stage_control{"stage", chooser_width, draw_stage_chooser};
constexpr BarControl sort_control{"sort", chooser_width, draw_order_chooser};
constexpr BarControl head_control{"head", heads_width, draw_head_chooser};
constexpr BarControl layer_control{"layer", layers_width, draw_layer_chooser};
constexpr BarControl maps_control{"maps", fixed_width<116>, draw_maps_chooser};
constexpr BarControl lens_control{
    .label = "lens", .width = fixed_width<116>, .draw = draw_lens_chooser, .is_optional = true};
constexpr BarControl bars_control{"bars", fixed_width<150>, draw_bars_chooser};
constexpr BarControl colors_control{.label = "colours",
                                    .width = colors_width,
                                    .draw = draw_colors,
                                    .names_itself = true,
                                    .is_optional = true};

/// Returns the controls of the displayed view, from right to left.
std::vector<BarControl> view_controls(const Frame& frame) {
  std::vector<BarControl> controls;
  switch (frame.displayed.look.tab) {
    case Tab::layers:
      if (frame.pending.full_model && frame.pending.full_model->experiment.first)
        return {maps_control};  // bars and the stream are of the differences of two prompts
      return {bars_control, lens_control, maps_control};
    case Tab::learn:
      return {};
    case Tab::tokens:
      controls = {threshold_control};
      break;
    case Tab::heads:
      controls = {stage_control, sort_control, colors_control};
      break;
    case Tab::compare:
      controls = {head_control};
      break;
    default:
      controls = {head_control, colors_control};
  }
  if (frame.pending.full_model) controls.push_back(layer_control);
  return controls;
}

/// Draws controls up to right, the first one there, each after its label unless brief, or only measures them;
/// returns where they begin.
float lay_out(const Frame& frame, std::span<const BarControl> controls, float right, float top, bool is_brief,
              bool draws) {
  constexpr float label_gap = 8, gap = 20, brief_gap = 10;  // at scale 1
  float x = right;
  for (const BarControl& control : controls) {
    if (x < right) x -= frame.metrics.px(is_brief ? brief_gap : gap);
    const float width = control.width(frame, is_brief);
    x -= width;
    if (draws) {
      platform::move_to({x, top});
      control.draw(frame, width);
    }
    if (is_brief || control.names_itself) continue;  // the tooltips name the fields
    x -= frame.metrics.px(label_gap);
    if (draws)
      draw_text(frame.fonts.sans15, {x, top + frame.metrics.frame / 2}, Align::right_middle,
                frame.palette.dim, control.label);
    x -= text_width(frame.fonts.sans15, control.label);
  }
  return x;
}

/// Draws the controls one below the other in a menu, where the bar has no room for them.
void draw_controls_menu(const Frame& frame, std::span<const BarControl> controls, float right, float top) {
  const char* words = "show…";
  platform::move_to({right - button_width(frame, words), top});
  if (button(frame, "view/menu", words)) ImGui::OpenPopup("view menu");
  tooltip("Head, colors and other options of this view");
  ImGui::SetNextWindowPos({right, top + frame.metrics.frame + frame.metrics.px(4)}, ImGuiCond_Always, {1, 0});
  if (!ImGui::BeginPopup("view menu")) return;
  {
    const FormRows form(frame, "controls");
    for (const BarControl& c : controls) {
      form.row(c.label);
      c.draw(frame, std::max(frame.metrics.px(170), c.width(frame, false)));
    }
  }  // ends the table
  ImGui::EndPopup();
}

/// Draws the controls of the displayed view: without colors, which the View menu has, too, or without labels
/// where there is little room, and in a menu where there is less.
void draw_view_controls(const Frame& frame, float right, float top, float room) {
  const std::vector<BarControl> all = view_controls(frame);
  std::vector<BarControl> without_colors = all;
  std::erase_if(without_colors, [](const BarControl& control) { return control.is_optional; });
  for (const bool is_brief : {false, true})
    for (const std::vector<BarControl>& controls : {all, without_colors})
      if (const float left = lay_out(frame, controls, right, top, is_brief, false); right - left <= room) {
        frame.landmarks.mark("view/controls", {left, top}, {right, top + frame.metrics.frame});
        lay_out(frame, controls, right, top, is_brief, true);
        return;
      }
  draw_controls_menu(frame, all, right, top);
}

}  // namespace

void draw_view_bar(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float top = origin.y + (frame.metrics.tabs - frame.metrics.frame) / 2;
  const float right = origin.x + width - ImGui::GetStyle().ScrollbarSize;
  const float menu = frame.metrics.px(70);
  const float end = draw_tabs(frame, right - menu - origin.x);
  draw_view_controls(frame, right, top, right - end);
}

}  // namespace app::panels
