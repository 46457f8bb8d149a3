#include "app/ui/widgets/worked_cell.hpp"

#include <algorithm>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/glossed_text.hpp"
#include "app/ui/widgets/operand_link.hpp"
#include "core/graph/text.hpp"

namespace app::widgets {
namespace {

namespace ex = core::explain;
using ex::Form;
using ex::Line;

constexpr std::size_t most_terms = 6;

/// What stands before, between and after the operands of a line.
struct Signs {
  const char *before, *between, *after;
};

Signs signs(Form form) {
  switch (form) {
    case Form::words:
    case Form::single:
      break;
    case Form::product:
      return {"", " · ", ""};
    case Form::factor:
      return {"", " × ", ""};
    case Form::division:
      return {"", " ÷ ", ""};
    case Form::addition:
      return {"", " + ", ""};
    case Form::exponential:
      return {"exp(", " − ", ")"};
  }
  return {"", "", ""};
}

/// Widths of the columns of one step, so that its terms stand below each other.
struct ColumnWidths {
  float label = 0, a = 0, b = 0;
};

ColumnWidths columns_of(const Pen& pen, const ex::Step& step, const std::vector<std::size_t>& shown) {
  ImFont* mono = pen.frame.fonts.mono14;
  const auto& sequence = pen.frame.shown.model.sequences[pen.frame.shown.look.sequence];
  ColumnWidths columns;
  float signs_width = 0, value = 0;
  for (const std::size_t k : shown) {
    const Line& line = step.lines[k];
    if (line.role != Line::term) continue;
    const Signs s = signs(line.form);
    const std::string label = ex::words(line.label, sequence);
    if (!label.empty())
      columns.label =
          std::max(columns.label, text_width(pen.frame.fonts.sans14, label) + pen.frame.metrics.px(10));
    columns.a = std::max(columns.a, text_width(mono, inspected(line.a.value)));
    if (line.form != Form::single) columns.b = std::max(columns.b, text_width(mono, inspected(line.b.value)));
    signs_width = std::max(signs_width, text_width(mono, std::string(s.before) + s.between + s.after));
    value = std::max(value, text_width(mono, inspected(line.value)));
  }
  const float room = pen.right - pen.left - pen.frame.metrics.px(18 + 10);
  const float left = room - columns.a - columns.b - signs_width - value;
  // Two letters and an ellipsis tell nobody which token is meant.
  columns.label = columns.label <= left ? columns.label : left < pen.frame.metrics.px(44) ? 0 : left;
  return columns;
}

float draw_sign(const Pen& pen, float x, const char* sign) {
  draw_text(pen.frame.fonts.mono14, {x, pen.y}, Align::left_middle, packed(pen.frame.palette.dim), sign);
  return x + text_width(pen.frame.fonts.mono14, sign);
}

void draw_line(Pen& pen, const std::string& name, const Line& line, const ColumnWidths& widths) {
  const Frame& frame = pen.frame;
  const float indent = pen.left + frame.metrics.px(18);
  const bool is_term = line.role == Line::term;
  if (line.role == Line::total) {
    ImGui::GetWindowDrawList()->AddRectFilled(
        {pen.right - frame.metrics.px(60), std::round(pen.y) + frame.metrics.px(1)},
        {pen.right, std::round(pen.y) + frame.metrics.px(1) + 1}, packed(frame.palette.strong_line));
    pen.skip(2);
  }
  pen.skip(9);
  float x = indent;
  const std::string label = ex::words(line.label, frame.shown.model.sequences[frame.shown.look.sequence]);
  const float room = is_term ? widths.label : text_width(frame.fonts.sans14, label) + frame.metrics.px(10);
  if (!label.empty() && room > 0) {
    // Of "column 93" the number tells more than the word.
    const float fits = room - frame.metrics.px(8);
    const bool is_number =
        line.label.kind == ex::Label::column && text_width(frame.fonts.sans14, label) > fits;
    draw_text(frame.fonts.sans14, {x, pen.y}, Align::left_middle, packed(frame.palette.dim),
              shortened(frame.fonts.sans14, is_number ? std::to_string(line.label.index) : label, fits));
    x += room;
  }
  if (line.form == Form::single) {
    draw_operand(pen.frame, name + "/a", line.a,
                 {pen.right - text_width(frame.fonts.mono14, inspected(line.a.value)), pen.y}, 0);
    return pen.skip(9);
  }
  if (!line.words.empty()) {
    draw_text(frame.fonts.sans14, {x, pen.y}, Align::left_middle, packed(frame.palette.dim), line.words);
  } else {
    const Signs s = signs(line.form);
    x = draw_sign(pen, x, s.before);
    x = draw_operand(pen.frame, name + "/a", line.a, {x, pen.y}, is_term ? widths.a : 0);
    x = draw_operand(pen.frame, name + "/b", line.b, {draw_sign(pen, x, s.between), pen.y},
                     is_term ? widths.b : 0);
    draw_sign(pen, x, s.after);
  }
  draw_text(frame.fonts.mono14, {pen.right, pen.y}, Align::right_middle, packed(frame.palette.text),
            inspected(line.value));
  pen.skip(9);
}

void draw_title(Pen& pen, std::size_t number, const ex::Step& step) {
  const Frame& frame = pen.frame;
  ImFont *title = frame.fonts.sans15, *formula = frame.fonts.sans14;
  pen.skip(9);
  draw_text(frame.fonts.mono12, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.faint),
            std::to_string(number));
  float x = pen.left + frame.metrics.px(18);
  glossed_line(frame, title, frame.palette.text, {x, pen.y}, step.title);
  const float beside = x + text_width(title, step.title) + frame.metrics.px(10);
  if (beside + formula_width(formula, step.formula) <= pen.right)
    x = beside;
  else
    pen.skip(18);
  draw_formula(formula, {x, std::round(pen.y - platform::font_size(formula) * 0.56f)},
               packed(frame.palette.dim), step.formula);
  pen.skip(11);
}

/// "and 58 others" with their sum, or "fewer"; pressing it shows or hides them.
void draw_more(Pen& pen, std::size_t number, const std::string& words, std::optional<double> rest) {
  const Frame& frame = pen.frame;
  pen.skip(9);
  const std::string name = "inspector/step/" + std::to_string(number) + "/more";
  if (link(frame, name, frame.fonts.sans14, {pen.left + frame.metrics.px(18), pen.y}, Align::left_middle,
           frame.palette.accent, words))
    frame.commands.look([number](View& v) {
      v.selection.unfolded = v.selection.unfolded == number ? std::nullopt : std::optional(number);
    });
  if (rest)
    draw_text(frame.fonts.mono14, {pen.right, pen.y}, Align::right_middle, packed(frame.palette.text),
              inspected(*rest));
  pen.skip(9);
}

void draw_step(Pen& pen, std::size_t number, const ex::Step& step) {
  const Frame& frame = pen.frame;
  draw_title(pen, number + 1, step);
  const ex::Folded folded = ex::fold(step, most_terms);
  const bool unfolded = folded.others > 0 && frame.shown.selection.unfolded == number;
  const ex::Folded shown = unfolded ? ex::fold(step, step.lines.size()) : folded;
  const ColumnWidths widths = columns_of(pen, step, shown.lines);
  bool told = folded.others == 0;
  for (const std::size_t k : shown.lines) {
    const bool past_terms = step.lines[k].role != Line::term;
    if (past_terms && !told) {
      draw_more(pen, number, unfolded ? "show fewer" : "and " + std::to_string(folded.others) + " others",
                unfolded ? std::nullopt : std::optional(folded.rest));
      told = true;
    }
    const float height = frame.metrics.px(18);
    if (unfolded && !past_terms && !ImGui::IsRectVisible({pen.left, pen.y}, {pen.right, pen.y + height}))
      pen.skip(18);  // thousands of lines are only measured
    else
      draw_line(pen, "inspector/step/" + std::to_string(number) + "/line/" + std::to_string(k), step.lines[k],
                widths);
  }
  pen.skip(8);
}

}  // namespace

void draw_worked_cell(Pen& pen, const ex::Explanation& explanation) {
  for (std::size_t s = 0; s < explanation.steps.size(); ++s) draw_step(pen, s, explanation.steps[s]);
}

float worked_cell_height(const ex::Explanation& explanation) {
  constexpr float title = 46, line = 18, below = 10;
  float height = 0;
  for (const ex::Step& step : explanation.steps) {
    const ex::Folded folded = ex::fold(step, most_terms);
    height += title + line * static_cast<float>(folded.lines.size() + (folded.others > 0)) + below;
  }
  return height;
}

}  // namespace app::widgets
