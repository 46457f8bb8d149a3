#include "app/ui/panels/layers/layers_panel.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "app/session/full_model_reading.hpp"
#include "app/session/model_title.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/lessons/lesson_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {
namespace {

constexpr float strip_height = 96, lowest_color = 0.3f;  // keeps a bar of 1 % visible

const Prediction* prediction(const Frame& frame) {
  const Prediction* next = frame.pending.reading->prediction();
  return next && !next->candidates.empty() ? next : nullptr;
}

const std::string& no_prediction_reason(const Frame& frame) {
  return frame.pending.reading->readings()->now->no_prediction_reason;
}

bool is_edited(const Frame& frame) {
  return frame.pending.full_model->experiment.is_edited();
}

/// Draws a bar of a probability, and as an outline that before the edits.
void draw_bar(const Frame& frame, ImVec2 min, ImVec2 max, const NextToken& token) {
  const auto end_of = [&](double share) {
    return min.x + (max.x - min.x) * static_cast<float>(std::clamp(share, 0.0, 1.0));
  };
  draw_rect(min, max, frame.palette.control.rest);
  const double shade = lowest_color + (1 - lowest_color) * token.now;
  draw_rect(min, {std::max(min.x + 1, end_of(token.now)), max.y},
            render::color_at(frame.displayed.look.colors.sequential, frame.palette.dark, shade));
  if (is_edited(frame) && std::abs(token.now - token.before) > 0.005)
    outline({min.x, min.y - 1}, {std::max(min.x + 3, end_of(token.before)), max.y + 1},
            packed(frame.palette.text, 0.75f), 1);
}

std::string heading(const Frame& frame) {
  return frame.pending.full_model->model->description().causal ? "NEXT TOKEN" : "MASKED TOKEN";
}

/// Returns whether the chosen token is the most probable one now.
bool leads(const Prediction& next) {
  return next.candidates.front().id == next.chosen.id;
}

/// Returns how the token was chosen, and the temperature where that is not 1.
std::string choice_words(const Frame& frame) {
  const double temperature = frame.pending.layers->shown_temperature();
  const std::string at = temperature == 1 ? "" : ", T " + core::text::number_text(temperature);
  if (frame.pending.layers->token) return "selected · Esc releases" + at;
  const Prediction& next = *prediction(frame);
  return (leads(next) ? "most probable" : "most probable before the edits") + at;
}

/// Draws the probability before the edits and the difference, without edits the runner-up; instead of either
/// the most probable token if that is another.
void draw_comparison(const Frame& frame, const Prediction& next, ImVec2 at, float width) {
  const auto& f = frame;
  const auto at_left = [&](const std::string& words, const std::string& number) {
    draw_text(f.fonts.sans13, at, Align::left_middle, f.palette.dim, words);
    draw_text(f.fonts.mono13, {at.x + text_width(f.fonts.sans13, words), at.y}, Align::left_middle,
              f.palette.dim, number);
  };
  const std::string change = is_edited(f) ? signed_text(next.chosen.now - next.chosen.before, 4) : "";
  draw_text(f.fonts.mono14, {at.x + width, at.y}, Align::right_middle, f.palette.text, change);
  if (leads(next) && is_edited(f)) return at_left("before the edits ", fixed(next.chosen.before, 4));
  if (leads(next) && next.candidates.size() < 2) return;
  const NextToken& other = next.candidates[leads(next) ? 1 : 0];
  const std::string words = leads(next)    ? "then "
                            : is_edited(f) ? "now most "
                                           : "most probable ",
                    number = " " + fixed(other.now, 4);
  const float room = width - text_width(f.fonts.sans13, words) - text_width(f.fonts.mono13, number) -
                     text_width(f.fonts.mono14, change) - f.metrics.px(8);
  at_left(words + shortened(f.fonts.sans13, quoted_token(other.text), room), number);
}

void draw_token_row(const Frame& frame, const NextToken& token, bool is_chosen, float width) {
  const auto& f = frame;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = f.metrics.px(20), middle = at.y + height / 2, pad = f.metrics.px(8);
  const bool pressed = hit_area(("token " + std::to_string(token.id)).c_str(), {width, height});
  f.landmarks.mark_item("next/" + std::to_string(token.id));
  if (is_chosen || ImGui::IsItemHovered())
    draw_rect({at.x - pad, at.y}, {at.x + width + pad, at.y + height},
              is_chosen ? f.palette.control.active : f.palette.control.hovered, f.metrics.px(3));
  if (pressed)
    f.commands.add(set<&LayersLook::token>(is_chosen && f.pending.layers->token ? std::nullopt
                                                                                : std::optional(token.id)));
  float right = at.x + width;
  const auto number = [&](const std::string& text, const char* widest, Rgb color) {
    draw_text(f.fonts.mono13, {right, middle}, Align::right_middle, color, text);
    right -= text_width(f.fonts.mono13, widest) + f.metrics.px(12);
  };
  if (is_edited(f)) number(signed_text(token.now - token.before, 3), "−0.000", f.palette.dim);
  number(fixed(token.now, 4), "0.0000", f.palette.text);
  const float left = at.x + width * 0.24f;
  draw_bar(f, {left, middle - f.metrics.px(5)}, {std::max(left + 1, right), middle + f.metrics.px(5)}, token);
  draw_text(f.fonts.sans14, {at.x, middle}, Align::left_middle, f.palette.text,
            shortened(f.fonts.sans14, visible_token(token.text), left - at.x - f.metrics.px(6)));
}

}  // namespace

