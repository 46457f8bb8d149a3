#include "app/ui/panels/bars/bars.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "app/session/jobs.hpp"
#include "app/session/learning.hpp"
#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/panels/start/start_page.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/text.hpp"
#include "core/base/version.hpp"

namespace app::panels {

namespace {

/// Returns the features of the model that are not supported, as a sentence, or "".
std::string not_supported_line(const Frame& frame) {
  std::string words;
  for (const auto& feature : frame.document.import_report.not_supported)
    words += (words.empty() ? "Not computed: " : ", ") + feature.words;
  return words.empty() ? words : words + ". Scores and weights differ from those of the model.";
}

std::string reservations_line(const Frame& frame) {
  core::importing::ImportReport rest = frame.document.import_report;
  rest.not_supported.clear();
  std::string words = core::importing::caveats_text(rest);
  for (const std::string& note : frame.document.notes) words += (words.empty() ? "" : " · ") + note;
  return words;
}

float line_height(const Frame& frame) {
  return frame.metrics.px(20);
}

void draw_line(const Frame& frame, const char* landmark, Rgb color, const std::string& words) {
  if (words.empty()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImFont* font = frame.fonts.sans14;
  hit_area(landmark, {width, line_height(frame)});
  frame.landmarks.mark_item(landmark);
  const bool fits = text_width(font, words) <= width;
  draw_text(font, {at.x, centered_y(font, at.y, line_height(frame))}, color,
            fits ? words : shortened(font, words, width));
  tooltip(words + "\n" + core::importing::import_report_text(frame.document.import_report));
  platform::move_to({at.x, at.y + line_height(frame)});
}

}  // namespace

float banner_height(const Frame& frame) {
  const int n_lines = !not_supported_line(frame).empty() + !reservations_line(frame).empty();
  return n_lines == 0 ? 0 : static_cast<float>(n_lines) * line_height(frame) + frame.metrics.px(8);
}

void draw_banner(const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  platform::move_to({at.x, at.y + frame.metrics.px(4)});
  draw_line(frame, "banner/left_out", frame.palette.status.warning, not_supported_line(frame));
  draw_line(frame, "banner/reservations", frame.palette.dim, reservations_line(frame));
}

namespace {

constexpr float menu_gap = 24;  // at scale 1

/// Pushes the style that centers the names of the menus in their bar; lines of open menus keep their spacing.
void push_bar_style(const Frame& frame) {
  const float above = std::round((frame.metrics.menu - platform::font_size(frame.fonts.sans16)) / 2);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {ImGui::GetStyle().FramePadding.x, above});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing,
                      {std::round(frame.metrics.px(menu_gap) / 2), ImGui::GetStyle().ItemSpacing.y});
}

/// Draws a menu; lists its actions only while it is open.
void draw_menu(const Frame& frame, const TopLevelMenu& top_level_menu) {
  const std::string name = std::string("menu/") + top_level_menu.menu;
  push_bar_style(frame);
  const bool open = ImGui::BeginMenu(top_level_menu.menu);
  ImGui::PopStyleVar(2);
  if (!open) frame.landmarks.mark_item(name);
  if (!open) return;
  const ActionContext context = situation_of(frame);
  draw_menu_items(frame, context, actions(context), top_level_menu.menu);
  ImGui::EndMenu();
  frame.landmarks.mark_item(name);
}

void title(const Frame& frame) {
  ImFont* font = frame.fonts.sans14;
  const ImVec2 pos = ImGui::GetWindowPos();
  if (shows_start_page(frame)) return;
  const std::string words = frame.document.title + (frame.document.modified ? " •" : "");
  const float right = pos.x + ImGui::GetWindowWidth() - frame.metrics.padding;
  const float room = right - ImGui::GetCursorScreenPos().x - frame.metrics.px(24);
  if (room <= 0) return;
  const std::string shown = shortened(font, words, room);
  const float y = centered_y(frame.fonts.sans16, pos.y, frame.metrics.menu) +
                  baseline_drop(frame.fonts.sans16, font),
              width = text_width(font, shown);
  draw_text(font, {right - width, y}, frame.palette.dim, shown);
  frame.landmarks.mark("menu/title", {right - width, pos.y}, {right, pos.y + frame.metrics.menu});
}

}  // namespace

