#include "app/loop.hpp"

#include <algorithm>

#include "app/shell.hpp"
#include "app/shortcuts.hpp"

namespace app {
namespace {

constexpr int frames_after_an_event = 3;  // ImGui needs as many to settle
constexpr double blink_seconds = 0.4;     // of the text cursor
constexpr double progress_seconds = 0.1;  // between two looks at how far a computation beside the window is
constexpr double idle_seconds = 60;

}  // namespace

Loop::Loop(platform::Window& window, Store& store) : window_(window), store_(store) {
  const auto wake = [&window] { window.wake(); };
  store_.wake_by(wake);
  figures_.when_done(wake);
}

Loop::~Loop() {
  store_.wake_by({});
  figures_.when_done({});
}

double Loop::seconds_to_wait() const {
  if (frames_to_draw_ > 0 || store_.is_busy()) return 0;
  if (store_.is_renewing() || store_.is_reading()) return progress_seconds;
  return ImGui::GetIO().WantTextInput ? blink_seconds : idle_seconds;
}

bool Loop::step() {
  const bool typing = ImGui::GetIO().WantTextInput;
  const bool something_happened = window_.wait(seconds_to_wait());
  if (something_happened || typing || store_.is_busy() || store_.is_reading()) frames_to_draw_ = frames_after_an_event;
  if (store_.is_renewing()) frames_to_draw_ = std::max(frames_to_draw_, 1);
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
  const float scale = window_.scale() * store_.view().scale;
  apply_style(palette(store_.view().dark), metrics(window_.size(), scale));
  if (scale == font_scale_ && has_all_glyphs_) return;
  const bool first =
      font_scale_ == 0;  // the window is to be there at once; the next frame brings the other glyphs
  const platform::LoadedFonts loaded =
      platform::load_fonts(scale, first ? platform::Glyphs::first : platform::Glyphs::all);
  if (!first) window_.refresh_fonts();
  has_all_glyphs_ = !first;
  if (!loaded.warning.empty()) store_.dispatch(ShowMessage{loaded.warning});
  fonts_ = loaded.fonts;
  font_scale_ = scale;
  renderer_.set_scale(scale);
}

void Loop::frame(const std::function<void(ImGuiIO&)>& adjust, const std::vector<KeyPress>& scripted_keys) {
  prepare_style();
  const Document document = store_.document();
  const Metrics lengths = metrics(window_.size(), font_scale_);
  Commands commands;
  std::vector<KeyPress> keys = window_.take_keys();
  keys.insert(keys.end(), scripted_keys.begin(), scripted_keys.end());
  for (const KeyPress& key : keys)
    if (!ImGui::GetIO().WantTextInput)
      handle_key(key, {store_.model(), store_.trace(), store_.view(), document}, commands);
  for (const auto& path : window_.take_dropped_files()) commands.add(OpenFile{path});

  const Opening opening = store_.opening();
  window_.begin_frame(adjust);
  landmarks_.clear();
  figures_.read_from(store_.shared_trace());
  const View view = store_.shown_view();
  const Renewal renewal{store_.model(), store_.view(), store_.seconds_renewing(), store_.share_renewed()};
  draw_window({.model = store_.shown_model(),
               .trace = store_.trace(),
               .version = store_.version(),
               .compute_ms = store_.compute_ms(),
               .view = view,
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
               .comparison = store_.comparison(),
               .renewal = store_.is_renewing() ? &renewal : nullptr,
               .opening = &opening});
  window_.end_frame(palette(store_.view().dark).panel);
  renderer_.end_frame();

  for (const Command& command : commands.take()) store_.dispatch(command);
  if (!ImGui::IsAnyItemActive()) store_.end_gesture();
  store_.settle();
  if (const auto text = store_.take_clipboard()) ImGui::SetClipboardText(text->c_str());
  window_.set_title((document.modified ? "• " : "") + document.title + " – attnscope");
}

}  // namespace app