bool has_next_token(const Frame& frame) {
  return frame.pending.full_model && frame.pending.reading->readings();
}

float next_token_height(const Frame& frame) {
  if (!has_next_token(frame)) return 0;
  return frame.metrics.px(no_prediction_reason(frame).empty() ? strip_height : 64);
}

void draw_next_token(const Frame& frame) {
  if (!has_next_token(frame)) return;
  if (frame.pending.full_model->experiment.first) return draw_logit_difference(frame);
  const auto& f = frame;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, right = at.x + width;
  const auto middle = [&](float y) { return std::round(at.y + f.metrics.px(y)); };
  draw_text(f.fonts.sans13, {at.x, middle(8)}, Align::left_middle, f.palette.dim, heading(frame));
  const Prediction* next = prediction(frame);
  if (!next) {
    platform::move_to({at.x, at.y + f.metrics.px(20)});
    const std::string& why = no_prediction_reason(frame);
    paragraph(f.fonts.sans14, f.palette.dim, width, why.empty() ? "Computing…" : why);
    return;
  }
  draw_text(f.fonts.sans13, {right, middle(8)}, Align::right_middle, f.palette.faint, choice_words(frame));
  const std::string number = fixed(next->chosen.now, 4);
  const float number_width = text_width(f.fonts.mono24, number);
  draw_text(
      f.fonts.sans19, {at.x, middle(36)}, Align::left_middle, f.palette.text,
      shortened(f.fonts.sans19, quoted_token(next->chosen.text), width - number_width - f.metrics.px(12)));
  draw_text(f.fonts.mono24, {right, middle(36)}, Align::right_middle, f.palette.text, number);
  f.landmarks.mark("next/probability", {right - number_width, middle(24)}, {right, middle(48)});
  draw_bar(f, {at.x, middle(57)}, {right, middle(65)}, next->chosen);
  draw_comparison(f, *next, {at.x, middle(78)}, width);
  platform::move_to({at.x, middle(20)});
  if (hit_area("next token", {width, f.metrics.px(70)}))
    f.commands.add(set<&LayersLook::token>(std::nullopt));
  f.landmarks.mark_item("next/token");
  if (ImGui::IsItemHovered())
    tooltip("The token that the model predicts after the prompt, and its probability. The logit is " +
            fixed(next->logit, 2) + ".");
}

void draw_token_table(const Frame& frame, float width) {
  const auto& f = frame;
  const Prediction* next = prediction(frame);
  if (!next) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float change = text_width(f.fonts.mono13, "−0.000") + f.metrics.px(12);
  draw_text(f.fonts.sans13, at, f.palette.faint, "token");
  if (is_edited(f)) draw_text_right(f.fonts.sans13, at.x + width, at.y, f.palette.faint, "change");
  draw_text_right(f.fonts.sans13, at.x + width - (is_edited(f) ? change : 0), at.y, f.palette.faint, "now");
  ImGui::Dummy({width, f.metrics.px(18)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  bool is_listed = false;
  for (const NextToken& token : next->candidates) {
    draw_token_row(f, token, token.id == next->chosen.id, width);
    is_listed = is_listed || token.id == next->chosen.id;
  }
  if (!is_listed) draw_token_row(f, next->chosen, true, width);
  ImGui::PopStyleVar();
  const ImVec2 foot = ImGui::GetCursorScreenPos();
  draw_text(f.fonts.sans13, {foot.x, foot.y + f.metrics.px(2)}, f.palette.faint,
            count_text(next->n_other_tokens) + " other tokens");
  draw_text_right(f.fonts.mono13, foot.x + width - (is_edited(f) ? change : 0), foot.y + f.metrics.px(2),
                  f.palette.dim, fixed(next->other_probability, 4));
  ImGui::Dummy({width, f.metrics.px(22)});
}

void draw_presented_prediction(const Frame& frame) {
  const auto& f = frame;
  const float width = ImGui::GetContentRegionAvail().x;
  const auto say = [&](ImFont* font, Rgb color, const std::string& words) {
    paragraph(font, color, width, words);
  };
  if (f.lesson) {
    draw_presented_lesson(f, width);
  } else {
    const auto& full_model = *f.pending.full_model;
    say(f.fonts.sans16, f.palette.text, model_title(full_model.model->description().path));
    say(f.fonts.sans12, f.palette.dim,
        core::experiment::whole_text(*full_model.model, full_model.experiment));
  }
  ImGui::Dummy({width, f.metrics.px(8)});
  const Prediction* next = prediction(f);
  if (!next) return say(f.fonts.sans12, f.palette.dim, no_prediction_reason(f));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string number = fixed(next->chosen.now, 4);
  const float number_width = text_width(f.fonts.mono32, number), middle = at.y + f.metrics.px(16);
  draw_text(
      f.fonts.sans19, {at.x, middle}, Align::left_middle, f.palette.text,
      shortened(f.fonts.sans19, quoted_token(next->chosen.text), width - number_width - f.metrics.px(8)));
  draw_text(f.fonts.mono32, {at.x + width, middle}, Align::right_middle, f.palette.text, number);
  f.landmarks.mark("next/probability", {at.x + width - number_width, at.y},
                   {at.x + width, at.y + f.metrics.px(32)});
  draw_bar(f, {at.x, at.y + f.metrics.px(36)}, {at.x + width, at.y + f.metrics.px(44)}, next->chosen);
  draw_comparison(f, *next, {at.x, at.y + f.metrics.px(56)}, width);
  ImGui::Dummy({width, f.metrics.px(70)});
  if (!f.lesson) draw_token_table(f, width);
}

}  // namespace app::panels
