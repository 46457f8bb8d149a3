#include "app/ui/panels/dialogs/file_dialogs.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "app/session/exporting.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/file_browser.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {

std::string_view confirm_buttons(const Frame& frame, float width, const char* words, bool enabled,
                                 const widgets::DialogButton& another) {
  const std::string_view pressed = widgets::dialog_foot(frame, width, {"dialog/confirm", words, enabled},
                                                        {"dialog/cancel", "Cancel"}, another);
  if (pressed == "dialog/cancel") close_dialog(frame);
  return pressed;
}

namespace {

namespace fs = std::filesystem;

ImVec2 browser_size(const Frame& frame) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  return {std::min(frame.metrics.px(640), window.x - frame.metrics.px(80)),
          std::min(frame.metrics.px(420), window.y - frame.metrics.px(200))};
}

/// The answers to whether files are replaced. A second press in the place of Save or Export replaces nothing.
void keep_or_replace(const Frame& frame, float width, const Command& replacing) {
  const std::string_view pressed =
      widgets::dialog_foot(frame, width, {"dialog/keep", "Keep"}, {}, {"dialog/replace", "Replace"});
  if (pressed == "dialog/keep") frame.commands.add(set<&Browser::asks_to_replace>(false));
  if (pressed == "dialog/replace") frame.commands.add(replacing);
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

void question_to_replace(const Frame& frame, const fs::path& path) {
  widgets::paragraph(frame.fonts.sans15, frame.palette.status.bad, browser_size(frame).x,
                     path.filename().string() + " exists. Replace it?");
  keep_or_replace(frame, browser_size(frame).x, SaveFileAs{path});
}

fs::path with_json(fs::path path) {
  if (path.extension() != ".json") path += ".json";
  return path;
}

/// Says what is in the file whose name was chosen; it is read beside the window.
void preview(const Frame& frame) {
  const fs::path path = widgets::chosen_path(frame.forms.browser);
  const bool is_known = frame.work.opening && frame.work.opening->previewed == path;
  const auto& entries = frame.forms.browser.entries;
  const bool is_file = std::any_of(entries.begin(), entries.end(), [&](const BrowserEntry& e) {
    return !e.is_directory && e.name == frame.forms.browser.name;
  });
  if (is_file && !is_known) frame.commands.add(PreviewFile{path});
  const std::string words = !is_file                                           ? " "
                            : is_known && !frame.work.opening->preview.empty() ? frame.work.opening->preview
                            : is_known && frame.work.opening->is_reading       ? "…"
                                                                               : " ";
  widgets::draw_two_lines(frame.fonts.sans14, ImGui::GetCursorScreenPos(), browser_size(frame).x,
                          frame.metrics.px(18), frame.palette.dim, words);
  ImGui::Dummy({browser_size(frame).x, frame.metrics.px(38)});
  frame.landmarks.mark_item("browser/preview");
}

/// The file that was chosen in this frame; a chosen folder is entered.
std::optional<fs::path> file_to_open(const Frame& frame, widgets::Listed listed,
                                     const widgets::DialogButton& another = {},
                                     const std::function<void()>& on_another = {}) {
  auto path = widgets::file_browser(frame, listed, browser_size(frame));
  preview(frame);
  const std::string_view pressed =
      confirm_buttons(frame, browser_size(frame).x, "Open", !frame.forms.browser.name.empty(), another);
  if (pressed == "dialog/confirm") path = widgets::chosen_path(frame.forms.browser);
  if (another.name && pressed == another.name) on_another();
  if (!path || !is_folder(*path)) return path;
  if (frame.message.is_error) frame.commands.add(ShowMessage{""});  // of a file that was tried before
  frame.commands.add(BrowseTo{*path});
  if (platform::key_pressed(ImGuiKey_Enter, false))  // its name was typed, and so may be the next
    frame.commands.add(set<&Forms::typed>(Typed{"browser/name", "", true, true}));
  return std::nullopt;
}

/// Whether the folder that is shown looks like that of a whole model.
bool shows_model(const Frame& frame) {
  bool configured = false, weighted = false;
  for (const BrowserEntry& e : frame.forms.browser.entries) {
    configured = configured || e.name == "config.json";
    weighted = weighted || e.name.ends_with(".safetensors") || e.name.ends_with(".bin") ||
               e.name.ends_with(".safetensors.index.json") || e.name.ends_with(".bin.index.json");
  }
  return configured && weighted;
}

}  // namespace

void draw_open_dialog(const Frame& frame) {
  const auto open_folder = [&] {
    frame.commands.add(OpenFile{frame.forms.browser.directory / "config.json"});
  };
  const widgets::DialogButton folder{shows_model(frame) ? "dialog/model" : nullptr,
                                     "Open this folder as a model"};
  if (const auto path = file_to_open(frame, widgets::Listed::openable, folder, open_folder))
    frame.commands.add(OpenFile{*path});
}

void draw_open_reference_dialog(const Frame& frame) {
  if (const auto path = file_to_open(frame, widgets::Listed::openable))
    frame.commands.add(LoadReference{*path});
}

void draw_open_tensors_dialog(const Frame& frame) {
  widgets::paragraph(
      frame.fonts.sans14, frame.palette.dim, browser_size(frame).x,
      "Your tensors, to compare with the model stage by stage: .npz, .safetensors, .pt, .npy, .csv, or a folder "
      "of them.");
  const auto check_folder = [&] { frame.commands.add(CheckTensors{frame.forms.browser.directory}); };
  if (const auto path =
          file_to_open(frame, widgets::Listed::tensors, {"dialog/folder", "Check this folder"}, check_folder))
    frame.commands.add(CheckTensors{*path});
}

