#include "app/ui/panels/edit/fill_menu.hpp"

#include <array>

#include "app/ui/panels/dialogs/fill_dialog.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/editing/draw.hpp"

namespace app::panels {
namespace {

using namespace core::editing;

struct Filling {
  const char *key, *words, *help;
  FillRule rule;
};
constexpr std::array fillings{
    Filling{"zeros", "zeros", "0 everywhere", FillRule::zeros},
    Filling{"ones", "ones", "1 everywhere", FillRule::ones},
    Filling{"identity", "identity", "1 on the diagonal, else 0", FillRule::identity},
    Filling{"rand", "rand", "torch.rand: evenly from 0 to 1", FillRule::rand},
    Filling{"randn", "randn", "torch.randn: standard normal", FillRule::randn},
    Filling{"linear", "Linear", "The first values of nn.Linear of this shape", FillRule::linear},
    Filling{"embedding", "Embedding", "The first values of nn.Embedding", FillRule::embedding}};

void fill(const Frame& frame, MatrixPlace place, FillRule rule) {
  frame.commands.edit(
      SetBlock{place, 0, 0, filled(frame.newest.model, place, {rule, frame.forms.fill.fill.seed, {}})});
}

void fill_popup(const Frame& frame, MatrixPlace place) {
  const std::string at_seed = "; at seed " + std::to_string(frame.forms.fill.fill.seed);
  for (const Filling& filling : fillings) {
    if (filling.rule == FillRule::rand) ImGui::Separator();
    if (ImGui::Selectable(filling.words)) fill(frame, place, filling.rule);
    frame.landmarks.mark_item(std::string("edit/fill/") + filling.key);
    widgets::tooltip(filling.help + (filling.rule >= FillRule::rand ? at_seed : ""));
  }
  ImGui::Separator();
  if (ImGui::Selectable("seed and place…")) open_fill_dialog(frame, place);
  frame.landmarks.mark_item("edit/fill/dialog");
  widgets::tooltip("With another seed, or at a later place in a sequence of draws");
}

}  // namespace

void draw_fill_buttons(const Frame& frame, MatrixPlace place) {
  const std::string help = "torch.randn at seed " + std::to_string(frame.forms.fill.fill.seed) +
                           "; each press takes the next seed";
  if (widgets::button(frame, "edit/random", "random", help.c_str())) {
    fill(frame, place, FillRule::randn);
    frame.commands.look([](View& view) { ++view.forms.fill.fill.seed; });
  }
  ImGui::SameLine();
  if (widgets::button(frame, "edit/fill", "fill", "Zeros, ones, identity, or numbers as PyTorch draws them"))
    ImGui::OpenPopup("fill");
  if (ImGui::BeginPopup("fill")) {
    fill_popup(frame, place);
    ImGui::EndPopup();
  }
}

}  // namespace app::panels
