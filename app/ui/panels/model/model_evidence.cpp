#include <string>

#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/editing/presets.hpp"

namespace app::panels {
namespace {

using core::editing::Evidence;
using core::editing::Preset;

/// The numbers stand in print, where anyone can compare them.
bool is_printed(const Preset& preset) {
  return preset.evidence == Evidence::printed || preset.evidence == Evidence::published;
}

std::string words(const Preset& preset) {
  const std::string source = preset.source;
  switch (preset.evidence) {
    case Evidence::printed:
    case Evidence::published:
      return "as printed in " + source;
    case Evidence::reference:
      return "nothing is printed; equals a " + source;
    case Evidence::never_seeded:
      return "never seeded in the notebook; equals a " + source.substr(0, source.find(';'));
    case Evidence::stale_print:
      return "the notebook's print is stale; equals a " + source.substr(0, source.find(';'));
    case Evidence::by_construction:
      return "weights follow from " + source;
    case Evidence::drawn:
      break;
  }
  return "an example of our own, " + source;
}

std::string remark(const Preset& preset) {
  switch (preset.evidence) {
    case Evidence::printed:
    case Evidence::published:
      return "The numbers here round to the printed ones.";
    case Evidence::reference:
      return "The numbers here equal what the notebook's code gives in PyTorch.";
    case Evidence::never_seeded:
      return "The notebook prints numbers without a seed, which no one can draw again.";
    case Evidence::stale_print:
      return "The notebook's code no longer gives the numbers that it prints; these are what it gives.";
    case Evidence::by_construction:
      return "What the weights must be can be worked out by hand.";
    case Evidence::drawn:
      break;
  }
  return "No notebook has this model.";
}

}  // namespace

void evidence_row(const Form& form) {
  const Preset* preset = core::editing::find_preset(form.frame.document.preset);
  if (!preset) return;
  const Frame& frame = form.frame;
  ImFont* font = frame.fonts.sans13;
  const float pitch = frame.metrics.px(16);
  const bool ticked = is_printed(*preset);
  const float indent = ticked ? frame.metrics.px(18) : 0;
  if (ticked) widgets::draw_text(font, form.at, frame.palette.status.good, "✓");
  const ImVec2 at(form.at.x + indent, form.at.y);
  widgets::draw_two_lines(font, at, form.width - indent, pitch,
                          ticked ? frame.palette.dim : frame.palette.faint, words(*preset));
  ImGui::Dummy({form.width, 2 * pitch});
  frame.landmarks.mark_item("model/evidence");
  widgets::tooltip(words(*preset) + ". " + remark(*preset));
}

}  // namespace app::panels
