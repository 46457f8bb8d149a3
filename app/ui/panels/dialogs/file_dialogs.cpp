#include "app/ui/panels/dialogs/dialogs.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "app/session/exporting.hpp"
#include "app/session/learning.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/scan_dialog.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/files/link.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/system/file.hpp"

namespace app::panels {

namespace {

/// Files that a browser lists besides the directories.
enum class BrowserFilter { sessions, tensors, openable, all };

namespace fs = std::filesystem;

std::optional<fs::path> home() {
  const char* path = std::getenv("HOME");
  return path && *path ? std::optional<fs::path>(path) : std::nullopt;
}

bool passes_filter(const BrowserEntry& entry, const std::string& name, BrowserFilter filter) {
  if (entry.name.starts_with('.') && !name.starts_with('.')) return false;
  if (entry.is_directory) return true;
  if (filter == BrowserFilter::all) return true;
  const bool is_session = entry.name.ends_with(".json"),
             has_tensors = core::formats::has_tensor_ending(entry.name);
  return (is_session && filter != BrowserFilter::tensors) ||
         (has_tensors && filter != BrowserFilter::sessions);
}

std::string size_text(std::uintmax_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  if (bytes < 1000 * 1000) return std::to_string(bytes / 1000) + " kB";
  return std::to_string(bytes / 1000 / 1000) + " MB";
}

void set_name(const Frame& frame, const std::string& name) {
  frame.commands.add(set<&Browser::name>(name), set<&Browser::confirms_overwrite>(false));
}

void draw_path_line(const Frame& frame, float width) {
  const fs::path& directory = frame.forms.browser.directory;
  if (button(frame, "browser/parent", "up") && directory.has_parent_path())
    frame.commands.add(BrowseTo{directory.parent_path()});
  ImGui::SameLine();
  if (button(frame, "browser/home", "home"))
    if (const auto path = home()) frame.commands.add(BrowseTo{*path});
  ImGui::SameLine();
  const std::array<std::string, 2> orders{"by name", "by date"};
  if (const auto order = segmented(frame, "browser/order", orders, frame.forms.browser.by_date ? 1 : 0))
    frame.commands.add(set<&Browser::by_date>(*order == 1));
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = width - (at.x - ImGui::GetWindowPos().x - ImGui::GetStyle().WindowPadding.x);
  ImFont* font = frame.fonts.sans14;
  draw_text_within(font, {at.x, centered_y(font, at.y, frame.metrics.frame)}, room, frame.palette.dim,
                   directory.string());
  ImGui::NewLine();
}

/// Draws an entry; returns true when a file was double-clicked.
bool draw_entry_line(const Frame& frame, const BrowserEntry& entry) {
  const std::string words = entry.is_directory ? entry.name + "/" : entry.name;
  const bool selected = entry.name == frame.forms.browser.name;
  const bool pressed =
      ImGui::Selectable((words + "##entry").c_str(), selected,
                        ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_DontClosePopups);
  frame.landmarks.mark_item("browser/entry/" + entry.name);
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  ImFont* font = frame.fonts.mono12;
  const float right = max.x - frame.metrics.px(6), top = centered_y(font, min.y, max.y - min.y);
  if (!entry.is_directory) draw_text_right(font, right, top, frame.palette.faint, size_text(entry.size));
  draw_text_right(font, right - frame.metrics.px(70), top, frame.palette.faint, date_text(entry.modified_at));
  if (!pressed) return false;
  if (!ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    // Selecting a folder keeps the name of the file to save.
    if (!entry.is_directory || frame.forms.dialog != Dialog::save_as) set_name(frame, entry.name);
    return false;
  }
  if (entry.is_directory) frame.commands.add(BrowseTo{frame.forms.browser.directory / entry.name});
  return !entry.is_directory;
}

/// Returns the path in the name field, relative to the directory, or the link; "~" is the home directory.
fs::path chosen_path(const Browser& browser) {
  if (core::formats::is_link(browser.name)) return browser.name;
  if (browser.name == "~" || browser.name.starts_with("~/"))
    if (const auto path = home())
      return *path / fs::path(browser.name.substr(std::min<std::size_t>(2, browser.name.size())));
  return browser.name.empty() ? browser.directory : browser.directory / browser.name;
}

/// Returns the browser with the text being typed as its name, or the proposed name where it is empty.
Browser with_typed_name(const Frame& frame, const std::string& proposed) {
  Browser browser = frame.forms.browser;
  browser.entries.clear();
  const auto& typed = frame.forms.typed;
  if (typed && typed->field == "browser/name") browser.name = typed->text;
  if (browser.name.empty()) browser.name = proposed;
  return browser;
}

/// Draws the list of a directory; returns the double-clicked file.
std::optional<fs::path> draw_entries(const Frame& frame, BrowserFilter filter, ImVec2 size) {
  const Browser& browser = frame.forms.browser;
  std::optional<fs::path> chosen;
  draw_path_line(frame, size.x);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(frame.palette.background.back));
  const float list_height = size.y - 3 * (frame.metrics.frame + ImGui::GetStyle().ItemSpacing.y);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.metrics.px(10), frame.metrics.px(6)});
  const bool visible = platform::begin_child("entries", {size.x, std::max(frame.metrics.px(80), list_height)},
                                             false, platform::padded);
  ImGui::PopStyleVar();
  if (visible) {
    platform::push_font(frame.fonts.sans15);
    if (browser.is_listing) ImGui::TextUnformatted("…");
    int id = 0;
    std::vector<const BrowserEntry*> entries;
    for (const BrowserEntry& entry : browser.entries)
      if (passes_filter(entry, browser.name, filter)) entries.push_back(&entry);
    if (browser.by_date)
      std::ranges::stable_sort(entries, std::ranges::greater(), &BrowserEntry::modified_at);
    for (const BrowserEntry* entry : entries) {
      ImGui::PushID(id++);
      if (draw_entry_line(frame, *entry)) chosen = browser.directory / entry->name;
      ImGui::PopID();
    }
    ImGui::PopFont();
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
  return chosen;
}

