#include "app/ui/panels/inspector/inspector_head.hpp"

#include <algorithm>

#include "app/ui/panels/heads/head_figures.hpp"
#include "app/ui/panels/inspector/inspector_likeness.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using core::attention::HeadFigure;
using core::attention::HeadFigureInfo;
using widgets::Align;
using widgets::Pen;

void draw_figure(Pen& pen, const HeadFigureInfo& figure, const std::optional<double>& value) {
  const Frame& frame = pen.frame;
  const float middle = pen.y + frame.metrics.px(10), half = frame.metrics.px(5);
  const std::size_t n_tokens = frame.shown.model.n_keys();
  const std::string number = figure_text(figure.figure, value, n_tokens),
                    widest = figure_text(figure.figure, 0.5, n_tokens);
  const float from = pen.left + frame.metrics.px(frame.metrics.compact ? 122 : 132),
              to =
                  pen.right - std::max(frame.metrics.px(44),
                                       widgets::text_width(frame.fonts.mono13, widest) + frame.metrics.px(8));
  widgets::draw_text(frame.fonts.sans14, {pen.left, middle}, Align::left_middle, packed(frame.palette.dim),
                     figure.title);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({from, middle - half}, {to, middle + half}, packed(frame.palette.control.rest));
  if (value && *value > 0) {
    const double share = std::min(*value, 1.0);
    const Rgb color = render::color_at(render::ColorMap::weights, frame.palette.dark, std::max(share, 0.15));
    list->AddRectFilled({from, middle - half},
                        {from + (to - from) * static_cast<float>(share), middle + half}, packed(color));
  }
  widgets::draw_text(frame.fonts.mono13, {pen.right, middle}, Align::right_middle,
                     packed(value ? frame.palette.text : frame.palette.faint), number);
  frame.landmarks.mark(std::string("inspector/figure/") + figure.name, {pen.left, middle - half},
                       {pen.right, middle + half});
  pen.skip(21);
}

}  // namespace

void draw_head(Pen& pen) {
  const Frame& frame = pen.frame;
  const std::size_t head = frame.shown.selection.hovered_head.value_or(frame.shown.look.head);
  const core::attention::HeadFacts& facts = head_facts(frame)[head];
  pen.skip(20);
  widgets::draw_text(frame.fonts.sans19, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.text),
                     "Head " + std::to_string(head));
  const std::string entropy = facts.entropy_bits ? widgets::fixed(*facts.entropy_bits, 2) : "–";
  widgets::draw_text(frame.fonts.mono32, {pen.right, pen.y}, Align::right_middle, packed(frame.palette.text),
                     entropy);
  pen.skip(24);
  widgets::draw_text(frame.fonts.sans14, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.dim),
                     "mean entropy of its rows, bit");
  pen.skip(6);
  pen.rule();
  widgets::draw_text(frame.fonts.sans13, {pen.right, pen.y + frame.metrics.px(8)}, Align::right_middle,
                     packed(frame.palette.faint),
                     frame.shown.model.dropout.active() && !frame.metrics.compact
                         ? "mean weight, before dropout"
                         : "mean weight");
  pen.heading("Where it looks");
  for (const HeadFigureInfo& figure : core::attention::head_figures())
    if (figure.figure != HeadFigure::entropy) draw_figure(pen, figure, facts.*figure.value);
  if (frame.shown.trace.heads.size() > 1) draw_likeness(pen, head);
}

}  // namespace app::panels
