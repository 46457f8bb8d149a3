#include "app/ui/panels/dialogs/prompts_dialog.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/session/full_model_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "core/base/text.hpp"

namespace app::panels {
namespace {

using core::circuits::PatchedPart;

/// Parts in the words of the window, as in core::transformer::patched_parts().
std::vector<Option> part_options() {
  std::vector<Option> options;
  for (const char* words :
       {"output of a head", "pattern of a head", "queries of a head", "keys of a KV head",
        "values of a KV head", "output of attention", "output of the MLP", "residual stream before a layer"})
    options.push_back({words});
  return options;
}

PatchedPart chosen_part(const Frame& frame) {
  return core::transformer::patched_parts()[frame.forms.prompts.part].part;
}

void draw_form(const Frame& frame, float width) {
  const FullModelState& full_model = *frame.pending.full_model;
  const PromptsForm& now = frame.forms.prompts;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, {ImGui::GetStyle().CellPadding.x, frame.metrics.px(3)});
  const FormRows form(frame, "prompts", width);
  ImGui::PopStyleVar();
  const auto field = [&](const char* label, const char* name, const std::string& text) {
    form.row(label);
    return text_field(
               frame, name, text,
               {.width = form.control_width(), .font = frame.fonts.sans15, .alignment = Alignment::left})
        .text;
  };
  form.row("prompt A");
  draw_text_within(frame.fonts.sans15,
                   {ImGui::GetCursorScreenPos().x, ImGui::GetCursorScreenPos().y + frame.metrics.px(4)},
                   form.control_width(), frame.palette.dim,
                   visible_token(core::experiment::whole_text(*full_model.model, full_model.experiment)));
  reserve_room(ImGui::GetCursorScreenPos(), {1, frame.metrics.frame});
  if (const auto text = field("prompt B", "prompts/corrupt", now.corrupt))
    frame.commands.add(set<&PromptsForm::corrupt>(*text));
  if (const auto text = field("answer to A", "prompts/answer", now.answer))
    frame.commands.add(set<&PromptsForm::answer>(*text));
  if (const auto text = field("against", "prompts/against", now.against))
    frame.commands.add(set<&PromptsForm::against>(*text));
  form.row("patch A into B");
  if (const auto part = combo(frame, "prompts/part", form.control_width(), part_options(), now.part))
    frame.commands.add(set<&PromptsForm::part>(*part));
}

/// Draws the tokens of both prompts, B below A, in columns; those that differ in an outline.
void draw_tokens(const Frame& frame, const PatchResult& result, float width) {
  const float pitch = frame.metrics.px(20), pad = frame.metrics.px(4);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans13;
  Flow flow{start, width, frame.metrics.px(3), 2 * pitch + frame.metrics.px(6)};
  for (std::size_t i = 0; i < result.clean_tokens.size(); ++i) {
    const std::string a = visible_token(result.clean_tokens[i]), b = visible_token(result.corrupt_tokens[i]);
    const float room = std::max(text_width(font, a), text_width(font, b)) + 2 * pad;
    const ImVec2 corner = flow.place(room);
    const bool differs = a != b;
    draw_rect(corner, {corner.x + room, corner.y + 2 * pitch}, frame.palette.background.raised, 2);
    draw_text(font, {corner.x + pad, corner.y + pitch / 2}, Align::left_middle, frame.palette.text, a);
    draw_text(font, {corner.x + pad, corner.y + pitch * 1.5f}, Align::left_middle,
              differs ? frame.palette.text : frame.palette.faint, b);
    if (differs) outline(corner, {corner.x + room, corner.y + 2 * pitch}, frame.palette.status.warning, 2);
  }
  reserve_room(start, {width, flow.next.y - start.y + flow.pitch});
}

/// Draws the recovered share of each patch; a click on one of a head selects it.
void draw_map(const Frame& frame, const PatchResult& result, float width) {
  const arma::mat& shares = result.map.recovered;
  const PatchedPart part = chosen_part(frame);
  const bool is_of_heads =
      part == PatchedPart::head || part == PatchedPart::pattern || part == PatchedPart::queries;
  const float labels = frame.metrics.px(60),
              cell = std::clamp((width - labels) / static_cast<float>(shares.n_cols), frame.metrics.px(12),
                                frame.metrics.px(40)),
              height = std::min(cell, frame.metrics.px(26));
  const bool has_digits = cell >= text_width(frame.fonts.mono12, "−0.00") + 4;
  const std::size_t step = label_step(cell, text_width(frame.fonts.mono12, "000"));
  const float visible = frame.metrics.px(330);
  platform::begin_child(
      "recovered",
      {width, std::min(visible, height * static_cast<float>(shares.n_rows + 1) + frame.metrics.px(16))},
      false, ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (std::size_t k = 0; k < shares.n_cols; k += step)
    draw_text(frame.fonts.mono12, {at.x + labels + cell * (static_cast<float>(k) + 0.5f), at.y + height / 2},
              Align::middle, frame.palette.dim, std::to_string(k));
  for (std::size_t l = 0; l < shares.n_rows; ++l) {
    const float top = at.y + height * static_cast<float>(l + 1);
    draw_text(frame.fonts.sans13, {at.x, top + height / 2}, Align::left_middle, frame.palette.dim,
              "layer " + std::to_string(l));
    for (std::size_t k = 0; k < shares.n_cols; ++k) {
      const ImVec2 corner{at.x + labels + cell * static_cast<float>(k), top};
      const double share = shares(l, k);
      const Rgb color = render::color_at(frame.displayed.look.colors.diverging, frame.palette.dark,
                                         0.5 + std::clamp(share, -1.0, 1.0) / 2);
      platform::move_to(corner);
      const bool pressed = hit_area(fmt::format("patch {} {}", l, k).c_str(), {cell - 1, height - 1});
      frame.landmarks.mark_item(fmt::format("prompts/patch/{}/{}", l, k));
      draw_rect(corner, {corner.x + cell - 1, corner.y + height - 1}, color);
      if (has_digits)
        draw_text(frame.fonts.mono12, {corner.x + cell / 2, corner.y + height / 2}, Align::middle,
                  core::color::readable_on(color), fixed(share, 2));
      if (ImGui::IsItemHovered())
        ImGui::SetTooltip("%s", fmt::format("{}.{} recovers {}", l, k, fixed(share, 4)).c_str());
      if (!pressed || !is_of_heads) continue;
      frame.commands.add(ShowLayer{l}, set<&Look::head>(k));
      close_dialog(frame);
    }
  }
  reserve_room(at, {labels + cell * static_cast<float>(shares.n_cols),
                    height * static_cast<float>(shares.n_rows + 1)});
  ImGui::EndChild();
}

void draw_result(const Frame& frame, const PatchResult& result, float width) {
  if (!result.error.empty())
    return paragraph(frame.fonts.sans14, frame.palette.status.bad, width, result.error);
  draw_tokens(frame, result, width);
  const std::string a = frame.forms.prompts.answer, b = frame.forms.prompts.against;
  paragraph(
      frame.fonts.sans14, frame.palette.text, width,
      fmt::format(
          "logit of {} − logit of {}: {} after A, {} after B. Recovered by each patch alone, 1 for all:",
          quoted_token(a), quoted_token(b), inspector_text(result.map.clean),
          inspector_text(result.map.corrupt)));
  draw_map(frame, result, width);
  if (button(frame, "prompts/copy", "Copy as CSV", "Copies the recovered shares, a row for each layer"))
    frame.commands.add(CopyText{patches_csv(result)});
}

}  // namespace

void draw_prompts_dialog(const Frame& frame) {
  const float width = dialog_width(frame, 640);
  if (!frame.pending.full_model) return close_dialog(frame);
  const FullModelState& full_model = *frame.pending.full_model;
  const PromptsForm& form = frame.forms.prompts;
  draw_form(frame, width);
  if (const std::string reason = no_patches_reason(full_model); !reason.empty()) {
    paragraph(frame.fonts.sans14, frame.palette.status.bad, width, reason);
  } else if (const PatchResult* result = frame.pending.reading->patches().of(full_model, form)) {
    draw_result(frame, *result, width);
  } else if (form.runs && frame.pending.reading->patches().is_busy()) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_fraction_bar(frame, {at.x, at.y + frame.metrics.px(10)}, {at.x + width, at.y + frame.metrics.px(16)},
                      frame.pending.reading->patches().share(), frame.palette.accent);
    reserve_room(at, {width, frame.metrics.px(26)});
  }
  const bool is_complete = !form.corrupt.empty() && !form.answer.empty() && !form.against.empty();
  const bool is_running = form.runs && frame.pending.reading->patches().is_busy();
  const auto pressed = confirm_buttons(frame, width, is_running ? "Stop" : "Patch", is_complete);
  if (pressed == "dialog/confirm") frame.commands.add(set<&PromptsForm::runs>(!is_running));
}

}  // namespace app::panels
