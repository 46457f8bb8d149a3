#include "app/window/shown_state.hpp"

#include "app/session/view_bounds.hpp"
#include "app/theme/imgui_compat.hpp"

namespace app {

constexpr std::uint64_t numbers_of_a = 1ull << 63;  // in a version: no live numbers have it

void follow_held_key(Store& store) {
  const View& view = store.view();
  const ImGuiIO& io = ImGui::GetIO();
  const bool held = !store.references().empty() && !io.WantTextInput && !io.NavVisible &&
                    !view.selection.cursor && view.forms.dialog == Dialog::none &&
                    view.look.tab != Tab::laboratory && view.look.tab != Tab::layers &&
                    !view.selection.presenting.on && !io.KeyShift && platform::key_down(ImGuiKey_Space);
  if (held == view.selection.shows_a) return;
  store.dispatch(ShowReference{held});
  store.settle();
}

ShownState shown_state(const Store& store) {
  const LiveTrace* kept = store.comparing().kept();
  const LookedAt view = store.shown_view();
  if (!view.selection.shows_a || !kept || view.look.tab == Tab::compare)
    return {store.live(), store.live().version(), view};
  ShownState a{*kept, numbers_of_a | kept->version(), view, true};
  a.view.look.sequence = kept->sequence();
  keep_within(a.view, kept->model());
  return a;
}

}  // namespace app
