#include "app/ui/panels/gradient/gradient_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/text.hpp"
#include "core/graph/matrices.hpp"

namespace app::panels {

namespace {

using core::attention::MatrixRef;
using core::graph::Gradients;
using core::graph::GradientTerm;

const Gradients* current_gradients(const Frame& frame) {
  return frame.gradient && frame.gradient->is_current() ? frame.gradient->gradients() : nullptr;
}

/// Returns the number whose gradient is shown: "Output [with, 1]", with its head.
std::string target_words(const Frame& frame) {
  const core::graph::Target& of = *frame.displayed.look.gradient.of;
  const auto& stage = core::attention::info(of.stage);
  const auto& sequence = frame.displayed.sequence();
  const auto part = [](const auto& index, const std::vector<std::string>* names) {
    return !index                            ? std::string(":")
           : names && *index < names->size() ? visible_token((*names)[*index])
                                             : std::to_string(*index);
  };
  const bool has_tokens = stage.columns == core::attention::Columns::tokens;
  const std::string head = head_words(frame.displayed.model, of.stage, of.head);
  return fmt::format("{} [{}, {}]{}", stage.one, part(of.row, &row_tokens(stage, sequence)),
                     part(of.column, has_tokens ? &sequence.keys() : nullptr),
                     head.empty() ? "" : ", " + head);
}

/// Returns the first stage in the order of the backward, and a cell of it, whose gradient is not a number.
std::optional<CellRef> first_nan(const Frame& frame, const Gradients& all) {
  const auto stages = core::attention::stages();
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    // Masks are constants.
    if (!frame.displayed.has(stage->stage) || stage->stage == Stage::mask ||
        stage->stage == Stage::dropout_mask)
      continue;
    for (std::size_t h = 0; h < stage->count(all.stages.n_heads()); ++h) {
      const arma::mat& numbers = all.stages.at(stage->stage, h);
      const auto nan = std::find_if(numbers.begin(), numbers.end(), [](double x) { return std::isnan(x); });
      if (nan == numbers.end()) continue;
      const auto k = static_cast<std::size_t>(nan - numbers.begin());
      return CellRef{stage->stage, h, k % numbers.n_rows, k / numbers.n_rows};
    }
  }
  return std::nullopt;
}

constexpr std::size_t max_terms = 6;
constexpr std::size_t max_tokens = 64;  // of which the readers of a cell are found in every frame

/// Returns a product of the chain rule; its factors where one alone is not finite: 0 · NaN is no number.
std::string product_text(double a, double b) {
  if (!std::isnan(a * b) || (std::isnan(a) && std::isnan(b))) return inspector_text(a * b);
  return inspector_text(a) + " · " + inspector_text(b);
}

void draw_readers(Pen& pen, const Gradients& all, const CellRef& cell, double gradient) {
  const Frame& frame = pen.frame;
  const core::graph::Target& of = *frame.displayed.look.gradient.of;
  auto terms = core::graph::gradient_readers(frame.displayed, all, cell);
  const auto size = [](const GradientTerm& term) { return std::abs(term.gradient * term.derivative); };
  std::ranges::stable_sort(terms, std::greater(), size);
  double rest = gradient;
  pen.skip(6);
  pen.heading("Chain rule: numbers computed from it");
  const bool is_in_target = of.stage == cell.stage && of.row.value_or(cell.row) == cell.row &&
                            of.column.value_or(cell.column) == cell.column;
  if (const bool has_head = core::attention::info(of.stage).per_head;
      is_in_target && (!has_head || matrix_of_head(frame.displayed.model, of.stage, of.head) ==
                                        matrix_of_head(frame.displayed.model, of.stage, cell.head))) {
    pen.pair("the number itself", inspector_text(1));
    rest -= 1;
  }
  for (std::size_t k = 0; k < std::min(terms.size(), max_terms); ++k) {
    const GradientTerm& term = terms[k];
    rest -= term.gradient * term.derivative;
    if (pen.linked_pair("inspector/gradient/reader/" + std::to_string(k), plain_name(term.cell),
                        product_text(term.gradient, term.derivative)))
      go_to_source(frame, term.cell);
    pen.skip(7);
    pen.at_left(
        frame.fonts.mono12, frame.palette.faint,
        fmt::format("∂ {} · local {}", inspector_text(term.gradient), inspector_text(term.derivative)));
    pen.skip(8);
  }
  if (terms.size() > max_terms || std::abs(rest) > 1e-9 * std::max(1.0, std::abs(gradient)))
    pen.pair(
        terms.size() > max_terms ? core::text::counted(terms.size() - max_terms, "other") : "other heads",
        inspector_text(rest));
  pen.pair("sum", inspector_text(gradient));
}

void draw_inputs(Pen& pen, const Gradients& all, const CellRef& cell, double gradient) {
  const Frame& frame = pen.frame;
  const auto terms = core::graph::gradient_inputs(frame.displayed, all, cell);
  if (terms.empty()) return;
  pen.skip(6);
  pen.heading("Part of the gradients of its inputs");
  for (std::size_t k = 0; k < std::min(terms.size(), max_terms); ++k) {
    const std::string number =
        product_text(gradient, terms[k].derivative) + " of " + inspector_text(terms[k].gradient);
    if (pen.linked_pair("inspector/gradient/input/" + std::to_string(k), plain_name(terms[k].cell), number))
      go_to_source(frame, terms[k].cell);
  }
  if (terms.size() > max_terms)
    pen.prose("and " + core::text::counted(terms.size() - max_terms, "other"), frame.palette.dim);
}

/// A learned number and its partial derivative.
struct Partial {
  MatrixRef place;
  std::size_t row, column;
  double derivative;
};

/// Returns the four largest partial derivatives of the matrices that a step changes.
std::vector<Partial> largest_partials(const Frame& frame, const Gradients& all) {
  constexpr std::size_t most = 4;
  std::vector<Partial> largest;
  for (const MatrixRef& place : stepped_matrices(frame.displayed.model, frame.displayed.look)) {
    const arma::mat& gradient = all.of(place);
    for (std::size_t k = 0; k < gradient.n_elem; ++k) {
      const double derivative = gradient[k];
      if (derivative == 0 ||
          (largest.size() == most && !(std::abs(derivative) > std::abs(largest.back().derivative))))
        continue;
      const auto at = std::ranges::find_if(
          largest, [&](const Partial& p) { return std::abs(p.derivative) < std::abs(derivative); });
      largest.insert(at, {place, k % gradient.n_rows, k / gradient.n_rows, derivative});
      if (largest.size() > most) largest.pop_back();
    }
  }
  return largest;
}

/// Draws the size of the step and what it changes.
void draw_step_fields(Pen& pen) {
  const Frame& frame = pen.frame;
  const GradientLook& look = frame.displayed.look.gradient;
  const std::array<Option, 3> options{Option{"all weights"}, Option{"X"}, Option{"this matrix"}};
  const float middle = pen.y + frame.metrics.frame / 2, gap = frame.metrics.px(8);
  float x = pen.left;
  const auto say = [&](const char* words) {
    x += draw_text(frame.fonts.sans14, {x, middle}, Align::left_middle, frame.palette.dim, words) + gap;
    platform::move_to({x, pen.y});
  };
  say("step");
  const float width = frame.metrics.px(58);
  if (const auto step = real_field(frame, "gradient/step", "step", look.step, width))
    frame.commands.add(set<&GradientLook::step>(*step));
  x += width + gap;
  say("along");
  if (const auto along =
          combo(frame, "gradient/along", pen.right - x, options, static_cast<std::size_t>(look.along)))
    frame.commands.add(set<&GradientLook::along>(static_cast<StepAlong>(*along)));
  pen.y += frame.metrics.frame;
  pen.skip(8);
}

}  // namespace

