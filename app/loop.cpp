#include "app/loop.hpp"

#include <algorithm>
#include <utility>

#include "app/shell.hpp"
#include "app/shortcuts.hpp"
#include "app/shown_state.hpp"

namespace app {
namespace {

constexpr int frames_after_an_event = 3;  // ImGui needs as many to settle
constexpr double blink_seconds = 0.4;     // of the text cursor
constexpr double idle_seconds = 60;
constexpr int frames_to_dim = 15;         // what lies behind a dialog

}  // namespace

Loop::Loop(platform::Window& window, Store& store) : window_(window), store_(store) {}

bool Loop::step() {
  const bool typing = ImGui::GetIO().WantTextInput;
  const bool something_happened = window_.wait(frames_to_draw_ > 0 || store_.is_busy() ? 0 : typing ? blink_seconds : idle_seconds);
  if (something_happened || typing || store_.is_busy()) frames_to_draw_ = frames_after_an_event;
  if (std::exchange(dialog_, store_.view().dialog) != store_.view().dialog) frames_to_draw_ = frames_to_dim;
  if (window_.should_close()) {
    window_.cancel_close();
    store_.dispatch(Quit{});
    frames_to_draw_ = frames_after_an_event;
  }
  if (frames_to_draw_ > 0) {
    frame();
    --frames_to_draw_;
  }
  return !store_.wants_to_quit();
}

void Loop::prepare_style() {
  const float scale = window_.scale() * store_.view().scale, text_scale = scale * store_.view().text_size;
  apply_style(palette(store_.view().dark), metrics(window_.size(), scale));
  renderer_.set_scale(scale);
  scale_ = scale;
  if (text_scale == font_scale_) return;
  const platform::LoadedFonts loaded = platform::load_fonts(text_scale);
  if (font_scale_ > 0) window_.refresh_fonts();
  if (!loaded.warning.empty()) store_.dispatch(ShowMessage{loaded.warning});
  fonts_ = loaded.fonts;
  font_scale_ = text_scale;
}

/// With Shift the arrow keys move the pinned cell; else they go from control to control, as Tab always does.
void Loop::steer_keyboard(const std::vector<KeyPress>& keys) {
  ImGuiIO& io = ImGui::GetIO();
  const bool tab = std::any_of(keys.begin(), keys.end(), [](const KeyPress& k) { return k.key == Key::tab; });
  const bool cells = std::any_of(keys.begin(), keys.end(), [](const KeyPress& k) { return k.shift; }) || io.KeyShift;
  if (cells && !tab)
    io.ConfigFlags &= ~ImGuiConfigFlags_NavEnableKeyboard;
  else
    io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
}

void Loop::frame(const std::function<void(ImGuiIO&)>& adjust, const std::vector<KeyPress>& scripted_keys) {
  prepare_style();
  const Document document = store_.document();
  const Metrics lengths = metrics(window_.size(), scale_);
  Commands commands;
  std::vector<KeyPress> keys = window_.take_keys();
  keys.insert(keys.end(), scripted_keys.begin(), scripted_keys.end());
  for (const KeyPress& key : keys)
    if (!ImGui::GetIO().WantTextInput)
      handle_key(key, {store_.model(), store_.trace(), store_.view(), document}, commands);
  for (const auto& path : window_.take_dropped_files()) commands.add(OpenFile{path});

  steer_keyboard(keys);
  window_.begin_frame(adjust);
  landmarks_.clear();
  follow_held_key(store_);
  const ShownState shown = shown_state(store_);
  draw_window({.model = shown.model,
               .trace = shown.trace,
               .version = shown.version,
               .compute_ms = store_.compute_ms(),
               .view = shown.view,
               .document = document,
               .message = store_.message(),
               .palette = palette(store_.view().dark),
               .metrics = lengths,
               .fonts = fonts_,
               .painter = renderer_,
               .extents = extents_,
               .figures = figures_,
               .landmarks = landmarks_,
               .commands = commands,
               .lesson = store_.lesson(),
               .laboratory = store_.laboratory(),
               .references = store_.references(),
               .comparison = store_.comparison()});
  window_.end_frame(palette(store_.view().dark).panel);
  renderer_.end_frame();

  for (const Command& command : commands.take()) store_.dispatch(command);
  if (!ImGui::IsAnyItemActive()) store_.end_gesture();
  store_.settle();
  if (const auto text = store_.take_clipboard()) ImGui::SetClipboardText(text->c_str());
  window_.set_title((document.modified ? "• " : "") + document.title + " – attnscope");
}

}  // namespace app
