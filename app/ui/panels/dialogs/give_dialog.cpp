#include "app/ui/panels/dialogs/give_dialog.hpp"

#include <algorithm>
#include <vector>

#include "app/ui/panels/dialogs/close_dialog.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/editor/pasted_numbers.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/error.hpp"
#include "core/files/given_tensors.hpp"

namespace app::panels {
namespace {

using core::attention::GivenStage;
using core::attention::StageInfo;

/// Whether the numbers of a stage are there: of the newest model, not of the one that is still shown.
bool is_known(const Frame& frame, const StageInfo& stage) {
  return stage.present(frame.newest.model) && frame.shows_newest();
}

/// A stage that is known as it is now, in every head.
GivenStage present_numbers(const Frame& frame, const StageInfo& stage) {
  GivenStage given{stage.stage, {}};
  for (std::size_t h = 0; h < frame.newest.model.n_heads; ++h)
    given.matrices.emplace_back(stage.matrix(frame.shown.trace, h));
  return given;
}

/// What the clipboard holds: all heads, or the chosen one alone beside the others as they are.
GivenStage pasted(const Frame& frame, const StageInfo& stage) {
  const char* clipboard = ImGui::GetClipboardText();
  const core::formats::Tensor tensor = widgets::pasted_tensor(clipboard ? clipboard : "");
  GivenStage given = core::formats::stage_of(tensor, stage.stage, 1, "pasted text: ").given;
  if (given.matrices.size() != 1 || frame.newest.model.n_heads == 1) return given;
  if (!is_known(frame, stage))
    throw core::Error("pasted text: expected all " + std::to_string(frame.newest.model.n_heads) +
                      " heads, as the others are not known, got one");
  GivenStage all = present_numbers(frame, stage);
  all.matrices[frame.newest.look.head] = given.matrices.front();
  return all;
}

void paste(const Frame& frame, const StageInfo& stage) {
  try {
    frame.commands.edit(core::editing::GiveStage{pasted(frame, stage)});
    close_dialog(frame);
  } catch (const core::Error& error) {
    frame.commands.add(ShowMessage{error.what(), true});
  }
}

std::string state_words(const Frame& frame, const StageInfo& stage) {
  const std::string name = stage.title;
  if (frame.newest.model.given.find(stage.stage))
    return name + ": these numbers are given. What follows is computed from them.";
  if (!stage.present(frame.newest.model))
    return name + ": these numbers are not known, as something after them is given.";
  return name +
         ": these numbers are computed. Those of your own take their place, and the stages before that "
         "lead nowhere else are hidden.";
}

bool enabled_button(const Frame& frame, const char* name, const char* words, bool enabled, const char* help) {
  if (!enabled) ImGui::BeginDisabled();
  const bool pressed = widgets::button(frame, name, words, help);
  if (!enabled) ImGui::EndDisabled();
  return pressed;
}

}  // namespace

void draw_give_dialog(const Frame& frame) {
  const float width = frame.metrics.px(460);
  const std::vector<const StageInfo*> list = core::attention::givable_stages();
  std::vector<widgets::Option> options;
  for (const StageInfo* stage : list) options.push_back({stage->title, "", false});
  const auto place = std::ranges::find(list, frame.forms.given_stage, &StageInfo::stage);
  const auto current = place == list.end() ? 0 : static_cast<std::size_t>(place - list.begin());
  const StageInfo& stage = *list[current];
  if (const auto chosen = widgets::combo(frame, "give/stage", width, stage.title, options, current))
    frame.commands.look([next = list[*chosen]->stage](View& view) { view.forms.given_stage = next; });
  widgets::paragraph(frame.fonts.sans15, frame.palette.dim, width, state_words(frame, stage));
  ImGui::Dummy({width, frame.metrics.px(8)});
  const bool given = frame.newest.model.given.find(stage.stage);
  const bool can_keep = !given && is_known(frame, stage) && frame.newest.model.sequences.size() == 1;
  if (enabled_button(frame, "give/keep", "Keep these", can_keep,
                     "The numbers stay as they are now, whatever changes before them")) {
    frame.commands.edit(core::editing::GiveStage{present_numbers(frame, stage)});
    close_dialog(frame);
  }
  ImGui::SameLine();
  if (widgets::button(frame, "give/paste", "Paste",
                      "A printed tensor or a table: all heads, or the chosen one"))
    paste(frame, stage);
  ImGui::SameLine();
  if (widgets::button(frame, "give/file", "From a file…",
                      "A tensor of the stage's name, or the only one: [heads, rows, columns]"))
    frame.commands.add(ShowDialog{Dialog::open_given});
  ImGui::SameLine();
  if (enabled_button(frame, "give/compute", "Compute again", given, "Takes back what was given")) {
    frame.commands.edit(core::editing::ComputeStage{stage.stage});
    close_dialog(frame);
  }
  ImGui::SameLine();
  if (widgets::button(frame, "dialog/cancel", "Cancel")) close_dialog(frame);
}

}  // namespace app::panels
