#include "app/ui/panels/bars/bars.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {

namespace {

using core::attention::StageInfo;
using render::ColorMap;
using render::NamedMap;

// At scale 1.
constexpr float label_room = 84, control_room = 190;

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

void typed_row(PopupRows& form, const char* which, const char* words, ColorLimits ColorChoice::*field) {
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

void map_row(PopupRows& form, const char* words, const char* name, ColorMap ColorChoice::*field,
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
  // The color map from its low end to its high end.
  const ImVec2 at{form.at.x + frame.metrics.px(label_room), form.at.y};
  constexpr int steps = 64;
  const float width = frame.metrics.px(control_room);
  for (int k = 0; k < steps; ++k)
    draw_rect({at.x + std::round(width * static_cast<float>(k) / steps), at.y},
              {at.x + std::round(width * static_cast<float>(k + 1) / steps), at.y + frame.metrics.px(6)},
              render::color_at(maps[now].map, frame.palette.dark, (k + 0.5) / steps));
  form.at.y += frame.metrics.px(14);
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
  const ImVec2 start = ImGui::GetCursorScreenPos();
  PopupRows form{frame, start, label_room};
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
  reserve_room(start, {frame.metrics.px(label_room + control_room), form.at.y - start.y});
  ImGui::EndPopup();
}

struct TabTitle {
  Tab tab;
  const char* title;
  const char* about;
};

constexpr std::array tabs{
    TabTitle{Tab::layers, "Layers", "Every head of every layer, and which token comes next"},
    TabTitle{Tab::stages, "Stages", "Every stage of one head, from embeddings to output"},
    TabTitle{Tab::heads, "Heads", "One stage of all heads, side by side"},
    TabTitle{Tab::tokens, "Tokens", "Which key each query attends to, as lines"},
    TabTitle{Tab::compare, "Compare", "A snapshot and the live model, stage by stage"}};

/// Shows a tooltip over the last item of the bar.
void bar_tooltip(const Frame& frame, const char* text) {
  if (!ImGui::IsItemHovered()) return;
  platform::push_font(frame.fonts.sans14);
  ImGui::SetTooltip("%s", text);
  ImGui::PopFont();
}

/// Draws the tabs as one combo box, where they do not fit side by side; returns where it ends.
float draw_tabs_as_combo(const Frame& frame, float width) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const auto now = std::ranges::find(tabs, frame.displayed.look.tab, &TabTitle::tab);
  platform::move_to({origin.x, origin.y + (frame.metrics.tabs - frame.metrics.frame) / 2});
  ImGui::SetNextItemWidth(std::min(width, frame.metrics.px(130)));
  platform::push_font(frame.fonts.sans15);
  if (begin_combo(frame, "##tabs", now == tabs.end() ? "Dropout laboratory" : now->title)) {
    for (const TabTitle& row : tabs) {
      if (row.tab == Tab::layers && !frame.pending.full_model) continue;
      if (ImGui::Selectable(row.title, row.tab == frame.displayed.look.tab))
        frame.commands.add(set<&Look::tab>(row.tab));
      frame.landmarks.mark_item(std::string("tabs/") + row.title);
      bar_tooltip(frame, row.about);
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
  const auto is_shown = [&](const TabTitle& row) {
    return row.tab != Tab::layers || frame.pending.full_model;
  };
  float all = 0;
  for (const TabTitle& row : tabs)
    if (is_shown(row)) all += text_width(font, row.title) + gap;
  if (all > room) return draw_tabs_as_combo(frame, room);
  float x = origin.x;
  for (const TabTitle& row : tabs) {
    if (!is_shown(row)) continue;
    const float width = text_width(font, row.title);
    platform::move_to({x, origin.y});
    hit_area(row.title, {width, height});
    frame.landmarks.mark_item(std::string("tabs/") + row.title);
    bar_tooltip(frame, row.about);
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

float label(const Frame& frame, float right, float middle, const char* text) {
  draw_text(frame.fonts.sans15, {right, middle}, Align::right_middle, frame.palette.dim, text);
  return right - text_width(frame.fonts.sans15, text) - frame.metrics.px(20);
}

/// Choice among numbers from 0: buttons, or a combo box when there are many.
struct NumberChoice {
  const char *name, *help;  ///< landmark and tooltip
  std::size_t count, selected;
};

std::size_t max_buttons(const Frame& frame) {
  return frame.pending.full_model ? 4 : frame.metrics.compact ? 4 : 8;
}

float choice_width(const Frame& frame, std::size_t count) {
  return frame.metrics.px(count <= max_buttons(frame) ? 26 * static_cast<float>(count) : 76);
}

/// Draws a choice that ends at right, and subtracts its width from right; returns the chosen number.
std::optional<std::size_t> draw_choice(const Frame& frame, float& right, float top, const NumberChoice& c) {
  std::optional<std::size_t> chosen;
  const float end = right, width = choice_width(frame, c.count), height = frame.metrics.frame;
  right -= width;
  platform::push_font(frame.fonts.mono14);
  if (c.count <= max_buttons(frame)) {
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, ImGui::GetStyle().FramePadding.y});
    for (std::size_t k = 0; k < c.count; ++k) {
      const float each = frame.metrics.px(26);
      platform::move_to({right + each * static_cast<float>(k), top});
      ImGui::PushStyleColor(ImGuiCol_Button,
                            vec(k == c.selected ? frame.palette.control.active : frame.palette.control.rest));
      if (ImGui::Button((std::to_string(k) + "##" + c.name).c_str(), {each, height})) chosen = k;
      ImGui::PopStyleColor();
      frame.landmarks.mark_item(std::string(c.name) + "/" + std::to_string(k));
      bar_tooltip(frame, c.help);
    }
    ImGui::PopStyleVar();
  } else {
    platform::move_to({right, top});
    ImGui::SetNextItemWidth(width);
    const std::string shown = std::to_string(c.selected);
    if (begin_combo(frame, (std::string("##") + c.name).c_str(), shown.c_str())) {
      for (std::size_t k = 0; k < c.count; ++k)
        if (ImGui::Selectable(std::to_string(k).c_str(), k == c.selected)) chosen = k;
      ImGui::EndCombo();
    }
    frame.landmarks.mark_item(c.name);
    bar_tooltip(frame, c.help);
  }
  ImGui::PopFont();
  frame.landmarks.mark(std::string(c.name) + "s", {right, top}, {end, top + height});
  right -= frame.metrics.px(8);
  return chosen;
}

float draw_head_chooser(const Frame& frame, float right, float top) {
  if (const auto head = draw_choice(frame, right, top,
                                    {"view/head", "Selects the head (1 … 9, [ and ])",
                                     frame.displayed.model.n_heads, frame.displayed.look.head}))
    frame.commands.add(set<&Look::head>(*head));
  return right;
}

std::size_t n_layers(const Frame& frame) {
  return frame.pending.full_model->model->description().sizes.n_layers;
}

float draw_layer_chooser(const Frame& frame, float right, float top) {
  if (const auto layer = draw_choice(frame, right, top,
                                     {"view/layer", "Selects the layer (Page Up, Page Down)", n_layers(frame),
                                      frame.pending.full_model->experiment.layer}))
    frame.commands.add(ShowLayer{*layer});
  return right;
}

/// Draws the button that names the color settings and opens their popup; returns where the next control ends.
float draw_colors(const Frame& frame, float right, float top, float width_at_scale_1) {
  const float width = frame.metrics.px(width_at_scale_1);
  const std::string words = colors_words(frame.displayed.look.colors);
  const float room = width - frame.metrics.px(34);
  const bool fits = text_width(frame.fonts.sans14, words) <= room;
  const std::string shown = fits ? words : words.substr(words.find(' ') + 1);  // "by matrix"
  platform::move_to({right - width, top});
  platform::push_font(frame.fonts.sans14);
  ImGui::PushStyleVar(ImGuiStyleVar_ButtonTextAlign, {0, 0.5f});
  const bool pressed = ImGui::Button((shortened(frame.fonts.sans14, shown, room) + "###colours").c_str(),
                                     {width, frame.metrics.frame});
  ImGui::PopStyleVar();
  ImGui::PopFont();
  draw_combo_arrow(frame, ImGui::GetWindowDrawList(), right, top + frame.metrics.frame / 2);
  frame.landmarks.mark_item("view/range");
  bar_tooltip(
      frame,
      (words + ": sets the range of the colors, the color map, and linear or logarithmic scale").c_str());
  if (pressed) ImGui::OpenPopup("colours");
  draw_colors_popup(frame, "colours", {right, top + frame.metrics.frame + frame.metrics.px(4)});
  return right - width - frame.metrics.px(24);
}

float chooser_width(const Frame& frame) {
  return frame.metrics.px(!frame.metrics.compact ? 150 : frame.pending.full_model ? 104 : 120);
}

/// Draws the choice of the sort order of heads; returns where the next control ends.
float draw_order_chooser(const Frame& frame, float right, float top) {
  const float width = chooser_width(frame);
  const auto& order = frame.displayed.look.heads_order;
  const std::string shown = order ? core::attention::info(*order).title : "number";
  platform::move_to({right - width, top});
  ImGui::SetNextItemWidth(width);
  platform::push_font(frame.fonts.sans14);
  if (begin_combo(frame, "##order",
                  shortened(frame.fonts.sans14, shown, width - frame.metrics.px(36)).c_str())) {
    if (ImGui::Selectable("number", !order)) frame.commands.add(set<&Look::heads_order>(std::nullopt));
    frame.landmarks.mark_item("view/order/number");
    for (const auto& figure : core::attention::head_metrics()) {
      if (ImGui::Selectable(figure.title, order == figure.figure))
        frame.commands.add(set<&Look::heads_order>(figure.figure));
      frame.landmarks.mark_item(std::string("view/order/") + figure.name);
    }
    ImGui::EndCombo();
  }
  ImGui::PopFont();
  frame.landmarks.mark_item("view/order");
  bar_tooltip(frame, "Sorts the heads by number, mean entropy, or mean weight on certain tokens");
  return right - width - frame.metrics.px(10);
}

/// Draws the slider of the smallest weight with a line, finer near 0; returns where the next control ends.
float draw_threshold(const Frame& frame, float right, float top) {
  const float width = frame.metrics.px(150);
  double below = frame.displayed.look.tokens.hide_below;
  constexpr double low = 0, high = 1;
  platform::move_to({right - width, top});
  ImGui::SetNextItemWidth(width);
  platform::push_font(frame.fonts.mono14);
  const bool moved = ImGui::SliderScalar("##hide below", ImGuiDataType_Double, &below, &low, &high, "",
                                         ImGuiSliderFlags_AlwaysClamp | ImGuiSliderFlags_Logarithmic);
  ImGui::PopFont();
  frame.landmarks.mark_item("view/hide_below");
  bar_tooltip(frame, "Weights below this have no line. Ctrl+click to type.");
  if (!(ImGui::IsItemActive() &&
        ImGui::GetIO().WantTextInput))  // at the right, clear of the slider's grab, as in every field
    draw_text(frame.fonts.mono14, {right - frame.metrics.px(8), top + frame.metrics.frame / 2},
              Align::right_middle, frame.palette.text, fixed(below, 3));
  if (moved) frame.commands.add(set<&TokensLook::hide_below>(below));
  return right - width - frame.metrics.px(10);
}

float draw_stage_chooser(const Frame& frame, float right, float top) {
  const float width = chooser_width(frame);
  platform::move_to({right - width, top});
  ImGui::SetNextItemWidth(width);
  platform::push_font(frame.fonts.sans14);
  if (begin_combo(frame, "##stage", core::attention::info(frame.displayed.look.heads_stage).title,
                  ImGuiComboFlags_HeightLarge)) {
    for (const StageInfo& stage : core::attention::stages()) {
      if (!frame.displayed.has(stage.stage) || !stage.per_head) continue;
      if (ImGui::Selectable(stage.title, stage.stage == frame.displayed.look.heads_stage))
        frame.commands.add(set<&Look::heads_stage>(stage.stage));
    }
    ImGui::EndCombo();
  }
  ImGui::PopFont();
  frame.landmarks.mark_item("view/stage");
  bar_tooltip(frame, "The stage to show for every head");
  return right - width - frame.metrics.px(10);
}

/// Whether the view shows one layer of a whole model.
bool has_layer_chooser(const Frame& frame) {
  return frame.pending.full_model && frame.displayed.look.tab != Tab::layers;
}

/// Optional parts of the controls, displayed where there is room.
struct ControlsFit {
  bool labels = true, colors = true;
};

// At scale 1.
constexpr float maps_width = 116, bars_width = 150, label_gap = 8, field_gap = 16;

float label_width(const Frame& frame, const char* words) {
  return text_width(frame.fonts.sans15, words) + frame.metrics.px(label_gap);
}

/// Returns the width of the fields of Layers, with or without labels.
float layers_controls_width(const Frame& frame, bool labeled) {
  const float labels = labeled ? label_width(frame, "maps") + label_width(frame, "bars") : 0;
  return frame.metrics.px(maps_width + bars_width + field_gap) + labels;
}

/// Returns the width of the controls of the displayed view.
float controls_width(const Frame& frame, ControlsFit fit) {
  const bool brief = !fit.labels;
  const auto& m = frame.metrics;
  const auto words = [&](const char* text) {
    return brief ? 0 : text_width(frame.fonts.sans15, text) + m.px(20);
  };
  const float chooser = chooser_width(frame) + m.px(10), colors = m.px(brief || m.compact ? 100 : 150);
  const float head = choice_width(frame, frame.displayed.model.n_heads) + m.px(8) + words("head");
  const float layer =
      has_layer_chooser(frame) ? choice_width(frame, n_layers(frame)) + m.px(8) + words("layer") : 0;
  switch (frame.displayed.look.tab) {
    case Tab::tokens:
      return m.px(160) + words("hide below") + layer;
    case Tab::heads:
      return 2 * chooser + (fit.colors ? colors + m.px(14) : 0) + words("stage") + words("sort") + layer;
    case Tab::layers:
      return layers_controls_width(frame, fit.labels);
    case Tab::compare:
      return head + layer;
    default:
      return head + layer + (fit.colors ? colors + m.px(14) : 0);
  }
}

void field_label(const Frame& frame, float right, float top, const char* words) {
  draw_text(frame.fonts.sans15, {right - frame.metrics.px(label_gap), top + frame.metrics.frame / 2},
            Align::right_middle, frame.palette.dim, words);
}

/// Draws the choice of the maps of Layers, which ends at right.
void draw_maps_chooser(const Frame& frame, float right, float top) {
  const std::array<Option, 3> options{Option{"weights", "The weights of every head on this prompt"},
                                      Option{"before the edits", "The weights of the model as it was opened"},
                                      Option{"change", "The weights now minus those before the edits"}};
  const auto now = static_cast<std::size_t>(frame.pending.layers->maps);
  const float width = frame.metrics.px(maps_width);
  platform::move_to({right - width, top});
  if (const auto chosen = combo(frame, "view/maps", width, options, now))
    frame.commands.add(set<&LayersLook::maps>(static_cast<LayerMaps>(*chosen)));
}

void draw_bars_chooser(const Frame& frame, float right, float top) {
  const std::array<Option, 2> options{
      Option{"direct logit attribution", "What each head adds to the logit of the selected token"},
      Option{"ablation effect", "How that logit changes without the head; runs the model once for each"}};
  const std::size_t now = frame.pending.layers->shows_effects ? 1 : 0;
  const float width = frame.metrics.px(bars_width);
  platform::move_to({right - width, top});
  const std::string shown = now == 0 ? "direct logit attr." : options[now].words;
  const auto chosen = combo(frame, "view/bars", width, options, now, shown);
  if (!chosen || *chosen == now) return;
  if (*chosen == 1)
    frame.commands.add(SweepHeads{});
  else
    frame.commands.add(set<&LayersLook::shows_effects>(false));
}

/// Draws the choices of maps and bars of Layers, from right to left on one line. Landmarks "view/maps",
/// "view/bars".
void draw_layers_controls(const Frame& frame, float right, float top, bool labeled) {
  draw_bars_chooser(frame, right, top);
  right -= frame.metrics.px(bars_width);
  if (labeled) {
    field_label(frame, right, top, "bars");
    right -= label_width(frame, "bars");
  }
  right -= frame.metrics.px(field_gap);
  draw_maps_chooser(frame, right, top);
  if (labeled) field_label(frame, right - frame.metrics.px(maps_width), top, "maps");
}

/// Draws the controls of the displayed view, from right to left on one line.
void draw_controls(const Frame& frame, float right, float top, ControlsFit fit) {
  const bool brief = !fit.labels;
  const float middle = top + frame.metrics.frame / 2;
  const auto named = [&](const char* words) {
    if (!brief) right = label(frame, right, middle, words);  // else the tooltips name the fields
  };
  switch (frame.displayed.look.tab) {
    case Tab::layers:
      return draw_layers_controls(frame, right, top, fit.labels);
    case Tab::tokens:
      right = draw_threshold(frame, right, top);
      named("hide below");
      break;
    case Tab::heads:
      right = draw_stage_chooser(frame, right, top);
      named("stage");
      right = draw_order_chooser(frame, right, top);
      named("sort");
      if (fit.colors) right = draw_colors(frame, right, top, frame.metrics.compact ? 100 : 150);
      break;
    default:
      right = draw_head_chooser(frame, right, top);
      named("head");
      if (frame.displayed.look.tab != Tab::compare && fit.colors)
        right = draw_colors(frame, right, top, brief || frame.metrics.compact ? 100 : 150);
  }
  if (has_layer_chooser(frame)) {
    right = draw_layer_chooser(frame, right, top);
    named("layer");
  }
}

/// Draws the controls one below the other in a menu, where the bar has no room for them.
void draw_controls_menu(const Frame& frame, float right, float top) {
  const auto& m = frame.metrics;
  const char* words = "show…";
  platform::push_font(frame.fonts.sans14);
  const float width = text_width(frame.fonts.sans14, words) + 2 * m.px(8);
  platform::move_to({right - width, top});
  const bool pressed = ImGui::Button("show…###view menu", {width, m.frame});
  ImGui::PopFont();
  frame.landmarks.mark_item("view/menu");
  bar_tooltip(frame, "Head, colors and other options of this view");
  if (pressed) ImGui::OpenPopup("view menu");
  const float inside = m.px(276), pad = m.px(12), pitch = m.px(30);
  ImGui::SetNextWindowPos({right - inside - 2 * pad, top + m.frame + m.px(4)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {pad, pad});
  if (ImGui::BeginPopup("view menu")) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float end = at.x + inside;
    float y = at.y;
    const auto row = [&](const char* name, const auto& draw) {
      draw_text(frame.fonts.sans14, {at.x, y + m.frame / 2}, Align::left_middle, frame.palette.dim, name);
      draw(y);
      y += pitch;
    };
    const Tab tab = frame.displayed.look.tab;
    if (tab == Tab::tokens) row("hide below", [&](float line) { draw_threshold(frame, end, line); });
    if (tab == Tab::heads) {
      row("stage", [&](float line) { draw_stage_chooser(frame, end, line); });
      row("sort", [&](float line) { draw_order_chooser(frame, end, line); });
    }
    if (has_layer_chooser(frame)) row("layer", [&](float line) { draw_layer_chooser(frame, end, line); });
    if (tab == Tab::stages || tab == Tab::compare || tab == Tab::laboratory)
      row("head", [&](float line) { draw_head_chooser(frame, end, line); });
    if (tab == Tab::layers) {
      row("maps", [&](float line) { draw_maps_chooser(frame, end, line); });
      row("bars", [&](float line) { draw_bars_chooser(frame, end, line); });
    }
    if (tab != Tab::tokens && tab != Tab::compare && tab != Tab::layers)
      row("colours", [&](float line) { draw_colors(frame, end, line, 150); });
    reserve_room(at, {inside, y - at.y - (pitch - m.frame)});
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

/// Draws the controls of the displayed view from right to left, in a menu where there is not enough room.
void draw_view_controls(const Frame& frame, float right, float top, float room) {
  // Colors may be dropped: the View menu has them, too.
  for (const ControlsFit fit : {ControlsFit{true, true}, {true, false}, {false, true}, {false, false}})
    if (controls_width(frame, fit) <= room) return draw_controls(frame, right, top, fit);
  draw_controls_menu(frame, right, top);
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
