#include "app/panels/menu_bar.hpp"

#include <array>
#include <cmath>

#include "app/panels/colours_popup.hpp"
#include "app/panels/copy_menu.hpp"
#include "app/panels/draw_dialog.hpp"
#include "app/panels/mistakes.hpp"
#include "app/shortcuts.hpp"
#include "app/widgets/text.hpp"
#include "core/editing/presets.hpp"
#include "core/lessons/lesson.hpp"

namespace app::panels {
namespace {

using core::attention::StageInfo;

bool line(const Frame& frame, const std::string& name, const std::string& words, const char* key = nullptr,
          bool on = false, bool enabled = true) {
  const bool chosen = ImGui::MenuItem(words.c_str(), key, on, enabled);
  frame.landmarks.mark_item(name);
  return chosen;
}

/// Opens a menu under its landmark "menu/…"; draws its lines when it is open.
template <class Lines>
void menu(const Frame& frame, const std::string& name, const char* words, Lines lines) {
  const bool open = ImGui::BeginMenu(words);
  if (!open) frame.landmarks.mark_item(name);
  if (open) {
    lines(frame);
    ImGui::EndMenu();
    frame.landmarks.mark_item(name);
  }
}

void new_lines(const Frame& frame) {
  for (const auto& preset : core::editing::presets()) {
    if (line(frame, std::string("menu/New/") + preset.name, preset.title))
      frame.commands.add(LoadPreset{preset.name});
    widgets::tooltip(preset.about);
  }
}

void recent_lines(const Frame& frame) {
  std::size_t i = 0;
  for (const auto& path : frame.document.recent) {
    ImGui::PushID(static_cast<int>(i));
    if (line(frame, "menu/Recent/" + std::to_string(i), path.filename().string()))
      frame.commands.add(OpenFile{path});
    widgets::tooltip(path.string());
    ImGui::PopID();
    ++i;
  }
  if (frame.document.recent.empty()) ImGui::MenuItem("none yet", nullptr, false, false);
}

void file_lines(const Frame& frame) {
  menu(frame, "menu/New", "New", new_lines);
  if (line(frame, "menu/Open", "Open…", "Ctrl+O")) frame.commands.add(ShowDialog{Dialog::open});
  if (line(frame, "menu/CheckTensors", "Check tensors…", "Ctrl+K")) frame.commands.add(ShowDialog{Dialog::open_tensors});
  menu(frame, "menu/Recent", "Open recent", recent_lines);
  if (frame.document.of_tensors && line(frame, "menu/Choose", "Choose from this file…"))
    frame.commands.add(ShowDialog{Dialog::import_tensors});
  ImGui::Separator();
  if (line(frame, "menu/Save", "Save", "Ctrl+S")) frame.commands.add(SaveFile{});
  if (line(frame, "menu/SaveAs", "Save as…", "Shift+Ctrl+S")) frame.commands.add(ShowDialog{Dialog::save_as});
  if (line(frame, "menu/Export", "Export…", "Ctrl+E")) frame.commands.add(ShowDialog{Dialog::export_files});
  ImGui::Separator();
  if (line(frame, "menu/Quit", "Quit", "Ctrl+Q")) frame.commands.add(Quit{});
}

std::string with(const char* verb, const std::string& words) {
  return words.empty() ? verb : verb + (" " + words);
}

void edit_lines(const Frame& frame) {
  const Document& d = frame.document;
  if (line(frame, "menu/Undo", with("Undo", d.undo_words), "Ctrl+Z", false, d.can_undo))
    frame.commands.add(Undo{});
  if (line(frame, "menu/Redo", with("Redo", d.redo_words), "Ctrl+Y", false, d.can_redo))
    frame.commands.add(Redo{});
  ImGui::Separator();
  const auto text = copied_text(situation_of(frame));
  if (line(frame, "menu/Copy", "Copy", "Ctrl+C", false, text.has_value()))
    frame.commands.add(CopyText{*text});
  menu(frame, "menu/CopyAs", "Copy as", [](const Frame& f) { draw_copy_lines(f, std::nullopt); });
  ImGui::Separator();
  const Frame newest = of_newest(frame);
  const std::size_t n = newest.model.n_tokens();
  if (line(frame, "menu/Sentence", "Type a sentence…")) frame.commands.add(ShowDialog{Dialog::sentence});
  if (line(frame, "menu/AddToken", "Add a token"))
    frame.commands.edit(core::editing::InsertToken{n, std::to_string(n)});
  if (line(frame, "menu/KeepReference", "Keep this as A", "K")) frame.commands.add(KeepReference{});
  if (line(frame, "menu/RemoveToken", "Remove the last token", nullptr, false, n > 1))
    frame.commands.edit(core::editing::RemoveToken{n - 1});
  ImGui::Separator();
  menu(newest, "menu/Mistakes", "Show a mistake", draw_mistakes_menu);
  if (line(frame, "menu/Give", "Give a stage…", "I")) frame.commands.add(ShowDialog{Dialog::give});
  if (line(frame, "menu/DrawModel", "Draw the model as PyTorch would…")) open_draw_dialog(newest);
}

void scale_lines(const Frame& frame) {
  for (const int percent : std::array{100, 125, 150, 200}) {
    const float scale = static_cast<float>(percent) / 100;
    const bool on = std::fabs(frame.view.scale - scale) < 0.01f;
    if (line(frame, "menu/Scale/" + std::to_string(percent), std::to_string(percent) + " %", nullptr, on))
      frame.commands.look([scale](View& view) { view.scale = scale; });
  }
}

void text_lines(const Frame& frame) {
  for (const int percent : std::array{90, 100, 110, 125}) {
    const float size = static_cast<float>(percent) / 100;
    const bool on = std::fabs(frame.view.text_size - size) < 0.01f;
    if (line(frame, "menu/TextSize/" + std::to_string(percent), std::to_string(percent) + " %", nullptr, on))
      frame.commands.look([size](View& view) { view.text_size = size; });
  }
}

void colour_lines(const Frame& frame) {
  const ColourChoice& c = frame.view.colours;
  const auto range = [&](const char* name, const char* words, RangeRule rule) {
    if (line(frame, name, words, nullptr, c.range == rule))
      frame.commands.look([rule](View& view) {
        view.colours.range = rule;
        view.colours.locked.reset();
      });
  };
  range("menu/RangeMatrix", "By matrix", RangeRule::matrix);
  range("menu/RangeStage", "By stage, over its heads", RangeRule::stage);
  range("menu/RangeAllHeads", "One for all stages and heads", RangeRule::all_heads);
  range("menu/RangeTyped", "Typed, beside the tabs", RangeRule::typed);
  ImGui::Separator();
  if (line(frame, "menu/Logarithmic", "Logarithmic", nullptr, c.logarithmic))
    frame.commands.look([](View& view) {
      view.colours.logarithmic = !view.colours.logarithmic;
      view.colours.locked.reset();
    });
  if (line(frame, "menu/Locked", "Locked as they are", nullptr, c.locked.has_value())) switch_lock(frame);
  const auto maps = [&](std::span<const render::NamedMap> all, render::ColourMap ColourChoice::*kept) {
    ImGui::Separator();
    for (const render::NamedMap& map : all)
      if (line(frame, std::string("menu/Map/") + map.name, map.name, nullptr, c.*kept == map.map))
        frame.commands.look([kept, m = map.map](View& view) { view.colours.*kept = m; });
  };
  maps(render::sequential_maps(), &ColourChoice::sequential);
  maps(render::diverging_maps(), &ColourChoice::diverging);
}

void stage_lines(const Frame& frame) {
  for (const StageInfo& stage : core::attention::stages()) {
    if (!stage.present(frame.model)) continue;
    const bool shown = !frame.view.folded.contains(stage.stage);
    if (line(frame, std::string("menu/Stages/") + stage.name, stage.title, nullptr, shown))
      frame.commands.look([which = stage.stage, shown](View& view) {
        if (shown)
          view.folded.insert(which);
        else
          view.folded.erase(which);
      });
  }
}

void view_lines(const Frame& frame) {
  const View& v = frame.view;
  const auto tab = [&](const char* name, const char* words, Tab which) {
    if (line(frame, name, words, nullptr, v.tab == which))
      frame.commands.look([which](View& view) { view.tab = which; });
  };
  tab("menu/Stages", "Stages", Tab::stages);
  tab("menu/Heads", "Heads", Tab::heads);
  tab("menu/Tokens", "Tokens", Tab::tokens);
  tab("menu/Compare", "Compare", Tab::compare);
  tab("menu/Laboratory", "Dropout laboratory", Tab::laboratory);
  ImGui::Separator();
  if (line(frame, "menu/Dark", "Dark", "T", v.dark))
    frame.commands.look([](View& view) { view.dark = true; });
  if (line(frame, "menu/Light", "Light", "T", !v.dark))
    frame.commands.look([](View& view) { view.dark = false; });
  menu(frame, "menu/Scale", "Scale", scale_lines);
  menu(frame, "menu/TextSize", "Text size", text_lines);
  ImGui::Separator();
  menu(frame, "menu/Colours", "Colours", colour_lines);
  if (line(frame, "menu/Gutters", "Row sums and entropy", "G", v.gutters))
    frame.commands.look([](View& view) { view.gutters = !view.gutters; });
  if (line(frame, "menu/Fit", "Fit: show all cells", "F", false, !v.zoomed.empty()))
    frame.commands.look([](View& view) { view.zoomed.clear(); });
  ImGui::Separator();
  menu(frame, "menu/ShownStages", "Shown stages", stage_lines);
}

void lesson_lines(const Frame& frame) {
  for (const auto& lesson : core::lessons::lessons()) {
    const bool on = frame.view.lesson && frame.view.lesson->name == lesson.name;
    if (line(frame, std::string("menu/Lessons/") + lesson.name, lesson.title, nullptr, on))
      frame.commands.add(StartLesson{lesson.name});
    widgets::tooltip(lesson.about);
  }
  ImGui::Separator();
  if (line(frame, "menu/LeaveLesson", "Leave the lesson", "Esc", false, frame.view.lesson.has_value()))
    frame.commands.add(LeaveLesson{});
  if (line(frame, "menu/Glossary", "Glossary")) frame.commands.add(ShowDialog{Dialog::glossary});
}

void help_lines(const Frame& frame) {
  if (line(frame, "menu/Keys", "Keys", "F1")) frame.commands.add(ShowDialog{Dialog::keys});
  if (line(frame, "menu/About", "About")) frame.commands.add(ShowDialog{Dialog::about});
}

void title(const Frame& frame) {
  ImFont* font = frame.fonts.sans14;
  const ImVec2 pos = ImGui::GetWindowPos();
  const std::string words = frame.document.title + (frame.document.modified ? " •" : "");
  const float right = pos.x + ImGui::GetWindowWidth() - frame.metrics.padding;
  const float room = right - ImGui::GetCursorScreenPos().x - frame.metrics.px(24);
  if (room <= 0) return;
  const std::string shown = widgets::shortened(font, words, room);
  const float y = widgets::centred_y(font, pos.y, frame.metrics.menu),
              width = widgets::text_width(font, shown);
  widgets::draw_text(font, {right - width, y}, frame.palette.dim, shown);
  frame.landmarks.mark("menu/title", {right - width, pos.y}, {right, pos.y + frame.metrics.menu});
}

}  // namespace

void draw_menu_bar(const Frame& frame) {
  ImGui::PushFont(frame.fonts.sans16);
  if (ImGui::BeginMenuBar()) {
    menu(frame, "menu/File", "File", file_lines);
    menu(frame, "menu/Edit", "Edit", edit_lines);
    menu(frame, "menu/View", "View", view_lines);
    menu(frame, "menu/Lessons", "Lessons", lesson_lines);
    menu(frame, "menu/Help", "Help", help_lines);
    title(frame);
    ImGui::EndMenuBar();
  }
  ImGui::PopFont();
}

}  // namespace app::panels