/// Draws a list of a directory with a field for a name, Forms::browser; enters directories with BrowseTo. In
/// a page there is only the field.
///
/// Landmarks "browser/parent", "browser/home", "browser/name" and "browser/entry/<name>". Returns the path
/// chosen by Enter or a double click; double-clicked directories are entered instead. Names that begin with a
/// dot are listed when the typed name does. An empty name is replaced by the proposed one.
std::optional<fs::path> file_browser(const Frame& frame, BrowserFilter filter, ImVec2 size,
                                     const std::string& proposed = "") {
  const Browser& browser = frame.forms.browser;
  auto chosen = frame.forms.in_browser ? std::nullopt : draw_entries(frame, filter, size);
  const std::string shown = browser.name.empty() ? proposed : browser.name;
  const auto answer = text_field(
      frame, "browser/name", shown,
      {.width = size.x, .font = frame.fonts.sans15, .alignment = Alignment::left, .shows_error = false});
  if (answer.text) set_name(frame, *answer.text);
  const std::string name = answer.text.value_or(shown);
  if (answer.lost_focus && platform::key_pressed(ImGuiKey_Enter, false) && !name.empty()) {
    Browser typed = browser;
    typed.name = name;
    chosen = chosen_path(typed);
  }
  const std::string& error =
      browser.error.empty() && frame.message.is_error ? frame.message.text : browser.error;
  paragraph(frame.fonts.sans14, frame.palette.status.bad, size.x, error.empty() ? " " : error);
  return chosen;
}

}  // namespace

std::string_view confirm_buttons(const Frame& frame, float width, const char* words, bool enabled,
                                 const DialogButton& another) {
  const std::string_view pressed =
      dialog_foot(frame, width, {"dialog/confirm", words, enabled}, {"dialog/cancel", "Cancel"}, another);
  if (pressed == "dialog/cancel") close_dialog(frame);
  return pressed;
}

