#include "tests/support/panels.hpp"

#include <utility>

#include "app/session/command.hpp"

namespace gui {

Panels::Panels(app::Loop::Draw draw, ImVec2 size)
    : Panels(std::move(draw), size, std::make_shared<std::vector<app::Command>>()) {}

Panels::Panels(app::Loop::Draw draw, ImVec2 size, Asked asked)
    : Program(size, app::LiveTrace::frame_ms, nullptr,
              [draw = std::move(draw), asked](const app::Frame& frame) {
                draw(frame);
                const auto& list = frame.commands.list();
                asked->insert(asked->end(), list.begin(), list.end());
              }),
      asked_(asked) {
  forget();
}

void Panels::change(const std::function<void(core::attention::Model&)>& change) {
  core::attention::Model changed = model();
  change(changed);
  show(std::move(changed));
}

void Panels::show(core::attention::Model model) {
  store.dispatch(app::ApplyEdit{core::editing::ReplaceModel{std::move(model)}});
  store.dispatch(app::EndGesture{});
}

void Panels::load(const std::string& preset) {
  store.dispatch(app::LoadPreset{preset});
  if (store.view().forms.dialog == app::Dialog::unsaved_work) store.dispatch(app::DiscardAndContinue{});
  run();
}

}  // namespace gui
