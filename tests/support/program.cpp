#include "tests/support/program.hpp"

#include <new>
#include <utility>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/bars/bars.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "app/ui/panels/edit/edit_panel.hpp"
#include "app/ui/panels/model/model_panel.hpp"
#include "app/ui/panels/stages/stages_panel.hpp"
#include "core/system/process.hpp"
#include "tests/support/waiting.hpp"

namespace gui {

Program::Program(ImVec2 size, double max_immediate_ms, app::render::Painter* painter,
                 app::Loop::DrawFunction draw, bool has_threads)
    : screen(size),
      store(
          core::system::available_memory, max_immediate_ms, [this] { before_computing(); }, app::browse,
          has_threads),
      loop_(screen, painter ? *painter : no_painter_, store, std::move(draw)) {
  run();
}

void Program::before_computing() const {
  if (traces_ == Traces::fail) throw std::bad_alloc();
  if (std::this_thread::get_id() != window_thread_) traces_.wait(Traces::wait);
}

void Program::edit(const core::editing::Edit& edit) {
  store.dispatch(app::ApplyEdit{edit});
  store.dispatch(app::EndGesture{});
  store.update();
  run();
}

void Program::frame(const support::InputFrame& input) {
  if (waits) support::finish_reading(store);
  if (waits && traces_ != Traces::wait) support::finish_working(store);
  std::vector<app::KeyPress> keys;
  if (input.key) keys.push_back(*input.key);
  loop_.frame([&](ImGuiIO& io) { support::put(input, io); }, keys);
}

Panels::Panels(app::Loop::DrawFunction draw, ImVec2 size)
    : Panels(std::move(draw), size, std::make_shared<std::vector<app::Command>>()) {}

Panels::Panels(app::Loop::DrawFunction draw, ImVec2 size, Asked asked)
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
  run();
}

void Panels::load(const std::string& preset) {
  store.dispatch(app::LoadPreset{preset});
  if (store.view().forms.dialog == app::Dialog::unsaved_work) store.dispatch(app::DiscardAndContinue{});
  run();
}

void draw_side_panels(const app::Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float top = frame.metrics.menu, bottom = size.y - frame.metrics.status;
  const float middle = top + std::min(app::panels::model_panel_height(frame), (bottom - top) * 0.55f);
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::Begin("window", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_MenuBar |
                   ImGuiWindowFlags_NoBringToFrontOnFocus);
  app::panels::draw_menu_bar(frame);
  app::platform::move_to({0, top});
  ImGui::BeginChild("model", {frame.metrics.left, middle - top}, false,
                    ImGuiWindowFlags_AlwaysUseWindowPadding);
  app::panels::draw_model(frame);
  ImGui::EndChild();
  app::platform::move_to({0, middle});
  ImGui::BeginChild("edit", {frame.metrics.left, bottom - middle}, false,
                    ImGuiWindowFlags_AlwaysUseWindowPadding);
  app::panels::draw_edit(frame);
  ImGui::EndChild();
  ImGui::End();
  app::panels::draw_dialogs(frame);
}

void draw_strip(const app::Frame& frame) {
  support::in_window("strip", {0, 0}, ImGui::GetIO().DisplaySize, [&] { app::panels::draw_stages(frame); });
}

}  // namespace gui
