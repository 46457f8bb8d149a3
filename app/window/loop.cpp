#include "app/window/loop.hpp"

#include <algorithm>
#include <utility>

#include "app/files/dropping.hpp"
#include "app/window/shell.hpp"
#include "app/ui/actions/shortcuts.hpp"
#include "app/window/shown_state.hpp"

namespace app {
namespace {

constexpr int frames_after_an_event = 3;  // ImGui needs as many to settle
constexpr double blink_seconds = 0.4;     // of the text cursor
constexpr double progress_seconds = 0.1;  // between two looks at how far a computation beside the window is
constexpr double idle_seconds = 60;
constexpr int frames_to_dim = 15;  // what lies behind a dialog

bool is_over(const Landmarks& landmarks, const char* name) {
  const auto rect = landmarks.find(name);
  return rect && ImGui::IsMouseHoveringRect(rect->min, rect->max, false);
}

}  // namespace

Loop::Loop(platform::Window& window, Store& store)
    : window_(window),
      store_(store),
      statistics_(store.jobs()),
      source_(store.jobs()),
      source_of_a_(store.jobs()) {
  store_.jobs().wake_by([&window] { window.wake(); });
}

Loop::~Loop() {
  store_.jobs().wake_by({});
}

double Loop::seconds_to_wait() const {
  if (frames_to_draw_ > 0 || renderer_.is_behind()) return 0;
  if (store_.is_renewing() || store_.is_reading() || store_.is_writing() || store_.is_working() ||
      window_.is_loading_fonts())
    return progress_seconds;
  return ImGui::GetIO().WantTextInput ? blink_seconds : idle_seconds;
}

bool Loop::step() {
  const bool typing = ImGui::GetIO().WantTextInput;
  const bool something_happened = window_.wait(seconds_to_wait());
  if (something_happened || typing || store_.is_reading() || store_.is_writing())
    frames_to_draw_ = frames_after_an_event;
  if (store_.is_renewing() || store_.is_working() || renderer_.is_behind() || window_.is_loading_fonts())
    frames_to_draw_ = std::max(frames_to_draw_, 1);
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
  if (window_.prepare_fonts(text_scale) && !window_.fonts().warning.empty())
    store_.dispatch(ShowMessage{window_.fonts().warning});
}

/// With Shift the arrow keys move the pinned cell; else they go from control to control, as Tab always does.
void Loop::steer_keyboard(const std::vector<KeyPress>& keys) {
  ImGuiIO& io = ImGui::GetIO();
  const bool tab = std::any_of(keys.begin(), keys.end(), [](const KeyPress& k) { return k.key == Key::tab; });
  const bool cells =
      std::any_of(keys.begin(), keys.end(), [](const KeyPress& k) { return k.shift; }) || io.KeyShift;
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
  const View seen = store_.shown_view();
  for (const KeyPress& key : keys)
    if (!ImGui::GetIO().WantTextInput)
      handle_key(key, {store_.shown_model(), store_.trace(), seen, document, store_.newest()}, commands);
  for (const auto& path : window_.take_dropped_files())
    commands.add(dropped(path, store_.view(), store_.model(), is_over(landmarks_, "edit/numbers")));

  steer_keyboard(keys);
  const Opening opening = store_.opening();
  window_.begin_frame(adjust);
  landmarks_.clear();
  follow_held_key(store_);
  const ShownState shown = shown_state(store_);
  const bool shows_a = &shown.live != &store_.live();
  statistics_.read_from(shown.live);
  source_.follow(store_.live());
  if (shows_a)
    source_of_a_.follow(shown.live);
  else
    source_of_a_.stop();
  const PictureSource& source = shows_a ? source_of_a_ : source_;
  const Newest newest = store_.newest();
  const Renewal renewal = shows_a ? Renewal{} : Renewal{store_.seconds_renewing(), store_.share_renewed()};
  const bool awaits_a = store_.view().shows_a && store_.comparing().work().is_renewing;
  const bool is_renewing = awaits_a || store_.is_renewing() || source.is_making() || renderer_.is_behind();
  draw_window({.model = shown.model,
               .trace = shown.trace,
               .version = shown.version,
               .compute_ms = store_.compute_ms(),
               .view = shown.view,
               .document = document,
               .message = store_.message(),
               .palette = palette(store_.view().dark),
               .metrics = lengths,
               .fonts = fonts(),
               .painter = renderer_,
               .extents = extents_,
               .statistics = statistics_,
               .landmarks = landmarks_,
               .commands = commands,
               .lesson = store_.lesson(),
               .laboratory = store_.laboratory(),
               .references = store_.references(),
               .comparison = store_.comparison(),
               .comparing = store_.comparing().work(),
               .source = &source,
               .renewal = is_renewing ? &renewal : nullptr,
               .opening = &opening,
               .newest = shows_a || store_.shows_newest() ? nullptr : &newest});
  window_.end_frame(
      palette(store_.view().dark).panel,
      [this](std::uint64_t texture, const render::Share& part) { return renderer_.painted(texture, part); });
  renderer_.end_frame();

  for (const Command& command : commands.take()) store_.dispatch(command);
  if (!ImGui::IsAnyItemActive()) store_.end_gesture();
  store_.settle();
  if (const auto text = store_.take_clipboard()) ImGui::SetClipboardText(text->c_str());
  window_.set_title((document.modified ? "• " : "") + document.title + " – attnscope");
}

}  // namespace app