void draw_menu_bar(const Frame& frame) {
  platform::push_font(frame.fonts.sans16);
  push_bar_style(frame);
  const bool visible = ImGui::BeginMenuBar();
  ImGui::PopStyleVar(2);
  if (visible) {
    ImGui::SetCursorPosX(frame.metrics.padding - std::round(frame.metrics.px(menu_gap) / 4));
    for (const TopLevelMenu& top_level_menu : top_level_menus()) draw_menu(frame, top_level_menu);
    title(frame);
    ImGui::EndMenuBar();
  }
  ImGui::PopFont();
}

bool inspector_replaces_edit(const Frame& frame) {
  return frame.metrics.narrow &&
         frame.displayed.selection.shows_inspector.value_or(frame.displayed.selection.pinned.has_value());
}

float side_tabs_height(const Frame& frame) {
  return frame.metrics.narrow ? frame.metrics.px(31) : 0;
}

void draw_side_tabs(const Frame& frame) {
  const std::array all{TabItem{"side/edit", "Edit"}, TabItem{"side/inspector", "Inspector"}};
  const auto chosen =
      tabs(frame, ImGui::GetContentRegionAvail().x, all, inspector_replaces_edit(frame) ? 1 : 0);
  if (chosen) frame.commands.add(set<&Selection::shows_inspector>(*chosen == 1));
}