void draw_open_given_dialog(const Frame& frame) {
  if (const auto path = file_to_open(frame, widgets::Listed::tensors))
    frame.commands.add(GiveFile{frame.forms.given_stage, *path});
}

void draw_save_dialog(const Frame& frame) {
  const Browser& browser = frame.forms.browser;
  auto path = widgets::file_browser(frame, widgets::Listed::sessions, browser_size(frame));
  if (browser.asks_to_replace) {
    question_to_replace(frame, with_json(widgets::chosen_path(browser)));
    return;
  }
  if (confirm_buttons(frame, browser_size(frame).x, "Save", !browser.name.empty()) == "dialog/confirm")
    path = widgets::chosen_path(browser);
  if (!path) return;
  if (is_folder(*path)) {
    frame.commands.add(BrowseTo{*path});
  } else if (path = with_json(*path); is_there(*path)) {
    frame.commands.add(set<&Browser::asks_to_replace>(true));
  } else {
    frame.commands.add(SaveFileAs{*path});
  }
}

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

void change_export(const Frame& frame, SetField field) {
  frame.commands.add(std::move(field), set<&Browser::asks_to_replace>(false));
}

void choose_form(const Frame& frame) {
  std::vector<std::string> words;
  for (const ExportKind& kind : export_kinds()) words.emplace_back(kind.words);
  if (const auto chosen = widgets::segmented(frame, "dialog/form", words,
                                             static_cast<std::size_t>(frame.settings.export_form)))
    change_export(frame, set<&Settings::export_form>(static_cast<ExportForm>(*chosen)));
  widgets::paragraph(frame.fonts.sans14, frame.palette.dim, export_browser_size(frame).x,
                     export_kind(frame.settings.export_form).about);
}

/// The stage whose numbers leave, among all that the model has.
void choose_stage(const Frame& frame, const ExportAs& e) {
  if (export_kind(e.form).choices.empty()) return;
  std::vector<widgets::Option> options;
  std::vector<Stage> stages;
  std::size_t now = 0;
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(frame.pending.model)) continue;
    if (stage.stage == e.matrix.stage) now = stages.size();
    stages.push_back(stage.stage);
    options.push_back({stage.title, stage.stage == Stage::weights ? "Before dropout" : "", false});
  }
  if (const auto chosen =
          widgets::combo(frame, "dialog/stage", frame.metrics.px(200), options[now].words, options, now))
    change_export(frame, set<&ExportChoice::from>(std::pair(stages[*chosen], e.matrix.head)));
  ImGui::SameLine();
}

void choose_what(const Frame& frame, const ExportAs& e) {
  const auto& choices = export_kind(e.form).choices;
  if (choices.empty()) return;
  std::vector<std::string> words;
  for (const ExportWhat what : choices) words.push_back(words_of(frame.pending.model, e, what));
  const auto current = std::ranges::find(choices, held_by(e.form, e.what)) - choices.begin();
  if (const auto chosen = widgets::segmented(frame, "dialog/what", words, static_cast<std::size_t>(current)))
    change_export(frame, set<&ExportChoice::what>(choices[*chosen]));
}

void choose_look(const Frame& frame, ExportForm form) {
  if (!is_figure(form)) return;
  if (const auto on = widgets::checkbox(frame, "dialog/dark", "dark", frame.settings.export_dark))
    change_export(frame, set<&Settings::export_dark>(*on));
  ImGui::SameLine();
  if (const auto on =
          widgets::checkbox(frame, "dialog/numbers", "numbers in cells", frame.settings.export_numbers))
    change_export(frame, set<&Settings::export_numbers>(*on));
  if (form != ExportForm::png) return;
  ImGui::SameLine();
  constexpr std::array scales{1, 2, 3, 4};
  const std::array<std::string, 4> words{"1×", "2×", "3×", "4×"};
  const auto current = std::ranges::find(scales, frame.settings.export_scale) - scales.begin();
  if (const auto chosen = widgets::segmented(frame, "dialog/scale", words, static_cast<std::size_t>(current)))
    change_export(frame, set<&Settings::export_scale>(scales[*chosen]));
}

/// What a title's menu asked for, else the pinned cell's, else the weights.
CellRef exported_matrix(const Frame& frame) {
  if (const auto& from = frame.forms.exporting.from) {
    if (core::attention::info(from->first).present(frame.pending.model) &&
        from->second < frame.pending.model.n_heads)
      return {from->first, from->second, 0, 0};
  }
  return frame.pending.selection.pinned.value_or(CellRef{Stage::weights, frame.pending.look.head, 0, 0});
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
  keep_or_replace(frame, export_browser_size(frame).x, e);
}

}  // namespace

void draw_export_dialog(const Frame& frame) {
  ExportAs e;
  e.form = frame.settings.export_form, e.what = frame.forms.exporting.what;
  e.matrix = exported_matrix(frame);
  e.document = frame.document.preset.empty() ? frame.document.title : frame.document.preset;
  choose_form(frame);
  choose_stage(frame, e);
  choose_what(frame, e);
  choose_look(frame, e.form);
  const std::string proposed = proposed_name(e);
  const auto typed =
      widgets::file_browser(frame, widgets::Listed::directories, export_browser_size(frame), proposed);
  e.path = typed.value_or(widgets::chosen_path(widgets::as_typed(frame, proposed)));
  const std::vector<fs::path> files = planned_files(frame.pending.model, e);
  say_what_is_written(frame, e, files);
  if (frame.forms.browser.asks_to_replace) return question_to_replace(frame, e, files);
  const bool confirmed =
      confirm_buttons(frame, export_browser_size(frame).x, "Export", true) == "dialog/confirm";
  if (!confirmed && !typed) return;
  if (already_there(files) > 0)
    frame.commands.add(set<&Browser::asks_to_replace>(true));
  else
    frame.commands.add(e);
}

}  // namespace app::panels
