#include "tests/support/program.hpp"

#include <new>
#include <stdexcept>

#include "app/window/shell.hpp"
#include "app/ui/actions/shortcuts.hpp"
#include "tests/support/waiting.hpp"

namespace gui {
Program::Program(ImVec2 size, double at_once_ms)
    : store(app::free_memory, at_once_ms,
            [this] {
              if (traces_ == Traces::fail) throw std::bad_alloc();
            }),
      imgui_(size) {
  run();
}

void Program::run(int frames) {
  for (int k = 0; k < frames; ++k) frame({});
}

void Program::play(const support::Gesture& gesture) {
  for (const support::InputFrame& input : gesture) frame(input);
  run();
}

void Program::edit(const core::editing::Edit& edit) {
  store.dispatch(app::ApplyEdit{edit});
  store.end_gesture();
  store.settle();
  run();
}

app::Landmarks::Rect Program::rect(const std::string& name) const {
  const auto found = landmarks_.find(name);
  if (!found) throw std::runtime_error("nothing on the screen is called " + name);
  return *found;
}

ImVec2 Program::centre(const std::string& name) const {
  return rect(name).centre();
}

void Program::frame(const support::InputFrame& input) {
  ImGuiIO& io = ImGui::GetIO();
  support::finish_reading(store);
  if (traces_ != Traces::wait) support::finish_working(store);
  const app::Document document = store.document();
  const app::Opening opening = store.opening();
  app::Commands commands;
  if (input.key && !io.WantTextInput)
    app::handle_key(*input.key,
                    {store.shown_model(), store.trace(), store.shown_view(), document, store.newest()},
                    commands);
  support::put(input, io);
  const app::Metrics metrics = app::metrics(io.DisplaySize, store.view().scale);
  const app::Palette& palette = app::palette(store.view().dark);
  app::apply_style(palette, metrics);
  ImGui::NewFrame();
  landmarks_.clear();
  ImFont* f = ImGui::GetFont();
  const app::Fonts fonts{f, f, f, f, f, f, f, f, f, f, f};
  support::NoPainter painter;
  const app::View view = store.shown_view();
  const app::Newest newest = store.newest();
  statistics_.read_from(store.live());
  const app::Renewal renewal{store.seconds_renewing(), store.share_renewed()};
  app::draw_window({.model = store.shown_model(),
                    .trace = store.trace(),
                    .version = store.version(),
                    .compute_ms = store.compute_ms(),
                    .view = view,
                    .document = document,
                    .message = store.message(),
                    .palette = palette,
                    .metrics = metrics,
                    .fonts = fonts,
                    .painter = painter,
                    .extents = extents_,
                    .statistics = statistics_,
                    .landmarks = landmarks_,
                    .commands = commands,
                    .lesson = store.lesson(),
                    .laboratory = store.laboratory(),
                    .references = store.references(),
                    .comparison = store.comparison(),
                    .comparing = store.comparing().work(),
                    .renewal = store.is_renewing() ? &renewal : nullptr,
                    .opening = &opening,
                    .newest = store.shows_newest() ? nullptr : &newest});
  ImGui::Render();
  for (const app::Command& command : commands.take()) store.dispatch(command);
  if (!ImGui::IsAnyItemActive()) store.end_gesture();
  if (traces_ != Traces::wait) store.settle();
}

}  // namespace gui