namespace {

float browser_width(const Frame& frame) {
  return dialog_width(frame, 640);
}

/// Returns the size of a browser with that height at scale 1, or less to leave the height of other rows.
ImVec2 browser_size(const Frame& frame, float height = 420, float others = 200) {
  return {browser_width(frame),
          std::min(frame.metrics.px(height), ImGui::GetIO().DisplaySize.y - frame.metrics.px(others))};
}

/// Asks whether to replace files. A second press in the place of Save or Export replaces nothing.
void draw_replace_question(const Frame& frame, const std::string& words, const Command& replacing) {
  paragraph(frame.fonts.sans15, frame.palette.status.bad, browser_width(frame), words);
  const std::string_view pressed =
      dialog_foot(frame, browser_width(frame), {"dialog/keep", "Keep"}, {}, {"dialog/replace", "Replace"});
  if (pressed == "dialog/keep") frame.commands.add(set<&Browser::confirms_overwrite>(false));
  if (pressed == "dialog/replace") frame.commands.add(replacing);
}

/// Returns whether writing a file would replace one; downloads replace nothing.
bool replaces(const Frame& frame, const fs::path& path) {
  std::error_code error;
  return !frame.forms.in_browser && fs::exists(path, error);
}

fs::path with_json(fs::path path) {
  if (path.extension() != ".json") path += ".json";
  return path;
}

/// Draws a summary of the selected file, which is read in the background.
void preview(const Frame& frame) {
  const fs::path path = chosen_path(frame.forms.browser);
  const bool is_known = frame.work.opening && frame.work.opening->previewed == path;
  const auto& entries = frame.forms.browser.entries;
  const bool is_file = std::any_of(entries.begin(), entries.end(), [&](const BrowserEntry& e) {
    return !e.is_directory && e.name == frame.forms.browser.name;
  });
  if (is_file && !is_known) frame.commands.add(PreviewFile{path});
  const std::string words = !is_file                                           ? " "
                            : is_known && !frame.work.opening->preview.empty() ? frame.work.opening->preview
                            : is_known && frame.work.opening->is_previewing    ? "…"
                                                                               : " ";
  draw_lines(frame.fonts.sans14, ImGui::GetCursorScreenPos(), browser_width(frame), frame.metrics.px(18),
             frame.palette.dim, words);
  ImGui::Dummy({browser_width(frame), frame.metrics.px(38)});
  frame.landmarks.mark_item("browser/preview");
}

/// Returns the file that was chosen in this frame; a chosen folder is entered.
std::optional<fs::path> file_to_open(const Frame& frame, BrowserFilter filter,
                                     const DialogButton& another = {},
                                     const std::function<void()>& on_another = {}) {
  if (frame.forms.in_browser) {
    paragraph(frame.fonts.sans14, frame.palette.dim, browser_width(frame),
              "Choose a file of this computer, drop one anywhere in the window, or paste a link.");
    if (button(frame, "browser/choose", "Choose a file…")) frame.commands.add(ChooseFiles{});
  }
  auto path = file_browser(frame, filter, browser_size(frame));
  if (!frame.forms.in_browser) preview(frame);
  if (const auto on = checkbox(frame, "browser/decimal_comma", "tables have decimal commas",
                               frame.forms.browser.decimal_comma))
    frame.commands.add(set<&Browser::decimal_comma>(*on), PreviewFile{chosen_path(frame.forms.browser)});
  const std::string_view pressed =
      confirm_buttons(frame, browser_width(frame), "Open", !frame.forms.browser.name.empty(), another);
  if (pressed == "dialog/confirm") path = chosen_path(frame.forms.browser);
  if (another.name && pressed == another.name) on_another();
  if (!path || !core::system::is_folder(*path)) return path;
  if (frame.message.is_error) frame.commands.add(ShowMessage{""});  // about the file tried before
  frame.commands.add(BrowseTo{*path});
  if (platform::key_pressed(ImGuiKey_Enter, false))  // a typed folder: its entry may be typed next
    frame.commands.add(set<&Forms::typed>(TypedField{"browser/name", "", true, true}));
  return std::nullopt;
}

/// Whether the displayed folder looks like that of a whole model.
bool is_model_folder(const Frame& frame) {
  bool has_config = false, has_weights = false;
  for (const BrowserEntry& e : frame.forms.browser.entries) {
    has_config = has_config || e.name == "config.json";
    has_weights = has_weights || e.name.ends_with(".safetensors") || e.name.ends_with(".bin") ||
                  e.name.ends_with(".safetensors.index.json") || e.name.ends_with(".bin.index.json");
  }
  return has_config && has_weights;
}

}  // namespace

