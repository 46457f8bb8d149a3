#include <array>
#include <string>

#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {
namespace {

using core::editing::ClearTypedCells;
using core::editing::ComputeStage;
using core::editing::SwitchHead;

void head_row(const Form& form) {
  const std::size_t head = form.frame.newest.look.head;
  const std::string label = "head " + std::to_string(head);
  form.label(label.c_str());
  const char* help =
      "Off, its contexts count as zero when the heads are merged (H); what it computes stays in sight.";
  if (const auto on =
          widgets::checkbox(form.frame, "model/head_on", "on", !form.frame.newest.model.is_off(head), help))
    form.frame.commands.edit(SwitchHead{head, *on});
}

/// Words with a button at the right end.
bool offer(const Form& form, const std::string& words, const char* name, const char* button,
           const char* help) {
  ImFont* font = form.frame.fonts.sans14;
  const float width = widgets::text_width(font, button) + 2 * form.frame.metrics.px(8);
  widgets::draw_text_within(font, {form.at.x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame)},
                            form.width - width - form.frame.metrics.px(6), form.frame.palette.dim, words);
  form.place(form.width - width);
  return widgets::button(form.frame, name, button, help);
}

void given_stages_row(const Form& form) {
  const auto& stages = form.frame.newest.model.given.stages;
  std::string words = "given: ";
  for (const auto& stage : stages)
    words += (&stage == &stages.front() ? "" : ", ") + std::string(core::attention::info(stage.stage).title);
  if (offer(form, words, "model/given", "change…", "Other numbers for a stage, or computed again (I)"))
    form.frame.commands.look([stage = stages.back().stage](View& v) {
      v.forms.given_stage = stage, v.forms.dialog = Dialog::give;
    });
}

void typed_row(const Form& form) {
  const std::size_t n = form.frame.newest.model.given.cells.size();
  const std::string words = std::to_string(n) + (n == 1 ? " cell" : " cells") + " typed over";
  if (offer(form, words, "model/typed", "take back", "Computes them again"))
    form.frame.commands.edit(ClearTypedCells{});
}

bool has_heads(const Frame& frame) {
  return frame.newest.model.n_heads > 1;
}
bool has_given(const Frame& frame) {
  return !frame.newest.model.given.stages.empty();
}
bool has_typed(const Frame& frame) {
  return !frame.newest.model.given.cells.empty();
}

constexpr std::array head_table{ModelRow{has_heads, head_row, 0}, ModelRow{has_given, given_stages_row, 0},
                                ModelRow{has_typed, typed_row, 0}};

}  // namespace

std::span<const ModelRow> head_rows() {
  return head_table;
}

}  // namespace app::panels
