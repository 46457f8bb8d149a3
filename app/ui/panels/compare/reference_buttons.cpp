#include "app/ui/panels/compare/reference_buttons.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "core/graph/compare_switches.hpp"

namespace app::panels {

float draw_reference_buttons(const Frame& frame, ImVec2 at) {
  const float pitch = frame.metrics.frame + frame.metrics.px(6);
  const auto button = [&](const std::string& name, const char* words, const char* help) {
    platform::move_to(at);
    at.y += pitch;
    return widgets::button(frame, name, words, help);
  };
  if (button("reference/keep", "Keep this as A",
             "The model as it is now becomes A; B is what you make of it (K)"))
    frame.commands.add(KeepReference{});
  const auto switches = core::compare::switches();
  for (std::size_t k = 0; k < switches.size(); ++k)
    if (button(std::string("reference/") + switches[k].name, switches[k].title, switches[k].about))
      frame.commands.add(KeepSwitched{k});
  if (button("reference/open", "Open a session as A…",
             "A from a file; the model that you edit stays as it is"))
    frame.commands.add(ShowDialog{Dialog::open_reference});
  if (button("reference/tensors", "Check tensors of your own…",
             "B from a file: the first stage that differs from the model, and the likely cause (Ctrl+K)"))
    frame.commands.add(ShowDialog{Dialog::open_tensors});
  return at.y;
}

}  // namespace app::panels