float gradient_banner_height(const Frame& frame) {
  return frame.gradient && frame.displayed.look.gradient.of ? frame.metrics.px(8) + frame.metrics.frame : 0;
}

void draw_gradient_banner(const Frame& frame) {
  const Gradients* all = current_gradients(frame);
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float height = gradient_banner_height(frame), middle = at.y + height / 2, gap = frame.metrics.px(12);
  draw_rect(at, {at.x + room.x, at.y + height}, frame.palette.background.raised);
  draw_rect(at, {at.x + frame.metrics.px(3), at.y + height}, frame.palette.accent);
  // From the right: the end, what the maps show, and where a NaN begins.
  ImFont* font = frame.fonts.sans14;
  float right = at.x + room.x - gap;
  if (link(frame, "gradient/end", font, {right, middle}, Align::right_middle, frame.palette.dim, "×",
           "Ends the view of the gradient (Esc)"))
    frame.commands.add(ShowGradient{});
  right -= text_width(font, "×") + gap;
  const std::array<std::string, 3> words{"values", "gradient", "both"};
  float segments = 2;
  for (const std::string& word : words)
    segments += text_width(font, word) + 2 * ImGui::GetStyle().FramePadding.x;
  right -= segments;
  platform::move_to({right, std::round(middle - frame.metrics.frame / 2)});
  if (const auto maps = segmented(frame, "gradient/maps", words,
                                  static_cast<std::size_t>(frame.displayed.look.gradient.maps)))
    frame.commands.add(set<&GradientLook::maps>(static_cast<GradientMaps>(*maps)));
  right -= gap;
  const auto nan = all ? first_nan(frame, *all) : std::nullopt;
  if (nan) {
    const std::string where = "NaN first in ∂ " + plain_name({nan->stage, nan->head, nan->row, nan->column});
    if (link(frame, "gradient/nan", font, {right, middle}, Align::right_middle, frame.palette.status.bad,
             where, "Shows the number"))
      frame.commands.add(set<&Selection::pinned>(nan), set<&Selection::scroll_target>(nan->stage));
    right -= text_width(font, where) + gap;
  }
  const std::string value = all ? " = " + inspector_text(all->value)
                            : frame.gradient->is_busy()
                                ? fmt::format("   computing, {:.0f} s", frame.gradient->seconds())
                                : "";
  const float left = at.x + frame.metrics.px(14);
  draw_text_within(font, {left, std::round(middle - platform::font_size(font) / 2)}, right - left,
                   frame.palette.text, "Gradient of " + target_words(frame) + value);
  frame.landmarks.mark("gradient/banner", at, {at.x + room.x, at.y + height});
}