void draw_open_dialog(const Frame& frame) {
  const auto open_folder = [&] {
    frame.commands.add(OpenPath{frame.forms.browser.directory / "config.json"});
  };
  const DialogButton folder{is_model_folder(frame) ? "dialog/model" : nullptr, "Open this folder as a model"};
  if (const auto path = file_to_open(frame, BrowserFilter::openable, folder, open_folder))
    frame.commands.add(OpenPath{*path});
}

void draw_open_reference_dialog(const Frame& frame) {
  if (const auto path = file_to_open(frame, BrowserFilter::openable))
    frame.commands.add(LoadReference{*path});
}

void draw_open_tensors_dialog(const Frame& frame) {
  paragraph(
      frame.fonts.sans14, frame.palette.dim, browser_width(frame),
      "Your tensors, to compare with the model stage by stage: .npz, .safetensors, .pt, .npy, .csv, or a folder "
      "of them.");
  const auto check_folder = [&] { frame.commands.add(CheckTensors{frame.forms.browser.directory}); };
  if (const auto path = file_to_open(
          frame, BrowserFilter::tensors,
          {frame.forms.in_browser ? nullptr : "dialog/folder", "Check this folder"}, check_folder))
    frame.commands.add(CheckTensors{*path});
}

void draw_open_override_dialog(const Frame& frame) {
  if (const auto path = file_to_open(frame, BrowserFilter::tensors))
    frame.commands.add(OverrideStageFromFile{frame.forms.overridden_stage, *path});
}

void draw_open_texts_dialog(const Frame& frame) {
  if (const auto path = file_to_open(frame, BrowserFilter::all)) {
    choose_texts(frame, path->string());
    frame.commands.add(ShowDialog{Dialog::scan});
  }
}

void draw_save_dialog(const Frame& frame) {
  const Browser& browser = frame.forms.browser;
  auto path = file_browser(frame, BrowserFilter::sessions, browser_size(frame));
  if (browser.confirms_overwrite) {
    const fs::path file = with_json(chosen_path(browser));
    return draw_replace_question(frame, file.filename().string() + " exists. Replace it?", SaveFileAs{file});
  }
  if (confirm_buttons(frame, browser_width(frame), "Save", !browser.name.empty()) == "dialog/confirm")
    path = chosen_path(browser);
  if (!path) return;
  if (core::system::is_folder(*path)) {
    frame.commands.add(BrowseTo{*path});
  } else if (path = with_json(*path); replaces(frame, *path)) {
    frame.commands.add(set<&Browser::confirms_overwrite>(true));
  } else {
    frame.commands.add(SaveFileAs{*path});
  }
}

