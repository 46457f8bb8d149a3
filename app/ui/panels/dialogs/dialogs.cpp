#include "app/ui/panels/dialogs/dialogs.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/compare/compare_panel.hpp"
#include "app/ui/panels/dialogs/scan_dialog.hpp"
#include "core/base/version.hpp"

namespace app::panels {
namespace {

/// Draws the buttons of a destructive question; Enter cancels, so that a stray press loses nothing.
void draw_question_buttons(const Frame& frame, float width, const DialogButton& destructive,
                           const Command& command) {
  const std::string_view pressed = dialog_foot(frame, width, {"dialog/cancel", "Cancel"}, {}, destructive);
  if (pressed == destructive.name) frame.commands.add(command);
  if (pressed == "dialog/cancel" || enter_confirms()) frame.commands.add(CancelQuestion{});
}

void unsaved_work(const Frame& frame) {
  const float width = frame.metrics.px(400);
  paragraph(frame.fonts.sans15, frame.palette.text, width, frame.document.title + " has unsaved changes.");
  ImGui::Dummy({width, frame.metrics.px(8)});
  const std::string_view pressed = dialog_foot(frame, width, {"dialog/save", "Save"},
                                               {"dialog/cancel", "Cancel"}, {"dialog/discard", "Discard"});
  if (pressed == "dialog/discard") frame.commands.add(DiscardAndContinue{});
  if (pressed == "dialog/cancel") frame.commands.add(CancelQuestion{});
  if (pressed == "dialog/save" || enter_confirms()) frame.commands.add(SaveAndContinue{});
}

/// Draws Forms::question with a button that runs a command.
void question(const Frame& frame, float wide, const DialogButton& yes, const Command& command,
              const char* remark = nullptr) {
  const float width = frame.metrics.px(wide);
  paragraph(frame.fonts.sans15, frame.palette.text, width, frame.forms.question);
  if (remark) paragraph(frame.fonts.sans15, frame.palette.dim, width, remark);
  ImGui::Dummy({width, frame.metrics.px(8)});
  draw_question_buttons(frame, width, yes, command);
}

void writing(const Frame& frame) {
  question(frame, 420, {"dialog/stop", "Stop and quit"}, DiscardAndContinue{});
}

void memory(const Frame& frame) {
  question(frame, 420, {"dialog/take", "Use the memory"}, AllowMemory{},
           "The stages are computed in the background; other programs may slow down.");
}

void draw_confirmation(const Frame& frame) {
  question(frame, 460, {"dialog/go_on", frame.forms.answer.c_str()}, ConfirmQuestion{});
}

void recovery(const Frame& frame) {
  const float width = frame.metrics.px(520);
  paragraph(frame.fonts.sans15, frame.palette.text, width,
            "attnscope ended without saving. This work can be restored:");
  const std::size_t n = frame.forms.leftovers.size();
  for (std::size_t k = 0; k < n; ++k) {
    paragraph(frame.fonts.sans15, frame.palette.dim, width, frame.forms.leftovers[k]);
    if (n == 1) break;  // the buttons are at the foot
    const std::string place = std::to_string(k);
    if (button(frame, "dialog/look" + place, "Restore")) frame.commands.add(RestoreLeftover{k});
    ImGui::SameLine();
    if (button(frame, "dialog/drop" + place, "Discard")) frame.commands.add(DiscardLeftover{k});
  }
  ImGui::Dummy({width, frame.metrics.px(8)});
  if (frame.message.is_error) {
    paragraph(frame.fonts.sans15, frame.palette.status.bad, width, frame.message.text);
    frame.landmarks.mark_item("dialog/problem");
    ImGui::Dummy({width, frame.metrics.px(8)});
  }
  const DialogButton keep{"dialog/keep", "Decide later"};
  const std::string_view pressed =
      n == 1 ? dialog_foot(frame, width, {"dialog/look0", "Restore"}, keep, {"dialog/drop0", "Discard"})
             : dialog_foot(frame, width, keep);
  if (pressed == keep.name) frame.commands.add(KeepLeftovers{});
  if (pressed == "dialog/look0") frame.commands.add(RestoreLeftover{0});
  if (pressed == "dialog/drop0") frame.commands.add(DiscardLeftover{0});
}

void draw_keys_dialog(const Frame& frame) {
  draw_key_sheet(frame);
  if (button(frame, "dialog/close", "Close") || enter_confirms()) close_dialog(frame);
}

void about(const Frame& frame) {
  const float width = frame.metrics.px(400);
  paragraph(frame.fonts.sans17, frame.palette.text, width, std::string("attnscope ") + core::version());
  paragraph(frame.fonts.sans15, frame.palette.dim, width,
            "Take attention apart: edit it, watch it, explain it. Numbers are computed in float64; a remark "
            "(float32) is the value as PyTorch would store it. MIT license.");
  ImGui::Dummy({width, frame.metrics.px(8)});
  if (!dialog_foot(frame, width, {"dialog/close", "Close"}).empty() || enter_confirms()) close_dialog(frame);
}

void close_on_escape(const Frame& frame) {
  // Dear ImGui has closed a list of the dialog when the frame began.
  bool& had_list = *ImGui::GetStateStorage()->GetBoolRef(ImGui::GetID("had list"));
  const bool closes_list = std::exchange(had_list, ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId));
  if (closes_list || !platform::key_pressed(ImGuiKey_Escape, false)) return;
  if (frame.forms.dialog == Dialog::unsaved_work || frame.forms.dialog == Dialog::memory ||
      frame.forms.dialog == Dialog::writing || frame.forms.dialog == Dialog::question)
    frame.commands.add(CancelQuestion{});
  else if (frame.forms.dialog == Dialog::recovery)
    frame.commands.add(KeepLeftovers{});
  else
    close_dialog(frame);
}

struct DialogRow {
  Dialog dialog;
  const char* title;
  void (*draw)(const Frame&);
};
constexpr std::array table{
    DialogRow{Dialog::open, "Open", draw_open_dialog},
    DialogRow{Dialog::open_reference, "Open as A", draw_open_reference_dialog},
    DialogRow{Dialog::open_tensors, "Check tensors", draw_open_tensors_dialog},
    DialogRow{Dialog::match_tensors, "Match tensors by hand", draw_match_dialog},
    DialogRow{Dialog::open_override, "Override stage from file", draw_open_override_dialog},
    DialogRow{Dialog::open_texts, "Texts for a scan", draw_open_texts_dialog},
    DialogRow{Dialog::override_stage, "Override stage", draw_override_dialog},
    DialogRow{Dialog::import_tensors, "Open tensors", draw_import_dialog},
    DialogRow{Dialog::save_as, "Save as", draw_save_dialog},
    DialogRow{Dialog::export_files, "Export", draw_export_dialog},
    DialogRow{Dialog::export_run, "Export the run", draw_export_run_dialog},
    DialogRow{Dialog::export_map, "Export the map of patches", draw_export_map_dialog},
    DialogRow{Dialog::unsaved_work, "Unsaved work", unsaved_work},
    DialogRow{Dialog::writing, "Quit", writing},
    DialogRow{Dialog::memory, "A large model", memory},
    DialogRow{Dialog::question, "Are you sure?", draw_confirmation},
    DialogRow{Dialog::recovery, "Recovered", recovery},
    DialogRow{Dialog::keys, "Keys", draw_keys_dialog},
    DialogRow{Dialog::about, "About", about},
    DialogRow{Dialog::fill, "Fill a matrix", draw_fill_dialog},
    DialogRow{Dialog::draw_model, "Initialize from seed", draw_initialize_dialog},
    DialogRow{Dialog::glossary, "Glossary", draw_glossary_dialog},
    DialogRow{Dialog::scan, "Heads over many texts", draw_scan_dialog},
    DialogRow{Dialog::sentence, "Type a sentence", draw_sentence_dialog}};

}  // namespace

