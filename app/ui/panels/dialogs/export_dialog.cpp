#include "app/ui/panels/dialogs/export_dialog.hpp"

#include <algorithm>
#include <array>

#include "app/session/exporting.hpp"
#include "app/ui/panels/dialogs/close_dialog.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/file_browser.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

namespace fs = std::filesystem;

ImVec2 export_browser_size(const Frame& frame) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  return {std::min(frame.metrics.px(640), window.x - frame.metrics.px(80)),
          std::min(frame.metrics.px(360), window.y - frame.metrics.px(280))};
}

std::size_t already_there(const std::vector<fs::path>& files) {
  return static_cast<std::size_t>(std::ranges::count_if(files, [](const fs::path& file) {
    std::error_code error;
    return fs::exists(file, error);
  }));
}

void change_export(const Frame& frame, auto setting) {
  frame.commands.look([setting](View& view) {
    setting(view);
    view.forms.browser.asks_to_replace = false;
  });
}

void choose_form(const Frame& frame) {
  std::vector<std::string> words;
  for (const ExportKind& kind : export_kinds()) words.emplace_back(kind.words);
  if (const auto chosen = widgets::segmented(frame, "dialog/form", words,
                                             static_cast<std::size_t>(frame.settings.export_form)))
    change_export(
        frame, [form = static_cast<ExportForm>(*chosen)](View& view) { view.settings.export_form = form; });
  widgets::paragraph(frame.fonts.sans14, frame.palette.dim, export_browser_size(frame).x,
                     export_kind(frame.settings.export_form).about);
}

void choose_what(const Frame& frame, const ExportAs& e) {
  const auto& choices = export_kind(e.form).choices;
  if (choices.empty()) return;
  std::vector<std::string> words;
  for (const ExportWhat what : choices) words.push_back(words_of(frame.newest.model, e, what));
  const auto current = std::ranges::find(choices, held_by(e.form, e.what)) - choices.begin();
  if (const auto chosen = widgets::segmented(frame, "dialog/what", words, static_cast<std::size_t>(current)))
    change_export(frame, [what = choices[*chosen]](View& view) { view.forms.exporting.what = what; });
}

void choose_look(const Frame& frame, ExportForm form) {
  if (!is_figure(form)) return;
  if (const auto on = widgets::checkbox(frame, "dialog/dark", "dark", frame.settings.export_dark))
    change_export(frame, [on = *on](View& view) { view.settings.export_dark = on; });
  ImGui::SameLine();
  if (const auto on =
          widgets::checkbox(frame, "dialog/numbers", "numbers in cells", frame.settings.export_numbers))
    change_export(frame, [on = *on](View& view) { view.settings.export_numbers = on; });
  if (form != ExportForm::png) return;
  ImGui::SameLine();
  constexpr std::array scales{1, 2, 3, 4};
  const std::array<std::string, 4> words{"1×", "2×", "3×", "4×"};
  const auto current = std::ranges::find(scales, frame.settings.export_scale) - scales.begin();
  if (const auto chosen = widgets::segmented(frame, "dialog/scale", words, static_cast<std::size_t>(current)))
    change_export(frame, [scale = scales[*chosen]](View& view) { view.settings.export_scale = scale; });
}

/// What a title's menu asked for, else the pinned cell's, else the weights.
CellRef exported_matrix(const Frame& frame) {
  if (const auto& from = frame.forms.exporting.from) {
    if (core::attention::info(from->first).present(frame.newest.model) &&
        from->second < frame.newest.model.n_heads)
      return {from->first, from->second, 0, 0};
  }
  return frame.newest.selection.pinned.value_or(CellRef{Stage::weights, frame.newest.look.head, 0, 0});
}

void say_what_is_written(const Frame& frame, const ExportAs& e, const std::vector<fs::path>& files) {
  const std::string what =
      files.size() == 1 ? files.front().string()
                        : std::to_string(files.size()) + " files into " + e.path.string() + ": " +
                              files.front().filename().string() + " … " + files.back().filename().string();
  widgets::paragraph(frame.fonts.sans14, frame.palette.dim, export_browser_size(frame).x, "Writes " + what);
}

void question_to_replace(const Frame& frame, const ExportAs& e, const std::vector<fs::path>& files) {
  const std::size_t n = already_there(files);
  const std::string words = files.size() == 1 ? files.front().filename().string() + " exists. Replace it?"
                                              : std::to_string(n) + " of these files exist. Replace them?";
  widgets::paragraph(frame.fonts.sans15, frame.palette.status.bad, export_browser_size(frame).x, words);
  // A second press in the place of Export replaces nothing.
  if (widgets::button(frame, "dialog/keep", "Keep")) change_export(frame, [](View&) {});
  ImGui::SameLine();
  if (widgets::button(frame, "dialog/replace", "Replace")) frame.commands.add(e);
}

}  // namespace

void draw_export_dialog(const Frame& frame) {
  ExportAs e;
  e.form = frame.settings.export_form, e.what = frame.forms.exporting.what;
  e.matrix = exported_matrix(frame);
  e.document = frame.document.preset.empty() ? frame.document.title : frame.document.preset;
  choose_form(frame);
  choose_what(frame, e);
  choose_look(frame, e.form);
  const std::string proposed = proposed_name(e);
  const auto typed =
      widgets::file_browser(frame, widgets::Listed::directories, export_browser_size(frame), proposed);
  e.path = typed.value_or(widgets::chosen_path(widgets::as_typed(frame, proposed)));
  const std::vector<fs::path> files = planned_files(frame.newest.model, e);
  say_what_is_written(frame, e, files);
  if (frame.forms.browser.asks_to_replace) return question_to_replace(frame, e, files);
  const bool confirmed = widgets::button(frame, "dialog/confirm", "Export");
  ImGui::SameLine();
  if (widgets::button(frame, "dialog/cancel", "Cancel")) close_dialog(frame);
  if (!confirmed && !typed) return;
  if (already_there(files) > 0)
    frame.commands.look([](View& view) { view.forms.browser.asks_to_replace = true; });
  else
    frame.commands.add(e);
}

}  // namespace app::panels