void draw_cell_gradient(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const Gradients* all = current_gradients(frame);
  if (!all) return;
  const double gradient = all->stages.at(cell.stage, cell.head)(cell.row, cell.column);
  pen.rule();
  const std::string title = std::string("∂ ") + core::attention::info(cell.stage).one;
  pen.skip(6);
  pen.at_left(frame.fonts.sans16, frame.palette.text, title);
  pen.at_right(frame.fonts.sans19, std::isfinite(gradient) ? frame.palette.text : frame.palette.status.bad,
               inspector_text(gradient));
  frame.landmarks.mark("inspector/gradient", {pen.left, pen.y - 10}, {pen.right, pen.y + 10});
  pen.skip(16);
  pen.prose(fmt::format("If this number alone grew by 0.01, {} would change by {}.",
                        text_of(*frame.displayed.look.gradient.of), inspector_text(0.01 * gradient)),
            frame.palette.dim);
  if (std::max(frame.displayed.model.n_tokens(), frame.displayed.model.n_keys()) > max_tokens) return;
  draw_readers(pen, *all, cell, gradient);
  draw_inputs(pen, *all, cell, gradient);
}

void draw_gradient_step(Pen& pen) {
  const Frame& frame = pen.frame;
  const Gradients* all = current_gradients(frame);
  if (!all) return;
  pen.rule();
  pen.at_left(frame.fonts.sans13, frame.palette.dim, "WHAT WOULD RAISE THIS NUMBER?");
  pen.skip(6);
  const auto partials = largest_partials(frame, *all);
  const double end = partials.empty() ? 0 : std::abs(partials.front().derivative);
  for (const Partial& partial : partials)
    pen.share(plain_name({partial.place.name, 0, partial.row, partial.column}), partial.derivative, end);
  if (partials.empty())
    pen.prose("The gradient of these numbers is 0: a step changes nothing.", frame.palette.dim);
  pen.skip(6);
  draw_step_fields(pen);
  if (partials.empty()) return;
  const double change = predicted_change(*all, frame.displayed.model, frame.displayed.look);
  const auto outcome = [](double value, double by) {
    return inspector_text(value) + "  " + signed_text(by, 4);
  };
  pen.pair("predicted: step · |∂|²", outcome(all->value + change, change));
  const auto after = frame.gradient->value_after_step();
  pen.pair("after the step", after ? outcome(*after, *after - all->value) : "computing");
  pen.skip(6);
  platform::move_to({pen.left, pen.y});
  const bool raises = button(frame, "gradient/raise", "Ascent step",
                             "Adds step · ∂ to each of these numbers: the target grows");
  ImGui::SameLine();
  const bool lowers = button(frame, "gradient/lower", "Descent step",
                             "Subtracts step · ∂ from each of them: the target falls");
  if (raises || lowers) frame.commands.add(EndGesture{}, StepAlongGradient{lowers}, EndGesture{});
  pen.y += frame.metrics.frame;
  pen.skip(8);
}

}  // namespace app::panels
