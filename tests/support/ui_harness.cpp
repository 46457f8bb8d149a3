#include "tests/support/ui_harness.hpp"

#include "app/files/browser.hpp"
#include "app/ui/actions/shortcuts.hpp"
#include "core/attention/attend.hpp"
#include "core/editing/presets.hpp"
#include "core/error.hpp"

namespace support {

UiHarness::UiHarness(Draw draw, ImVec2 size)
    : model(core::editing::default_preset().make()), imgui_(size), draw_(std::move(draw)) {
  document.title = core::editing::default_preset().title;
  document.preset = core::editing::default_preset().name;
  document.is_preset = true;
  run();
}

void UiHarness::frame(const InputFrame& input) {
  if (version_ == 0 || !(traced_ == model)) {
    trace_ = core::attention::attend(model, view.look.sequence);
    traced_ = model;
    ++version_;
  }
  ImGuiIO& io = ImGui::GetIO();
  app::Commands commands;
  if (input.key && !io.WantTextInput)
    app::handle_key(*input.key, {shown(view), newest(view), view.settings, view.forms, document}, commands);
  put(input, io);
  const app::Metrics metrics = app::metrics(io.DisplaySize, view.settings.scale);
  const app::Palette& palette = app::palette(view.settings.dark);
  app::apply_style(palette, metrics);
  ImGui::NewFrame();
  landmarks_.clear();
  ImFont* f = ImGui::GetFont();
  const app::Fonts fonts{f, f, f, f, f, f, f, f, f, f, f};
  NoPainter painter;
  const app::View seen = view;
  draw_({.shown = this->shown(seen),
         .newest = newest(seen),
         .settings = seen.settings,
         .forms = seen.forms,
         .document = document,
         .message = message,
         .palette = palette,
         .metrics = metrics,
         .fonts = fonts,
         .painter = painter,
         .landmarks = landmarks_,
         .commands = commands,
         .work = {.extents = extents_, .statistics = statistics_}});
  ImGui::Render();
  vertices_ = ImGui::GetDrawData()->TotalVtxCount;
  for (const app::Command& command : commands.take()) {
    carry_out(command);
    asked_.push_back(command);
  }
}

void UiHarness::carry_out(const app::Command& command) {
  try {
    if (const auto* edit = command.as<app::ApplyEdit>()) model = core::editing::apply(model, edit->edit);
    if (const auto* look = command.as<app::ChangeView>()) look->change(view);
    if (const auto* show = command.as<app::ShowDialog>()) view.forms.dialog = show->dialog;
    if (const auto* browse = command.as<app::BrowseTo>())
      view.forms.browser = app::browse(browse->directory, "");
    if (const auto* said = command.as<app::ShowMessage>()) message = {said->text, said->is_error};
  } catch (const core::Error& error) {
    message = {error.what(), true};
  }
}

}  // namespace support
