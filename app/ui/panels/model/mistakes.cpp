#include <array>
#include <string>
#include <vector>

#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"
#include "core/graph/mistakes.hpp"

namespace app::panels {
namespace {

using core::attention::Model;
using core::editing::SwitchMistake;
using core::mistakes::Mistake;

/// Those that stand in options which only mistakes use, and so in no other row of the panel.
std::vector<const Mistake*> hidden_mistakes(const Model& model) {
  std::vector<const Mistake*> found;
  for (const Mistake& mistake : core::mistakes::mistakes()) {
    if (!mistake.present(model)) continue;
    const Model mended = mistake.mended(model);
    if (!(mended.departures == model.departures) || mended.dropout.rescale != model.dropout.rescale)
      found.push_back(&mistake);
  }
  return found;
}

bool has_hidden(const Frame& frame) {
  const Model& model = frame.newest.model;
  return !(model.departures == core::attention::Departures()) || !model.dropout.rescale;
}

void mistake_row(const Form& form) {
  const Frame& frame = form.frame;
  const auto found = hidden_mistakes(frame.newest.model);
  const std::string names = core::text::joined(found, ", ", &Mistake::title);
  const char* mend = "mend";
  const float width = widgets::text_width(frame.fonts.sans14, mend) + 2 * frame.metrics.px(8);
  ImFont* font = frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, frame.metrics.frame));
  widgets::draw_text_within(font, at, form.width - width - frame.metrics.px(6), frame.palette.status.warning,
                            names);
  frame.landmarks.mark("model/mistakes", at,
                       {form.at.x + form.width - width, form.at.y + frame.metrics.frame});
  form.place(form.width - width);
  if (!widgets::button(frame, "model/mend", mend, "Do it as the paper does")) return;
  for (const Mistake* mistake : found) frame.commands.edit(SwitchMistake{mistake->name, false});
}

constexpr std::array mistake_table{ModelRow{has_hidden, mistake_row, 4}};

}  // namespace

std::span<const ModelRow> mistake_rows() {
  return mistake_table;
}

}  // namespace app::panels