void close_dialog(const Frame& frame) {
  frame.commands.add(ShowDialog{frame.forms.dialog == Dialog::open_texts ? Dialog::scan : Dialog::none});
}

float dialog_width(const Frame& frame, float wanted) {
  return std::min(frame.metrics.px(wanted), ImGui::GetIO().DisplaySize.x - frame.metrics.px(80));
}

void draw_dialogs(const Frame& frame) {
  if (frame.forms.dialog == Dialog::none) draw_file_progress(frame);
  for (const DialogRow& row : table) {
    const bool wanted = frame.forms.dialog == row.dialog;
    if (wanted && !ImGui::IsPopupOpen(row.title)) ImGui::OpenPopup(row.title);
    if (!ImGui::IsPopupOpen(row.title)) continue;
    const ImVec2 window = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({window.x / 2, window.y / 2}, ImGuiCond_Always, {0.5f, 0.5f});
    platform::push_font(frame.fonts.sans16);
    const ImGuiStyle& style = ImGui::GetStyle();  // aligns the title with the contents
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {style.WindowPadding.x, style.FramePadding.y});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
    const bool open = ImGui::BeginPopupModal(
        row.title, nullptr,
        ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
    ImGui::PopStyleVar(2);
    if (open) {
      if (wanted) {
        row.draw(frame);
        if (row.dialog != Dialog::writing) draw_file_progress_line(frame);
        close_on_escape(frame);
      } else {
        ImGui::CloseCurrentPopup();
      }
      ImGui::EndPopup();
    }
    ImGui::PopFont();
  }
  draw_action_palette(frame);
}

}  // namespace app::panels
