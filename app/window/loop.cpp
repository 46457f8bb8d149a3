#include "app/window/loop.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "app/session/command.hpp"
#include "app/session/exporting.hpp"
#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/ui/widgets/cell_words.hpp"

namespace app {

constexpr std::uint64_t reference_version_bit = 1ull << 63;  // bit of a version that no live numbers have

void show_reference_while_held(Store& store) {
  const View& view = store.view();
  const ImGuiIO& io = ImGui::GetIO();
  const bool held = !store.references().empty() && !io.WantTextInput && !io.NavVisible &&
                    !view.selection.cursor && view.forms.dialog == Dialog::none &&
                    view.look.tab != Tab::laboratory && view.look.tab != Tab::layers &&
                    view.look.tab != Tab::learn && !view.selection.presentation.on && !io.KeyShift &&
                    platform::key_down(ImGuiKey_Space);
  if (held == view.selection.shows_reference) return;
  store.dispatch(ShowReference{held});
  store.update();
}

DisplayedState displayed_state(const Store& store) {
  const LiveTrace* kept = store.live_comparison().snapshot();
  const ModelView view = store.shown_view();
  if (!view.selection.shows_reference || !kept || view.look.tab == Tab::compare)
    return {store.live(), store.live().version(), view};
  DisplayedState a{*kept, reference_version_bit | kept->version(), view, true};
  a.view.look.sequence = kept->sequence();
  clamp_view(a.view, kept->model());
  return a;
}

namespace {

using namespace std::chrono_literals;
constexpr auto write_interval = 300ms;  // two writes, as dragging a border changes a setting in each frame

/// Merges the changes into the files, which other windows write too; returns "" or an error message.
std::string write_changes(const std::filesystem::path& folder, const platform::UserState& before,
                          const platform::UserState& now) {
  const platform::UserState there = platform::read_user_state(folder);
  const platform::UserState after = platform::merge_user_state(before, now, there);
  return after == there ? "" : platform::write_user_state(folder, after);
}

}  // namespace

void SettingsWriter::follow(const platform::UserState& now) {
  if (queue_.is_busy() || now == seen_) return;
  seen_ = now;
  queue_.start_at(
      next_,
      [this, folder = folder_, before = written_, now](const core::StopToken& token) -> Jobs::Delivery {
        if (!token.should_continue()) return {};
        const std::string problem = write_changes(folder, before, now);
        return [this, now, problem] {
          next_ = Clock::now() + write_interval;
          if (problem.empty())
            written_ = now;
          else if (!std::exchange(has_failed_, true))
            queue_.jobs().report_failure({problem});
        };
      });
}

void SettingsWriter::finish(const platform::UserState& now) {
  queue_.cancel();
  queue_.wait();
  write_changes(folder_, written_, now);
}

namespace {

constexpr int min_settled_frames = 3;     // a command shows in the next frame, a scroll in the one after
constexpr double blink_seconds = 0.4;     // of the text cursor
constexpr double progress_seconds = 0.1;  // between two updates of the progress of background work
constexpr double leftover_poll_seconds = 0.25;  // between two checks for work left by a window that is ending
constexpr double attached_poll_seconds = 1;     // between two checks whether the Python process has ended
constexpr double idle_seconds = 60;
constexpr int any_popup = ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel;
constexpr double animation_frame_seconds = 1.0 / 60;

bool has_menu() {
  return ImGui::IsPopupOpen("", any_popup);
}

/// Returns whether a key belongs to an open menu, list or popup: Escape closes it, arrows navigate it.
bool is_menu_key(const KeyPress& press) {
  constexpr std::array keys{Key::escape, Key::left, Key::right, Key::up, Key::down};
  return !press.ctrl && std::ranges::find(keys, press.key) != keys.end() && has_menu();
}

bool is_over(const Landmarks& landmarks, const char* name) {
  const auto rect = landmarks.find(name);
  return rect && ImGui::IsMouseHoveringRect(rect->min, rect->max, false);
}

}  // namespace

Loop::Loop(platform::Screen& screen, render::Painter& painter, Store& store, DrawFunction draw)
    : screen_(screen),
      painter_(painter),
      store_(store),
      draw_(std::move(draw)),
      statistics_(store.jobs()),
      source_(store.jobs()),
      reference_source_(store.jobs()) {
  store_.jobs().set_wake_callback([&screen] { screen.wake(); });
}

Loop::~Loop() {
  store_.jobs().set_wake_callback({});
}

/// Returns whether something in the window is animated.
bool Loop::is_animating() const {
  const View& view = store_.view();
  if (view.settings.reduce_motion) return false;
  const auto& operand_animation = view.selection.presentation.operand_animation;
  return (operand_animation && operand_animation->is_running) ||
         changes_.seconds() < flash_seconds + 2 * animation_frame_seconds;
}

/// Returns whether background work shows its progress in the window.
bool Loop::progresses() const {
  return store_.live().is_behind() || store_.is_reading() || store_.is_writing() || store_.is_working() ||
         screen_.is_loading_fonts() || store_.jobs().next_piece() <= Clock::now();
}

/// Returns whether windows that are still ending may leave work to this one.
bool Loop::expects_leftovers() const {
  return Clock::now() - start_ < leftover_search_time;
}

/// Returns whether a run trains as long as it is displayed.
bool Loop::is_learning() const {
  const View& view = store_.view();
  return view.learning.plays && view.look.tab == Tab::learn && !view.forms.start_page;
}

double Loop::seconds_to_wait() const {
  const std::chrono::duration<double> to_job = store_.jobs().next_piece() - Clock::now();
  return std::clamp(to_job.count(), 0.0, seconds_to_frame());
}

double Loop::seconds_to_frame() const {
  if (is_learning()) {
    const double pace =
        store_.learning().pace(store_.view().learning, store_.view().settings.reduce_motion).seconds;
    return std::max(0.0, pace - store_.learning().seconds_since_request());
  }
  if (settled_frames_ < min_settled_frames || painter_.is_behind()) return 0;
  if (is_animating()) return animation_frame_seconds;
  if (progresses()) return progress_seconds;
  if (expects_leftovers()) return leftover_poll_seconds;
  if (ImGui::GetIO().WantTextInput) return blink_seconds;
  const FullModelState* whole = store_.pending().full_model;
  return whole && whole->model->description().is_attached ? attached_poll_seconds : idle_seconds;
}

bool Loop::step() {
  if (screen_.wait(seconds_to_wait())) settled_frames_ = 0;
  if (expects_leftovers() && store_.find_leftovers()) settled_frames_ = 0;
  if (store_.report_lost_model()) settled_frames_ = 0;
  if (screen_.should_close()) {
    screen_.cancel_close();
    store_.dispatch(Quit{});
    settled_frames_ = 0;
  }
  if (settled_frames_ < min_settled_frames || is_learning() || is_animating() || progresses() ||
      painter_.is_behind()) {
    frame();
  } else if (ImGui::GetIO().WantTextInput) {
    frame();
    settled_frames_ = min_settled_frames;  // nothing but the text cursor blinks
  }
  return !store_.wants_to_quit();
}

/// Returns the lengths of this frame; a presentation is as dense as the largest window.
Metrics Loop::metrics_now() const {
  Metrics m = metrics(screen_.size(), scale_);
  if (store_.view().selection.presentation.on) m.compact = m.narrow = false;
  return m;
}

void Loop::prepare_style() {
  const View& view = store_.view();
  const bool presents = view.selection.presentation.on;
  const float scale = presents ? presenting_scale(screen_.size()) : screen_.scale() * view.settings.scale,
              text_scale = presents ? scale : scale * view.settings.text_size;
  scale_ = scale;
  if (std::exchange(fills_screen_, view.selection.presentation.full_screen) != fills_screen_)
    screen_.set_fullscreen(fills_screen_);
  apply_style(palette(store_.view().settings.dark), metrics_now());
  painter_.set_scale(scale);
  if (screen_.prepare_fonts(text_scale) && !screen_.fonts().warning.empty())
    store_.dispatch(ShowMessage{screen_.fonts().warning});
}

/// Disables ImGui's keyboard navigation while Shift and arrows move the pinned cell, ← and → step through a
/// lesson or presentation, or Page up and down change the layer; Tab always navigates.
void Loop::update_keyboard_navigation(const std::vector<KeyPress>& keys) {
  ImGuiIO& io = ImGui::GetIO();
  const bool tab = std::any_of(keys.begin(), keys.end(), [](const KeyPress& k) { return k.key == Key::tab; });
  const bool cells =
      std::any_of(keys.begin(), keys.end(), [](const KeyPress& k) { return k.shift; }) || io.KeyShift;
  const Selection& now = store_.view().selection;
  // While they are held, too: else the next frame would navigate.
  const bool held = platform::key_down(ImGuiKey_LeftArrow) || platform::key_down(ImGuiKey_RightArrow);
  const bool steps = (now.lesson || now.presentation.on || store_.view().look.tab == Tab::learn) &&
                     !has_menu() && (held || std::ranges::any_of(keys, [](const KeyPress& k) {
                                       return k.key == Key::left || k.key == Key::right;
                                     }));
  const bool pages = platform::key_down(ImGuiKey_PageUp) || platform::key_down(ImGuiKey_PageDown) ||
                     std::ranges::any_of(keys, [](const KeyPress& k) {
                       return k.key == Key::page_up || k.key == Key::page_down;
                     });
  const bool layers = pages && store_.pending().full_model && !has_menu();
  if ((cells || steps || layers) && !tab)
    io.ConfigFlags &= ~ImGuiConfigFlags_NavEnableKeyboard;
  else
    io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
}

void Loop::frame(const std::function<void(ImGuiIO&)>& adjust, const std::vector<KeyPress>& scripted_keys) {
  prepare_style();
  Commands commands;
  std::vector<KeyPress> keys = screen_.take_keys();
  keys.insert(keys.end(), scripted_keys.begin(), scripted_keys.end());
  try {
    read_input(keys, commands);
  } catch (...) {
    store_.dispatch(ShowMessage{current_failure("a key").words, true});
  }
  update_keyboard_navigation(keys);
  screen_.begin_frame(adjust);
  landmarks_.clear();
  show_reference_while_held(store_);  // before anything of the store is read, as it may change all of it
  draw(commands);
  const bool has_changed = screen_.end_frame(
      palette(store_.view().settings.dark).background.panel,
      [this](std::uint64_t texture, const render::UvRect& part) { return painter_.painted(texture, part); });
  settled_frames_ = has_changed || !platform::is_settled() ? 0 : settled_frames_ + 1;
  painter_.end_frame();
  handle(commands);
}

void Loop::read_input(const std::vector<KeyPress>& keys, Commands& commands) {
  const View& view = store_.view();
  if (!keys.empty() && !ImGui::GetIO().WantTextInput) {
    const DocumentState document = store_.document();
    const DisplayedState shown = displayed_state(store_);
    const PersistentState kept = store_.persistent_state();
    for (const KeyPress& key : keys)
      if (!is_menu_key(key))
        handle_key(
            key,
            {shown.displayed(), store_.pending(), view.settings, view.forms, document, {}, &kept.progress},
            commands);
  }
  for (const auto& path : screen_.take_dropped_files())
    commands.add(command_for_dropped_file(path, view, store_.model(), is_over(landmarks_, "edit/numbers")));
}

void Loop::draw(Commands& commands) {
  const DisplayedState state = displayed_state(store_);
  const Displayed shown = state.displayed();
  const DocumentState document = store_.document();
  const Opening opening = store_.opening();
  const PersistentState kept = store_.persistent_state();
  const View& view = store_.view();
  statistics_.follow_trace(state.live);
  source_.follow(store_.live());
  if (state.is_a)
    reference_source_.follow(state.live);
  else
    reference_source_.stop();
  const PictureSource& source = state.is_a ? reference_source_ : source_;
  const UpdateProgress update_progress =
      state.is_a ? UpdateProgress{}
                 : UpdateProgress{store_.live().seconds_behind(), store_.live().share_done()};
  const bool awaits_a = view.selection.shows_reference && store_.live_comparison().work().is_updating;
  const Pending pending = store_.pending();
  const bool reads = pending.full_model && pending.reading->is_behind(*pending.full_model);
  const bool is_updating =
      awaits_a || reads || store_.live().is_behind() || source.is_busy() || painter_.is_behind();
  const Frame frame{
      .displayed = shown,
      // While A is displayed in place of B, editing panels show A as well.
      .pending = state.is_a ? Pending{shown.model, shown.look, shown.selection, nullptr, nullptr, nullptr}
                            : store_.pending(),
      .settings = view.settings,
      .forms = view.forms,
      .document = document,
      .message = store_.message(),
      .palette = palette(view.settings.dark),
      .metrics = metrics_now(),
      .fonts = fonts(),
      .painter = painter_,
      .landmarks = landmarks_,
      .commands = commands,
      .work = {.compute_ms = store_.live().compute_ms(),
               .value_ranges = value_ranges_,
               .statistics = statistics_,
               .laboratory = store_.laboratory(),
               .source = &source,
               .update_progress = is_updating ? &update_progress : nullptr,
               .opening = &opening,
               .changes = state.is_a || !store_.is_up_to_date() ? nullptr : &changes_,
               .progress = &kept.progress,
               .start_model = store_.start_model(),
               .start_pictures = store_.start_pictures(),
               .start_run = store_.start_run()},
      .compared = {store_.references(), store_.live_comparison().comparison(),
                   store_.live_comparison().work()},
      .lesson = store_.lesson(),
      .gradient = view.look.gradient.of && !state.is_a ? &store_.live_gradient() : nullptr};
  draw_(frame);
  if (view.forms.in_browser) screen_.set_description(widgets::spoken_words(frame));
}

/// Records the state that an edit is about to change.
void Loop::record_edit(const Command& command) {
  if (command.get_if<ApplyEdit>() || command.get_if<Undo>() || command.get_if<Redo>())
    changes_.edit(store_.model(), store_.view().look.sequence);
}

/// Passes files to a browser, and asks it for some; written files are in the user's folders else.
void Loop::exchange_files() {
  const auto written = store_.take_written();
  if (store_.take_file_choice()) screen_.choose_files();
  if (!screen_.in_browser()) return;
  for (const std::filesystem::path& path : written) {
    try {
      const OfferedFile file = offered_file(path);
      screen_.offer_file(file.name, file.bytes);
    } catch (...) {
      store_.dispatch(ShowMessage{current_failure(path.string()).words, true});
    }
    std::error_code ignored;  // it lies in memory
    if (store_.document().path != absolute_path(path)) std::filesystem::remove_all(path, ignored);
  }
}

void Loop::handle(Commands& commands) {
  for (const Command& command : commands.take()) {
    record_edit(command);
    store_.dispatch(command);
  }
  if (!ImGui::IsAnyItemActive()) {
    store_.dispatch(EndGesture{});
    changes_.end_gesture();
  }
  store_.update();
  changes_.follow(store_.model());
  if (const auto text = store_.take_clipboard()) ImGui::SetClipboardText(text->c_str());
  exchange_files();
  const DocumentState document = store_.document();
  screen_.set_title((document.modified ? "• " : "") + document.title + " – attnscope");
}

}  // namespace app
