#include "app/ui/panels/dialogs/fill_dialog.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/draw_dialog.hpp"
#include "app/ui/panels/dialogs/file_dialogs.hpp"
#include "app/ui/widgets/editor/matrix_editor.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/given_tensors.hpp"

namespace app::panels {

namespace {

using namespace core::editing;

constexpr std::size_t most_rows = 4, most_columns = 6;  // of the preview

/// Indexed by FillRule.
const std::array<std::string, 7> rule_words{"zeros", "ones",   "identity", "rand",
                                            "randn", "Linear", "Embedding"};

const char* help(FillRule rule, MatrixName matrix) {
  switch (rule) {
    case FillRule::zeros:
      return "0 everywhere.";
    case FillRule::ones:
      return "1 everywhere.";
    case FillRule::identity:
      return "1 on the diagonal, else 0.";
    case FillRule::rand:
      return "torch.rand: uniform from 0 to 1.";
    case FillRule::randn:
      return "torch.randn: standard normal.";
    case FillRule::embedding:
      return "The first values of nn.Embedding: standard normal.";
    case FillRule::linear:
      break;
  }
  return is_bias(matrix) ? "The first values of nn.Linear: its bias, sampled after its weight."
                         : "The first values of nn.Linear: its weight, transposed to in × out.";
}

/// Changes the form and draws its numbers anew.
void change_fill(const Frame& frame, const std::function<void(FillForm&)>& step) {
  FillForm form = frame.forms.fill;
  step(form);
  if (find_matrix(frame.pending.model, form.place))
    form.numbers = filled(frame.pending.model, form.place, form.fill);
  frame.commands.add(set<&Forms::fill>(std::move(form)));
}

void matrix_row(const Frame& frame, const FillForm& form, const arma::mat& old) {
  dialog_label(frame, "matrix");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans15;
  const float y = widgets::centred_y(font, at.y, frame.metrics.frame);
  const float width =
      widgets::draw_formula(font, {at.x, y}, packed(frame.palette.text), symbol(form.place.name));
  const std::string shape = core::text::shape_text(old.n_rows, old.n_cols);
  ImFont* mono = frame.fonts.mono13;
  widgets::draw_text(
      mono, {at.x + width + frame.metrics.px(10), widgets::centred_y(mono, at.y, frame.metrics.frame)},
      frame.palette.faint, shape);
  ImGui::Dummy({width, frame.metrics.frame});
}

void rule_row(const Frame& frame, const FillForm& form) {
  dialog_label(frame, "numbers");
  const auto current = static_cast<std::size_t>(form.fill.rule);
  if (const auto rule = widgets::segmented(frame, "fill/rule", rule_words, current))
    change_fill(frame, [rule = static_cast<FillRule>(*rule)](FillForm& f) { f.fill.rule = rule; });
  const ImVec2 at = ImGui::GetCursorScreenPos();
  platform::move_to({at.x + draw_dialog_labels(frame), at.y});
  widgets::paragraph(frame.fonts.sans14, frame.palette.faint,
                     draw_dialog_width(frame) - draw_dialog_labels(frame),
                     help(form.fill.rule, form.place.name));
}

void seed_row(const Frame& frame, const FillForm& form) {
  dialog_label(frame, "seed");
  const auto step = [](std::uint64_t seed, int direction) {
    return direction > 0 ? seed + 1 : seed > 0 ? seed - 1 : 0;
  };
  if (const auto seed =
          widgets::count_field(frame, "fill/seed", "seed", form.fill.seed, frame.metrics.px(96), step))
    change_fill(frame, [seed = *seed](FillForm& f) { f.fill.seed = seed; });
}

void preview(const Frame& frame, const arma::mat& numbers) {
  dialog_label(frame, "first numbers");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.mono13;
  const float line = frame.metrics.px(18), column = frame.metrics.px(68), top = at.y + frame.metrics.px(4);
  const std::size_t rows = std::min<std::size_t>(numbers.n_rows, most_rows);
  const std::size_t columns = std::min<std::size_t>(numbers.n_cols, most_columns);
  const widgets::NumberFormat format = widgets::choose_format(numbers, {0, rows, 0, columns}, 7);
  for (std::size_t i = 0; i < rows; ++i) {
    const float y = top + line * static_cast<float>(i);
    for (std::size_t j = 0; j < columns; ++j)
      widgets::draw_text_right(font, at.x + column * static_cast<float>(j + 1) - frame.metrics.px(12), y,
                               frame.palette.text, widgets::cell_text(numbers(i, j), format, true));
    if (columns < numbers.n_cols)
      widgets::draw_text(font, {at.x + column * static_cast<float>(columns), y}, frame.palette.faint, "…");
  }
  if (rows < numbers.n_rows)
    widgets::draw_text(font, {at.x + frame.metrics.px(20), top + line * static_cast<float>(rows)},
                       frame.palette.faint, "…");
  const ImVec2 size(draw_dialog_width(frame) - draw_dialog_labels(frame),
                    line * static_cast<float>(most_rows + 1) + frame.metrics.px(8));
  ImGui::Dummy(size);
  frame.landmarks.mark_item("fill/preview");
}

}  // namespace

void open_fill_dialog(const Frame& frame, MatrixPlace place) {
  change_fill(frame, [place](FillForm& f) { f.place = place; });
  frame.commands.add(ShowDialog{Dialog::fill});
}

void draw_fill_dialog(const Frame& frame) {
  const FillForm& form = frame.forms.fill;
  const core::attention::SharedMatrix* old = find_matrix(frame.pending.model, form.place);
  if (!old) return close_dialog(frame);
  matrix_row(frame, form, *old);
  rule_row(frame, form);
  ImGui::BeginDisabled(!form.fill.draws());
  seed_row(frame, form);
  if (const auto typed = drawn_before_row(frame, "fill/before", form.before))
    change_fill(frame, [typed = *typed](FillForm& f) {
      f.before = typed.shown;
      f.fill.before = typed.ops;
    });
  ImGui::EndDisabled();
  const bool good = form.before.error.empty() || !form.fill.draws();
  if (good)
    preview(frame, form.numbers);
  else
    preview(frame, arma::mat());
  if (dialog_buttons(frame, "Fill", good)) {
    frame.commands.edit(SetBlock{form.place, 0, 0, form.numbers});
    close_dialog(frame);
  }
}

namespace {

using core::attention::GivenStage;
using core::attention::StageInfo;

/// Whether the numbers of a stage are there: of the newest model, not of the one that is still shown.
bool is_known(const Frame& frame, const StageInfo& stage) {
  return stage.present(frame.pending.model) && frame.shows_newest();
}

/// A stage that is known as it is now, in every head.
GivenStage present_numbers(const Frame& frame, const StageInfo& stage) {
  GivenStage given{stage.stage, {}};
  for (std::size_t h = 0; h < frame.pending.model.n_heads; ++h)
    given.matrices.emplace_back(frame.displayed.trace.at(stage.stage, h));
  return given;
}

/// What the clipboard holds: all heads, or the chosen one alone beside the others as they are.
GivenStage pasted(const Frame& frame, const StageInfo& stage) {
  const char* clipboard = ImGui::GetClipboardText();
  const core::formats::Tensor tensor = widgets::pasted_tensor(clipboard ? clipboard : "");
  GivenStage given = core::formats::stage_of(tensor, stage.stage, 1, "pasted text: ").given;
  if (given.matrices.size() != 1 || frame.pending.model.n_heads == 1) return given;
  if (!is_known(frame, stage))
    throw core::Error("pasted text: expected all " + std::to_string(frame.pending.model.n_heads) +
                      " heads, as the others are not known, got one");
  GivenStage all = present_numbers(frame, stage);
  all.matrices[frame.pending.look.head] = given.matrices.front();
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
  if (frame.pending.model.given.find(stage.stage))
    return name + ": overridden. What follows is computed from these numbers.";
  if (!stage.present(frame.pending.model)) return name + ": not known, because a later stage is overridden.";
  return name + ": computed. Your numbers replace them; earlier stages that nothing else needs are hidden.";
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
    frame.commands.add(set<&Forms::given_stage>(list[*chosen]->stage));
  widgets::paragraph(frame.fonts.sans15, frame.palette.dim, width, state_words(frame, stage));
  ImGui::Dummy({width, frame.metrics.px(8)});
  const bool given = frame.pending.model.given.find(stage.stage);
  const bool can_keep = !given && is_known(frame, stage) && frame.pending.model.sequences.size() == 1;
  if (enabled_button(frame, "give/keep", "Keep these numbers", can_keep,
                     "Keeps the numbers as they are, whatever changes before them")) {
    frame.commands.edit(core::editing::GiveStage{present_numbers(frame, stage)});
    close_dialog(frame);
  }
  ImGui::SameLine();
  if (widgets::button(frame, "give/paste", "Paste",
                      "A printed tensor or a table: all heads, or the selected one"))
    paste(frame, stage);
  ImGui::SameLine();
  if (widgets::button(frame, "give/file", "From a file…",
                      "Reads the tensor with the stage's name, or the only one: [heads, rows, columns]"))
    frame.commands.add(ShowDialog{Dialog::open_given});
  ImGui::SameLine();
  if (enabled_button(frame, "give/compute", "Compute again", given, "Removes the override")) {
    frame.commands.edit(core::editing::ComputeStage{stage.stage});
    close_dialog(frame);
  }
  ImGui::SameLine();
  if (widgets::button(frame, "dialog/cancel", "Cancel")) close_dialog(frame);
}

}  // namespace app::panels
