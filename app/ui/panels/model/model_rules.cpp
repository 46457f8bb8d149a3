#include <array>
#include <string>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/number.hpp"

namespace app::panels {
namespace {

using namespace core::attention;
using namespace core::editing;

void scale_row(const Form& form) {
  const Scale& scale = form.frame.newest.model.scale;
  const std::array options{widgets::Option{"1/√d_head", "As in the paper"},
                           widgets::Option{"none", "Scores stay as they are"},
                           widgets::Option{"1/√d_model", "By the width of the embeddings"},
                           widgets::Option{"a factor", "Any number that multiplies the scores"}};
  const auto current = static_cast<std::size_t>(scale.rule);
  form.label("scale");
  const bool typed = scale.rule == ScaleRule::factor;
  if (const auto chosen = widgets::combo(form.frame, "model/scale", form.control_width(),
                                         options[current].words, options, current)) {
    // The factor starts where the rule before it left off.
    const double factor = typed ? scale.factor : scale_factor(form.frame.newest.model);
    form.frame.commands.edit(SetScale{{static_cast<ScaleRule>(*chosen), factor}});
  }
}

void factor_row(const Form& form) {
  form.label("factor");
  const double old = form.frame.newest.model.scale.factor;
  if (const auto factor = widgets::real_field(form.frame, "model/factor", "scale", old, form.control_width()))
    form.frame.commands.edit(SetScale{{ScaleRule::factor, *factor}});
  widgets::tooltip("What the scores are multiplied by");
}

void scores_row(const Form& form) {
  const std::array options{
      widgets::Option{"Q·Kᵀ", "Each query meets each key"},
      widgets::Option{"uniform", "All scores are 0: plain averaging of what is visible"}};
  const auto current = static_cast<std::size_t>(form.frame.newest.model.scores);
  form.label("scores");
  if (const auto chosen = widgets::combo(form.frame, "model/scores", form.control_width(),
                                         options[current].words, options, current))
    form.frame.commands.edit(SetScoreRule{static_cast<ScoreRule>(*chosen)});
}

void merge_row(const Form& form) {
  const std::array options{
      widgets::Option{"concatenate", "Heads stand side by side"},
      widgets::Option{"reshape, no transpose",
                      "A mistake often made: reshaped without the transpose, tokens and heads mix"}};
  const auto current = static_cast<std::size_t>(form.frame.newest.model.merge);
  form.label("merge");
  if (const auto chosen = widgets::combo(form.frame, "model/merge", form.control_width(),
                                         options[current].words, options, current))
    form.frame.commands.edit(SetMergeRule{static_cast<MergeRule>(*chosen)});
}

void output_row(const Form& form) {
  form.label("output");
  const auto& output = form.frame.newest.model.projections->output;
  if (const auto on = widgets::checkbox(form.frame, "model/output", "W_o", output.has_value(),
                                        "The output projection: it mixes what the heads found"))
    form.frame.commands.edit(SetOutputProjection{*on});
  if (!output) return;
  form.place(form.label_width() + form.frame.metrics.px(64));
  if (const auto on = widgets::checkbox(form.frame, "model/bias_o", "bias", output->bias.has_value(),
                                        "A row of numbers that the output projection adds"))
    form.frame.commands.edit(SetBias{Part::output, *on});
}

void context_row(const Form& form) {
  const auto& length = form.frame.newest.model.context_length;
  form.label("context");
  widgets::FieldStyle style;
  style.width = form.field_width(), style.font = form.frame.fonts.mono14;
  const auto answer =
      widgets::text_field(form.frame, "model/context", length ? std::to_string(*length) : "", style);
  widgets::tooltip("The most tokens that the model takes; empty: any number.");
  ImFont* font = form.frame.fonts.sans14;
  const float x = form.at.x + form.label_width() + form.field_width() + form.frame.metrics.px(10);
  const char* remark = length ? "tokens at most" : "no limit";
  widgets::draw_text(font, {x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame)},
                     form.frame.palette.faint, remark);
  if (!answer.text) return;
  if (answer.text->find_first_not_of(' ') == std::string::npos) {
    form.frame.commands.edit(SetContextLength{});
  } else if (const auto n = core::text::parse_number(*answer.text);
             n && *n >= 0 && *n < 1e9 && *n == static_cast<double>(static_cast<std::size_t>(*n))) {
    form.frame.commands.edit(SetContextLength{static_cast<std::size_t>(*n)});
  } else {
    form.frame.commands.add(
        ShowMessage{"context: expected a whole number or nothing, found \"" + *answer.text + "\"", true});
  }
}

void sequence_row(const Form& form) {
  const std::size_t n = form.frame.newest.model.sequences.size(), shown = form.frame.newest.look.sequence;
  const Frame& frame = form.frame;
  form.label("sequence");
  const auto go = [&](std::size_t to) { frame.commands.look([to](View& view) { view.look.sequence = to; }); };
  const bool several = n > 1;
  const float gap = frame.metrics.px(frame.metrics.compact ? 4 : 8);
  if (several && widgets::button(frame, "model/sequence_back", "‹", "The sequence before"))
    go(shown > 0 ? shown - 1 : n - 1);
  if (several) ImGui::SameLine(0, gap);
  const std::string words = several ? std::to_string(shown) + " of " + std::to_string(n) : "one";
  ImFont* font = frame.fonts.mono14;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text(font, {at.x, widgets::centred_y(font, form.at.y, frame.metrics.frame)},
                     frame.palette.text, words);
  platform::move_to({at.x + widgets::text_width(font, words) + gap, at.y});
  if (several) {
    if (widgets::button(frame, "model/sequence_on", "›", "The next sequence")) go((shown + 1) % n);
    ImGui::SameLine(0, gap);
    if (widgets::button(frame, "model/sequence_remove", "−", "Remove this sequence"))
      frame.commands.edit(RemoveSequence{shown});
    ImGui::SameLine(0, gap);
  }
  if (widgets::button(frame, "model/sequence_add", "+",
                      "Add a copy of this sequence: a batch, whose sequences do not see each other"))
    frame.commands.edit(AddSequence{shown});
}

bool has_factor(const Frame& frame) {
  return frame.newest.model.scale.rule == ScaleRule::factor;
}
constexpr std::array rule_table{ModelRow{always, scale_row, 4},           ModelRow{has_factor, factor_row, 0},
                                ModelRow{always, scores_row, 0},          ModelRow{always, merge_row, 0},
                                ModelRow{has_projections, output_row, 0}, ModelRow{always, context_row, 0},
                                ModelRow{always, sequence_row, 0}};

}  // namespace

std::span<const ModelRow> rule_rows() {
  return rule_table;
}

}  // namespace app::panels