namespace {

void change_export(const Frame& frame, SetField field) {
  frame.commands.add(std::move(field), set<&Browser::confirms_overwrite>(false));
}

/// Whether the document can be exported in a format; the last one is of whole models alone.
bool is_offered(const Frame& frame, ExportFormat form) {
  return form != ExportFormat::experiment || frame.pending.full_model;
}

void choose_form(const Frame& frame, ExportFormat form) {
  std::vector<std::string> words;
  for (const ExportFormatInfo& kind : export_formats())
    if (is_offered(frame, kind.form)) words.emplace_back(kind.words);
  if (const auto chosen = segmented(frame, "dialog/form", words, static_cast<std::size_t>(form)))
    change_export(frame, set<&Settings::export_format>(static_cast<ExportFormat>(*chosen)));
  paragraph(frame.fonts.sans14, frame.palette.dim, browser_width(frame), export_format_info(form).about);
}

/// Draws the choice of the exported stage, among all that the model has.
void choose_stage(const Frame& frame, const ExportAs& e) {
  if (export_format_info(e.form).choices.empty()) return;
  std::vector<Option> options;
  std::vector<Stage> stages;
  std::size_t now = 0;
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(frame.pending.model)) continue;
    if (stage.stage == e.matrix.stage) now = stages.size();
    stages.push_back(stage.stage);
    options.push_back({stage.title, stage.stage == Stage::weights ? "Before dropout" : "", false});
  }
  if (const auto chosen = combo(frame, "dialog/stage", frame.metrics.px(200), options, now))
    change_export(frame, set<&ExportChoice::from>(std::pair(stages[*chosen], e.matrix.head)));
  ImGui::SameLine();
}

void choose_what(const Frame& frame, const ExportAs& e) {
  const auto& choices = export_format_info(e.form).choices;
  if (choices.empty()) return;
  std::vector<std::string> words;
  for (const ExportScope what : choices) words.push_back(export_title(frame.pending.model, e, what));
  const auto current = std::ranges::find(choices, supported_scope(e.form, e.what)) - choices.begin();
  if (const auto chosen = segmented(frame, "dialog/what", words, static_cast<std::size_t>(current)))
    change_export(frame, set<&ExportChoice::what>(choices[*chosen]));
}

void choose_look(const Frame& frame, ExportFormat form) {
  if (form == ExportFormat::experiment) {
    const std::array<std::string, 2> libraries{"transformers", "TransformerLens"};
    if (const auto chosen =
            segmented(frame, "dialog/library", libraries, frame.forms.exporting.transformer_lens))
      change_export(frame, set<&ExportChoice::transformer_lens>(*chosen == 1));
  }
  if (!is_figure(form)) return;
  if (const auto on = checkbox(frame, "dialog/dark", "dark", frame.settings.export_dark))
    change_export(frame, set<&Settings::export_dark>(*on));
  ImGui::SameLine();
  if (const auto on = checkbox(frame, "dialog/numbers", "numbers in cells", frame.settings.export_numbers))
    change_export(frame, set<&Settings::export_numbers>(*on));
  if (form != ExportFormat::png) return;
  ImGui::SameLine();
  constexpr std::array scales{1, 2, 3, 4};
  const std::array<std::string, 4> words{"1×", "2×", "3×", "4×"};
  const auto current = std::ranges::find(scales, frame.settings.export_scale) - scales.begin();
  if (const auto chosen = segmented(frame, "dialog/scale", words, static_cast<std::size_t>(current)))
    change_export(frame, set<&Settings::export_scale>(scales[*chosen]));
}

/// Returns the matrix chosen in a title's menu, else that of the pinned cell, else the weights.
CellRef exported_matrix(const Frame& frame) {
  if (const auto& from = frame.forms.exporting.from) {
    if (core::attention::info(from->first).present(frame.pending.model) &&
        from->second < frame.pending.model.n_heads)
      return {from->first, from->second, 0, 0};
  }
  return frame.pending.selection.pinned.value_or(CellRef{Stage::weights, frame.pending.look.head, 0, 0});
}

