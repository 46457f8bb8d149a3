#include "app/window/shown_state.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/state/view_bounds.hpp"

namespace app {

constexpr std::uint64_t numbers_of_a = 1ull << 63;  // in a version: no live numbers have it

void follow_held_key(Store& store) {
  const View& view = store.view();
  const ImGuiIO& io = ImGui::GetIO();
  const bool held = !store.references().empty() && !io.WantTextInput && !io.NavVisible && !view.cursor &&
                    view.dialog == Dialog::none && view.tab != Tab::laboratory &&
                    platform::key_down(ImGuiKey_Space);
  if (held == view.shows_a) return;
  store.dispatch(ShowReference{held});
  store.settle();
}

ShownState shown_state(const Store& store) {
  const LiveTrace* kept = store.comparing().kept();
  const View view = store.shown_view();
  if (!view.shows_a || !kept || view.tab == Tab::compare)
    return {store.shown_model(), store.trace(), store.version(), view, store.live()};
  ShownState a{kept->model(), kept->trace(), numbers_of_a | kept->version(), view, *kept};
  a.view.sequence = kept->sequence();
  keep_within(a.view, a.model);
  return a;
}

}  // namespace app