namespace {

std::string hint(const Frame& frame) {
  if (shows_start_page(frame))
    return "a card's number, or Tab and Enter, opens it · Ctrl+O opens a file · Esc goes to the window";
  if (frame.displayed.selection.shows_reference && !frame.compared.references.empty() &&
      frame.displayed.look.tab != Tab::compare)
    return frame.compared.references[frame.displayed.look.compared.reference].name +
           (frame.compared.work.is_updating ? " is being computed"
                                            : " in place of B, as long as Space is held");
  if (frame.displayed.look.tab == Tab::layers && frame.pending.full_model &&
      frame.pending.full_model->experiment.first)
    return "click selects a head · P patches it from A · B shows A, B or B − A · a map dragged onto B patches it";
  if (frame.displayed.look.tab == Tab::layers)
    return "click selects a head or a bar · X ablates it · S: why it looks there · Page Up and Page Down change the layer";
  if (frame.displayed.look.tab == Tab::stages && frame.displayed.look.large &&
      !frame.displayed.selection.pinned)
    return "wheel zooms · drag moves · F fits · click pins · Esc goes back to all stages";
  if (frame.displayed.look.tab == Tab::learn)
    return "Space plays and pauses · ← → step · click selects a head · X ablates it · K: snapshot as A";
  if (frame.displayed.look.tab == Tab::laboratory)
    return "Space resamples · D switches dropout · Esc goes back to the stages";
  if (frame.displayed.look.tab == Tab::compare)
    return !frame.compared.references.empty()
               ? "K: snapshot as A · hold Space to see A in place of B · Esc releases"
               : "K: snapshot as A";
  if (frame.displayed.selection.lesson) return "your own work is kept and comes back when the lesson ends";
  if (frame.displayed.look.tab == Tab::tokens)
    return "click or ↑ ↓ pins a query · 1 … 9 and [ ] switch heads";
  if (frame.displayed.selection.pinned)
    return "click pins another cell · Shift+arrows move it · Esc releases";
  if (frame.displayed.look.tab == Tab::heads)
    return "hover previews · click pins · double-click a name for the head alone";
  return "hover previews · click pins · double-click shows a stage large · Ctrl+wheel zooms";
}

/// Returns as many of the hints, separated by " · ", as fit a width.
std::string hints_within(ImFont* font, std::string words, float width) {
  constexpr std::string_view between = " · ";
  while (!words.empty() && text_width(font, words) > width) {
    const std::size_t last = words.rfind(between);
    words.resize(last == words.npos ? 0 : last);
  }
  return words;
}

std::string duration(double ms) {
  return "computed in " + fixed(ms, ms < 1 ? 2 : ms < 10 ? 1 : 0) + " ms";
}

/// Returns "9,680 parameters   24 tokens, 2 × 2 heads".
std::string run_shape(const Learning& learning) {
  std::size_t n = 0;
  for (const auto& [name, numbers] : learning.snapshots().back()->parameters) n += numbers.n_elem;
  const core::training::TrainingRun& run = *learning.run();
  const core::training::TrainingSetup& setup = run.network().setup;
  return fmt::format("{} parameters   {}, {} × {} heads", count_text(n),
                     core::text::counted(run.data().n_tokens(), "token"), setup.n_layers, setup.n_heads);
}

/// Draws the time of the computation, or the progress of an update; returns the width reserved for either.
float draw_state(const Frame& frame, float right, float middle) {
  ImFont* font = frame.fonts.sans14;
  const std::string time = duration(frame.work.compute_ms);
  const float width =
      std::max(text_width(font, time), frame.work.update_progress ? text_width(font, "updating, 00 %") : 0);
  if (!frame.work.update_progress) {
    draw_text(font, {right, middle}, Align::right_middle, frame.palette.dim, time);
    return width;
  }
  const UpdateProgress& update_progress = *frame.work.update_progress;
  const bool long_enough = update_progress.seconds >= busy_delay_seconds;
  const std::string words =
      "updating" + (long_enough ? fmt::format(", {} %", static_cast<int>(update_progress.share * 100)) : "");
  draw_text(font, {right, middle}, Align::right_middle, frame.palette.text, words);
  frame.landmarks.mark("status/renewal", {right - width, middle - frame.metrics.px(8)},
                       {right, middle + frame.metrics.px(8)});
  if (!long_enough) return width;
  const float top = std::round(middle + frame.metrics.px(9)), bottom = top + frame.metrics.px(2);
  draw_fraction_bar(frame, {right - width, top}, {right, bottom}, update_progress.share,
                    frame.palette.accent);
  return width;
}

}  // namespace

void draw_status(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float middle = origin.y + room.y / 2;
  ImFont* font = frame.fonts.sans14;
  const bool starts = shows_start_page(frame);  // which shows no numbers
  const bool run =
      frame.displayed.look.tab == Tab::learn && frame.pending.learning && frame.pending.learning->run();
  const std::string shape =
      starts ? fmt::format("attnscope {}", core::version())
      : run  ? run_shape(*frame.pending.learning)
             : fmt::format("{}×{}, {}", frame.displayed.model.n_tokens(),
                          frame.displayed.model.has_embeddings() ? frame.displayed.model.d_model()
                                                                  : frame.displayed.model.n_keys(),
                           core::text::counted(frame.displayed.model.n_heads, "head"));
  float right = origin.x + room.x;
  right -=
      draw_text(font, {right, middle}, Align::right_middle, frame.palette.dim, shape) + frame.metrics.px(24);
  if (!starts && !run) right -= draw_state(frame, right, middle) + frame.metrics.px(24);

  // The message comes first: hints get the remaining width.
  const std::string& message = frame.message.text;
  const auto& field = frame.forms.submitted;  // shows its error itself
  const bool has_message = !message.empty() && !(field && field->error == message);
  const float gap = frame.metrics.px(24), all = right - origin.x;
  const float message_width = has_message ? std::min(text_width(font, message), all) + gap : 0;
  const std::string words = hints_within(font, hint(frame), all - message_width);
  draw_text(font, {origin.x, middle}, Align::left_middle, frame.palette.dim, words);
  if (!has_message) return;
  const float message_left = words.empty() ? origin.x : origin.x + text_width(font, words) + gap;
  const Rgb color = frame.message.is_error ? frame.palette.status.bad : frame.palette.text;
  draw_text(font, {message_left, middle}, Align::left_middle, color,
            shortened(font, message, right - message_left));
  platform::move_to({message_left, origin.y});
  hit_area("message", {right - message_left, room.y});
  frame.landmarks.mark_item("status/message");
  tooltip(message);
  if (ImGui::IsItemClicked()) frame.commands.add(CopyText{message});
}