void draw_export_summary(const Frame& frame, const ExportAs& e, const std::vector<fs::path>& files) {
  const std::string what =
      files.size() == 1 ? files.front().string()
                        : fmt::format("{} files into {}: {} … {}", files.size(), e.path.string(),
                                      files.front().filename().string(), files.back().filename().string());
  paragraph(frame.fonts.sans14, frame.palette.dim, browser_width(frame), "Writes " + what);
}

}  // namespace

void draw_export_dialog(const Frame& frame) {
  ExportAs e;
  e.form =
      is_offered(frame, frame.settings.export_format) ? frame.settings.export_format : ExportFormat::program;
  e.what = frame.forms.exporting.what, e.transformer_lens = frame.forms.exporting.transformer_lens;
  e.matrix = exported_matrix(frame);
  e.document = frame.document.preset.empty() ? frame.document.title : frame.document.preset;
  choose_form(frame, e.form);
  choose_stage(frame, e);
  choose_what(frame, e);
  choose_look(frame, e.form);
  const std::string proposed = proposed_name(e);
  const auto typed = file_browser(frame, BrowserFilter::all, browser_size(frame, 360, 280), proposed);
  e.path = typed.value_or(chosen_path(with_typed_name(frame, proposed)));
  const std::vector<fs::path> files = output_paths(frame.pending.model, e);
  draw_export_summary(frame, e, files);
  const auto n_existing = [&] {
    return std::ranges::count_if(files, [&](const fs::path& file) { return replaces(frame, file); });
  };
  if (frame.forms.browser.confirms_overwrite)
    return draw_replace_question(frame,
                                 files.size() == 1
                                     ? files.front().filename().string() + " exists. Replace it?"
                                     : std::to_string(n_existing()) + " of these files exist. Replace them?",
                                 e);
  const bool confirmed =
      confirm_buttons(frame, browser_width(frame), "Export", true) == "dialog/confirm" || enter_confirms();
  if (!confirmed && !typed) return;
  if (n_existing() > 0)
    frame.commands.add(set<&Browser::confirms_overwrite>(true));
  else
    frame.commands.add(e);
}

void draw_export_run_dialog(const Frame& frame) {
  const Learning* learning = frame.pending.learning;
  if (!learning || !learning->run()) return close_dialog(frame);
  paragraph(
      frame.fonts.sans14, frame.palette.dim, browser_width(frame),
      "A new folder with the model of the newest step, which transformers and attnscope open, the snapshots "
      "and the curves.");
  const std::string proposed =
      fmt::format("{}-{}", learning->run()->data().task().name, learning->run()->n_steps());
  const auto typed = file_browser(frame, BrowserFilter::all, browser_size(frame, 360, 280), proposed);
  const fs::path path = typed.value_or(chosen_path(with_typed_name(frame, proposed)));
  const bool confirmed =
      confirm_buttons(frame, browser_width(frame), "Export", true) == "dialog/confirm" || enter_confirms();
  if (confirmed || typed) frame.commands.add(ExportLearned{path});
}

void draw_export_map_dialog(const Frame& frame) {
  if (!frame.pending.full_model) return close_dialog(frame);
  paragraph(
      frame.fonts.sans14, frame.palette.dim, browser_width(frame),
      "What each patch alone recovers, by the ending of the name: .csv, .npy, .npz, .svg, .pdf or .png.");
  const std::string proposed = "patches.csv";
  const auto typed = file_browser(frame, BrowserFilter::all, browser_size(frame, 360, 280), proposed);
  const fs::path path = typed.value_or(chosen_path(with_typed_name(frame, proposed)));
  const ExportMap command{path};
  if (frame.forms.browser.confirms_overwrite)
    return draw_replace_question(frame, path.filename().string() + " exists. Replace it?", command);
  const bool confirmed =
      confirm_buttons(frame, browser_width(frame), "Export", true) == "dialog/confirm" || enter_confirms();
  if (!confirmed && !typed) return;
  if (replaces(frame, path))
    frame.commands.add(set<&Browser::confirms_overwrite>(true));
  else
    frame.commands.add(command);
}

}  // namespace app::panels
