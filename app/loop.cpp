#include "app/loop.hpp"

#include "app/shell.hpp"
#include "app/shortcuts.hpp"

namespace app {
namespace {

constexpr int frames_after_an_event = 3;
constexpr double blink_seconds = 0.4;  // of the text cursor

}  // namespace

Loop::Loop(platform::Window& window, Store& store) : window_(window), store_(store) {}

bool Loop::step() {
  if (frames_to_draw_ > 0) {
    window_.poll();
  } else {
    window_.wait(ImGui::GetIO().WantTextInput ? blink_seconds : -1);
  }
  if (window_.had_events() || ImGui::GetIO().WantTextInput) frames_to_draw_ = frames_after_an_event;
  if (window_.should_close()) {
    window_.cancel_close();
    store_.dispatch(Quit{});
    frames_to_draw_ = frames_after_an_event;
  }
  frame();
  --frames_to_draw_;
  return !store_.wants_to_quit();
}

void Loop::prepare_style() {
  const float scale = window_.scale() * store_.view().scale;
  const Metrics lengths = metrics(window_.size(), scale);
  apply_style(palette(store_.view().dark), lengths);
  if (scale == font_scale_) return;
  fonts_ = platform::load_fonts(scale);
  font_scale_ = scale;
}

void Loop::frame(const std::function<void()>& input) {
  prepare_style();
  Commands commands;
  for (const KeyPress& key : window_.take_keys()) handle_key(key, store_.view(), store_.document(), store_.model(), commands);
  for (const auto& path : window_.take_dropped_files()) commands.add(OpenFile{path});

  window_.begin_frame();
  if (input) input();
  ImGui::NewFrame();
  landmarks_.clear();
  const Document document = store_.document();
  const Metrics lengths = metrics(window_.size(), font_scale_);
  draw_window({.model = store_.model(),
               .trace = store_.trace(),
               .version = store_.version(),
               .compute_ms = store_.compute_ms(),
               .view = store_.view(),
               .document = document,
               .message = store_.message(),
               .palette = palette(store_.view().dark),
               .metrics = lengths,
               .fonts = fonts_,
               .painter = renderer_,
               .extents = extents_,
               .landmarks = landmarks_,
               .commands = commands});
  window_.end_frame(palette(store_.view().dark).background);
  renderer_.end_frame();

  if (!ImGui::IsAnyItemActive()) store_.end_gesture();
  const std::vector<Command> asked = commands.take();
  for (const Command& command : asked) store_.dispatch(command);
  store_.settle();
  if (const auto text = store_.take_clipboard()) ImGui::SetClipboardText(text->c_str());
  window_.set_title((document.modified ? "• " : "") + document.title + " – attnscope");
}

}  // namespace app