namespace {

/// Returns the actions for a cell; the first row names it.
rows::ActionRows cell_actions(const Frame& frame, const ActionContext& context, const CellRef& cell) {
  const auto& stage = core::attention::info(cell.stage);
  rows::ActionRows all;
  const auto add = [&](const char* id, std::string title, std::string about,
                       std::vector<Command> command_list, const char* key_of_pinned = "") {
    rows::add(all, id, std::move(title), "Cell", 2)
        .about(std::move(about))
        .remark(key_of_pinned)
        .command([command_list = std::move(command_list)](const ActionContext&) { return command_list; });
  };
  rows::add(all, "cell/name",
            fmt::format("{} {}, {}:  {}", stage.one, cell.row, cell.column,
                        fixed(frame.displayed.trace.at(stage.stage, cell.head)(cell.row, cell.column), 4)),
            "Cell");
  rows::add_copy_actions(all, context, "Cell/Copy", cell);
  add("cell/trace", "Trace back", "Pins the cell: the inspector shows how its number comes about",
      {PinCell{cell}});
  add("cell/gradient", "Gradient of this number",
      "Shows in every map how fast this number grows with each other one",
      {ShowGradient{rows::target_of(cell)}}, "Shift+D");
  if (stage.per_head && frame.displayed.model.n_heads > 1)
    add("cell/heads", "Same cell across heads", "Pins the cell and shows this stage of every head",
        {set<&Selection::pinned>(cell), set<&Look::heads_stage>(cell.stage), set<&Look::tab>(Tab::heads)});
  if (const auto edit = mask_switch(cell, frame.displayed.trace))
    add("cell/mask", edit->visible ? "Unmask this position" : "Mask this position",
        "Whether the query attends to the key, in every head", {ApplyEdit{*edit}}, "M");
  if (can_be_overridden(cell.stage))
    add("cell/override", "Override value…", "A number in place of the computed one",
        {PinCell{cell}, set<&Forms::typed>(TypedField{"inspector/typed", "", true, true})}, "N");
  if (cell.stage == Stage::embeddings)
    add("cell/edit", "Edit this number", "Puts the edit cursor on it",
        {MoveEditCursor{core::editing::MatrixName::embeddings, cell.row, cell.column}});
  add("cell/export", "Export the matrix…", "Its numbers or a figure of it, as a file",
      {set<&ExportChoice::from>(std::pair(cell.stage, cell.head)),
       set<&ExportChoice::what>(ExportScope::matrix), ShowDialog{Dialog::export_files}});
  return all;
}

}  // namespace

void draw_cell_menu(const Frame& frame) {
  constexpr const char* name = "copy";
  if (frame.forms.dialog == Dialog::none && frame.displayed.selection.hovered &&
      ImGui::IsMouseClicked(ImGuiMouseButton_Right)) {
    frame.commands.add(set<&Selection::menu_cell>(frame.displayed.selection.hovered));
    ImGui::OpenPopup(name);
  }
  platform::push_font(frame.fonts.sans16);
  if (ImGui::BeginPopup(name)) {
    const ActionContext context = situation_of(frame);
    if (const auto& cell = frame.displayed.selection.menu_cell)
      draw_menu_items(frame, context, cell_actions(frame, context, *cell), "Cell");
    ImGui::EndPopup();
  }
  ImGui::PopFont();
}

}  // namespace app::panels
